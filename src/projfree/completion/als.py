r"""Alternating least squares (ALS) for matrix completion with a Schatten penalty.

With the weighted matrix :math:`Y = P \Sigma Q^T` and
:math:`\sigma^p \le \tfrac p2 s^{p-2}\sigma^2 + \text{const}` the problem

.. math:: \min_{X, b} \sum_i \omega_i\,\ell(X_{r_i c_i} + o_i(b), y_i) + \kappa\|b\|^2
          + \tfrac{2\lambda}{p} \|Y\|_{S_p}^p

has, for :math:`X = L R^T` balanced so that both factors carry :math:`\Sigma^{1/2}`, a majorant in L with the diagonal
ridge :math:`\rho_j = \lambda\,\sigma_j^{p-1}` (and likewise in R). Row i of L and its offset are a separate regression,

.. math:: \sum_{t \in \text{row } i} \omega_t\,(L_i \cdot R_{j_t} + b_i - e_t)^2 + \tfrac{L_\ell}{2}\,\kappa b_i^2
          + d_i^2 \sum_c \rho_c L_{ic}^2,

where e is the target minus the other offsets. A loss other than squares is majorised by a quadratic with its largest
curvature :math:`L_\ell` at the current predictions. Side information adds one Gram matrix that all rows share, and a
right-hand side for each row. At a fixed point :math:`\|\nabla\|_* = 2\lambda \|Y\|_{S_p}^{p-1}`: up to the limit on the
rank, the solution also minimises over the ball of its own norm, and the certificate of the convex problem bounds its
distance from the optimum.
----------
Hastie, Mazumder, Lee, Zadeh (2015), Matrix completion and low-rank SVD via fast alternating least squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import LowRank, OnPattern, Point
from projfree.checks import Array, count, positive
from projfree.completion.model import Factors
from projfree.completion.problem import CompletionProblem
from projfree.losses.squared import is_squared
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.spectra import EPS, leading, svd
from projfree.objectives.base import SmoothFunction
from projfree.runtime import parallel_for_rows, single_blas_thread
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State

#: Initial strength of the penalty, if it is adapted to a radius, relative to the largest useful strength.
INITIAL_SHARE = 0.3
#: The strength is multiplied by this power of norm / radius: with the ratio itself it overshoots and oscillates.
STRENGTH_POWER = 0.7
#: Smallest strength and ridge relative to their scale, so that the regressions have unique solutions.
MIN_SHARE = 1e-9
#: Scale of the random initial factors, for targets of unit size.
INITIAL_SCALE = 0.1
#: Scale of restarted components relative to the largest entry: three sweeps can then grow them to their size.
RESTART_SCALE = 0.03
#: Number of ratings from which the regressions use single precision, to halve the memory traffic.
MIN_SINGLE_PRECISION = 50_000


@dataclass(frozen=True, kw_only=True)
class ALSState(State):
    """State of ALS: the current and the initial strength of the penalty, and the singular values of the weighted
    matrix.

    The strengths are NaN until the first sweep determines them.
    """

    strength: float
    first: float
    sigma: Array


@dataclass(frozen=True, repr=False)
class ALS(Solver):
    r"""Alternate between ridge regressions of the row factors and of the column factors, each with its offsets.

    Iterates may lie outside the ball. A sweep costs ratings times rank, plus rows and columns times the squared rank.

    Parameters
    ----------
    rank : int
        Number of components.
    penalty : float, optional
        The strength :math:`\lambda\sigma_1^{p-1}` of the penalty, which is the ridge of the leading component; good
        values hardly depend on p. By default it is adapted until the norm of the iterate equals the radius of the ball.
    """

    rank: int = 40
    penalty: float | None = None

    def __post_init__(self) -> None:
        count("ALS(rank=...)", self.rank)
        if self.penalty is not None:
            positive("ALS(penalty=...)", self.penalty)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> ALSState:
        """Return the state of ``start``, or of small random factors if ``start`` is zero."""
        assert isinstance(f, CompletionProblem)
        model = Factors.of_point(f, start)
        if not start.w.any():
            rank = min(self.rank, *f.shape)
            noise = np.random.default_rng(seed).standard_normal((f.shape[1], rank))
            rights = INITIAL_SCALE * math.sqrt(f.entries.unit) * noise
            model = Factors.of(f, np.zeros((f.shape[0], rank)), rights, model.offsets, np.ones(rank))
        return self.make_state(f, model, seed)

    def make_state(self, f: CompletionProblem, model: Factors, seed: int = 0, strength: float = math.nan) -> ALSState:
        """Return the state of a model."""
        strength = self.penalty or strength
        x = model.point(f)
        return ALSState(t=0, x=x, seed=seed, strength=strength, first=strength, sigma=model.sigma)

    def resume(self, f: CompletionProblem, model: Factors, seed: int, strength: float = math.nan) -> ALSState:
        """Return the state of a model, with vanished components replaced by small random ones."""
        model = balance(f, model)
        dead = model.sigma <= 1e-3 * max(float(model.sigma.max(initial=0.0)), 1e-300)
        if dead.any():
            lefts, rights = model.lefts.copy(), model.rights.copy()
            lefts[:, dead] = 0.0  # so that the matrix, and its norm, are those of the others
            largest = max(float(np.abs(rights).max()), INITIAL_SCALE * math.sqrt(f.entries.unit))
            noise = np.random.default_rng(seed).standard_normal((len(rights), int(dead.sum())))
            rights[:, dead] = RESTART_SCALE * largest * noise
            model = replace(model, lefts=lefts, rights=rights, sigma=np.where(dead, 0.0, model.sigma))
        return self.make_state(f, model, seed, strength)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> ALSState:
        assert isinstance(state, ALSState)
        assert isinstance(f, CompletionProblem)
        strength = INITIAL_SHARE * max_strength(f) if math.isnan(state.strength) else state.strength
        first = state.first if math.isfinite(state.first) else strength
        with single_blas_thread():  # `parallel_for_rows` has its own threads
            model = sweep(f, Factors.of_point(f, state.x, state.sigma).cast(regression_dtype(f)), strength)
        if self.penalty is None:
            radius: float = ball.radius  # type: ignore[attr-defined]  # the ball of the problem
            strength *= float(np.clip((lp_norm(model.sigma, f.p) / radius) ** STRENGTH_POWER, 0.5, 2.0))
            strength = max(strength, min_strength(f, first))
        return replace(state, t=state.t + 1, x=model.point(f), strength=strength, first=first, sigma=model.sigma)


def regression_dtype(f: CompletionProblem) -> Any:
    """Return the floating-point type of the regressions."""
    return np.dtype(np.float32 if f.n >= MIN_SINGLE_PRECISION else np.float64)


def sweep(f: CompletionProblem, model: Factors, strength: float) -> Factors:
    """Update all rows and then all columns."""
    for side in (0, 1):
        scale = (f.rows, f.cols)[side][: f.entries.pattern.shape[side]] ** 2
        model = update_factors(f, model, side, strength * relative_ridge(model.sigma, f.p), scale)
        (every, users, items), means = f.entries.kinds, (model.rows.mean(), model.cols.mean())
        if every:  # moving the mean row and column offsets to the common offset minimises the ridge penalty
            row, col = float(users * means[0]), float(items * means[1])
            model = replace(model, shift=model.shift + row + col, rows=model.rows - row, cols=model.cols - col)
        if side == 1 or f.p > 1.0:  # for p = 1 the ridge of all components is equal, in any basis
            model = balance(f, model)
    return model


def relative_ridge(sigma: Array, p: float) -> Array:
    """Return the ridge of each component relative to the first; bounded below, as for p > 1 it would vanish."""
    relative: Array = np.maximum(sigma / max(float(sigma.max(initial=0.0)), 1e-300), MIN_SHARE) ** (p - 1.0)
    return relative


def balance(f: CompletionProblem, model: Factors) -> Factors:
    """Rotate the factors so that both carry the square roots of the weighted singular values; the matrix is the same.

    They are computed from Gram matrices, whose rounding errors affect the balance of the factors but not their product.
    """
    r, back = _gram_root(gram_matrix(model.lefts, f.rows))
    s, there = _gram_root(gram_matrix(model.rights, f.cols))
    u, sigma, vt = svd(r @ s.T)
    lefts = model.lefts @ (back @ (u * np.sqrt(sigma))).astype(model.lefts.dtype)
    rights = model.rights @ (there @ (vt.T * np.sqrt(sigma))).astype(model.rights.dtype)
    return replace(model, lefts=lefts, rights=rights, sigma=sigma)


def _gram_root(gram: Array) -> tuple[Array, Array]:
    """Return R with ``R.T @ R`` equal to the Gram matrix, and the pseudo-inverse of R."""
    squares, vectors = np.linalg.eigh(gram)
    real = squares > len(squares) * EPS * max(float(squares[-1]), 1e-300)
    roots = np.where(real, np.sqrt(np.where(real, squares, 1.0)), 0.0)
    return roots[:, None] * vectors.T, vectors * np.where(real, 1.0 / np.where(real, roots, 1.0), 0.0)


# ---------------------------------------------------------------- strength of the penalty


def max_strength(f: CompletionProblem) -> float:
    """Return the smallest strength for which the matrix is zero, for p = 1 and without side information."""
    e, (m, n) = f.entries, f.entries.pattern.shape
    slope = e.s * e.loss.derivative(e.offsets(e.offsets_only), e.y)
    gradient = OnPattern(e.pattern, 0.5 * f.n * slope).scaled(1.0 / f.rows[:m], 1.0 / f.cols[:n])
    first = leading(gradient, lambda s: np.eye(1, len(s))[0], None)
    return max(float(first.values[0]), MIN_SHARE * (e.target_norm + abs(e.base) or 1.0))


def min_strength(f: CompletionProblem, first: float) -> float:
    """Return the lower bound of an adapted strength."""
    return MIN_SHARE * max(first, math.sqrt(f.n * f.side.zero_value))


def estimate_strength(f: CompletionProblem, model: Factors) -> float:
    r"""Return the strength for which a minimiser over the ball also minimises the penalised problem.

    With G the gradient of the mean over n ratings, :math:`-n \langle G, Y\rangle = 2 \lambda \|Y\|_{S_p}^p`.
    """
    powers = float(np.sum(model.sigma**f.p))
    if not powers:
        return max_strength(f)
    x = model.point(f)
    gradient: Any = f.open().evaluate(x).slope.gradient
    strength = -0.5 * f.n * gradient.inner(x.w) / powers * float(model.sigma.max()) ** (f.p - 1.0)
    return max(float(strength), MIN_SHARE * (f.entries.target_norm + abs(f.entries.base) or 1.0))


# ---------------------------------------------------------------- regressions


def surrogate_targets(f: CompletionProblem, model: Factors, side: int) -> tuple[Array, Array]:
    """Return targets and weights of the least-squares problem that majorises the loss at the current predictions.

    They are in row order (``side`` 0) or column order (1). For the squared loss they are constant, and cached.
    """
    e, kind = f.entries, regression_dtype(f)
    cache: dict[int, tuple[Array, Array]] = e.regressions
    if side in cache:
        return cache[side]
    target, weight, curvature = e.y, e.weight, 0.5 * e.loss.smoothness
    if not is_squared(e.loss):
        u = LowRank.of(model.left, model.right).on_places(e.pattern) + e.offsets(model.offsets)
        target = u - e.loss.derivative(u, e.y) / e.loss.smoothness
    order = slice(None) if side == 0 else e.pattern.by_column[2]
    share = np.broadcast_to(kind.type(curvature), f.n)  # a view of one number
    pair = target[order].astype(kind), share if weight is None else (weight[order] * (f.n * curvature)).astype(kind)
    if is_squared(e.loss):
        cache[side] = pair
    return pair


def update_factors(f: CompletionProblem, model: Factors, side: int, ridge: Array, scale: Array) -> Factors:
    """Update the factors and offsets of all rows (``side`` 0) or columns (1), starting from the current ones.

    ``ridge`` is the penalty of each component. ``scale`` multiplies it for each row or column; it is one for those of
    side information.
    """
    from projfree.completion.kernels import ridge_rows

    e, kind, k = f.entries, regression_dtype(f), len(ridge)
    own, other, extra = (
        (model.left, model.right, model.right_extra) if side == 0 else (model.right, model.left, model.left_extra)
    )
    own_offsets, other_offsets = (model.rows, model.cols) if side == 0 else (model.cols, model.rows)
    indptr, indices = (e.pattern.indptr, e.pattern.indices) if side == 0 else e.pattern.by_column[:2]
    target, weight = surrogate_targets(f, model, side)
    side_targets, free = f.side.targets[side], int(e.kinds[1 + side])
    weights = f.n * f.side.weights[side]
    extra = extra[: len(weights)]  # the features come last, and a new user may have none
    shared, change = diagonalize(gram_matrix(extra, np.sqrt(weights)), ridge)
    change, other = change.astype(kind), other.astype(kind, copy=False)

    def columns(offset: Any, factor: Array) -> Array:  # prepend the coordinate of the offset
        return np.hstack([np.full((len(factor), 1), np.reshape(offset, (-1, 1)), kind)[:, :free], factor])

    table, out = (
        columns(1.0, other @ change),
        columns(own_offsets, own.astype(kind, copy=False) @ np.linalg.inv(change).T),
    )
    ridges, common = columns(0.5 * e.loss.smoothness * e.ridge, np.ones((1, k), kind))[0], columns(0.0, shared[None])[0]
    pull = np.zeros((0, free + k), kind)
    if len(extra):
        pull = columns(0.0, multiply_block(side_targets, extra * weights[:, None], side, kind) @ change)
    given = indptr, indices, target, kind.type(e.base + model.shift), other_offsets.astype(kind), weight, table
    rest = ridges, scale.astype(kind), free, common.astype(kind), pull, out
    parallel_for_rows(lambda start, stop: ridge_rows(*given, *rest, start, stop), indptr)
    new = np.concatenate([out[:, free:] @ change.T, side_factors(f, other, side, ridge)])
    offset = out[:, 0].astype(np.float64) if free else np.zeros(len(own))
    return replace(model, lefts=new, rows=offset) if side == 0 else replace(model, rights=new, cols=offset)


def side_factors(f: CompletionProblem, other: Array, side: int, ridge: Array) -> Array:
    """Solve for the factors of the rows of T (``side`` 0) or the columns of S (1), in one regression."""
    kind, first, targets = regression_dtype(f), f.side.counts[1 - side], f.side.targets[1 - side]
    factors = np.zeros((len(f.side.weights[1 - side]), len(ridge)), kind)
    if len(factors):
        sums, (values, basis) = (
            multiply_block(targets, other, 1 - side, kind, True),
            diagonalize(gram_matrix(other), ridge),
        )
        for part, w in ((slice(first), f.implicit), (slice(first, None), 1.0)):
            factors[part] = sums[part] @ (w * (basis / (1.0 + w * values)) @ basis.T).astype(kind)
    return factors


def transfer(
    f: CompletionProblem, model: Factors, strength: float, users: Array | None = None, items: Array | None = None
) -> Factors:
    """Convert a model to a problem with other side information, or with further users and items.

    ``users`` and ``items`` are the new indices of the old ones. New users and items get zero factors; the factors of
    side information are regressed on the others.
    """
    m, n = f.entries.pattern.shape

    def placed(values: Array, at: Array | None, count: int) -> Array:
        out = np.zeros((count, *values.shape[1:]), values.dtype)
        out[slice(None) if at is None else at] = values
        return out

    left, rows = (placed(values, users, m) for values in (model.left, model.rows))
    right, cols = (placed(values, items, n) for values in (model.right, model.cols))
    ridge = strength * relative_ridge(model.sigma, f.p)
    lefts = np.concatenate([left, side_factors(f, right, 0, ridge)])
    rights = np.concatenate([right, side_factors(f, left, 1, ridge)])
    return replace(model, lefts=lefts, rights=rights, rows=rows, cols=cols)


def multiply_block(matrix: OnPattern, block: Array, side: int, kind: Any, transposed: bool = False) -> Array:
    """Multiply the targets of S (``side`` 0) or of the transpose of T (1) by ``block``."""
    from projfree.numerics.entries_kernels import times_block

    at, values = matrix.pattern, matrix.values
    indptr, indices, order = at.by_column if (side == 1) != transposed else (at.indptr, at.indices, slice(None))
    values = np.broadcast_to(kind.type(1), len(values)) if values.strides == (0,) else values[order].astype(kind)
    block, out = np.ascontiguousarray(block, kind), np.empty((len(indptr) - 1, block.shape[1]), kind)
    parallel_for_rows(lambda start, stop: times_block(indptr, indices, values, block, out, start, stop), indptr)
    return out


def diagonalize(gram: Array, ridge: Array) -> tuple[Array, Array]:
    r"""Diagonalise a Gram matrix G and a ridge simultaneously; return the diagonal :math:`\Lambda` and the basis C.

    :math:`C^T \mathrm{diag}(\rho)\,C = I` and :math:`C^T G C = \Lambda` for :math:`x = C z`. So no row multiplies by G,
    and the inverse of the sum is :math:`C (1 + \Lambda)^{-1} C^T`, which always exists.
    """
    root = 1.0 / np.sqrt(np.maximum(ridge, max(EPS * float(np.trace(gram)), 1e-300)))
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    return np.maximum(values, 0.0), root[:, None] * vectors


def gram_matrix(factor: Array, weights: Array | None = None) -> Array:
    """Return ``(D F)^T D F`` in double precision, with D the diagonal matrix of ``weights``."""
    rows = factor.astype(np.float64, copy=False) if weights is None else factor * weights[:, None]
    gram: Array = rows.T @ rows
    return gram
