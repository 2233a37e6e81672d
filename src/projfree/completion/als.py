r"""ALS ridge regressions for completion with a Schatten penalty.

With the weighted matrix :math:`Y = P \Sigma Q^T` and
:math:`\sigma^p \le \tfrac p2 s^{p-2}\sigma^2 + \text{const}` the problem

.. math:: \min_{X, b} \sum_i \omega_i\,\ell(X_{r_i c_i} + o_i(b), y_i) + \kappa\|b\|^2
          + \tfrac{2\lambda}{p} \|Y\|_{S_p}^p

has, for :math:`X = L R^T` balanced so that both factors carry :math:`\Sigma^{1/2}`, a majorant in L with the diagonal
ridge :math:`\rho_j = \lambda\,\sigma_j^{p-1}` (and likewise in R). Row i of L and its offset are a separate regression,

.. math:: \sum_{t \in \text{row } i} \omega_t\,(L_i \cdot R_{j_t} + b_i - e_t)^2 + \tfrac{L_\ell}{2}\,\kappa b_i^2
          + d_i^2 \sum_c \rho_c L_{ic}^2,

where e is the target minus the other offsets; a loss other than squares is majorised by its largest curvature
:math:`L_\ell` at the current predictions. The squares of side information give all rows one Gram matrix and each row a
right-hand side. At a fixed point :math:`\|\nabla\|_* = 2\lambda \|Y\|_{S_p}^{p-1}`: the answer also minimises over the
ball of its own norm, up to the rank, and the certificate of the convex problem measures how closely.

References
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

#: The first strength of a penalty that follows a radius, as a part of the strongest.
INITIAL_SHARE = 0.3
#: Strengths and ridges stay above this part of their scale, so that the regressions have unique answers.
MIN_SHARE = 1e-9
#: The size of random factors for targets of the unit, small beside what a first sweep finds.
INITIAL_SCALE = 0.1
#: Emptied components restart at this part of the largest entry: three sweeps can then grow them to their size.
RESTART = 0.03
#: From so many ratings on regressions are in single precision, which halves their memory traffic.
MIN_SINGLE_PRECISION = 50_000


@dataclass(frozen=True, kw_only=True)
class ALSState(State):
    """A state with the strength of the penalty, now and at first, and the singular values of the weighted matrix.

    The strengths are NaN before the first sweep that has to find one.
    """

    strength: float
    first: float
    sigma: Array


@dataclass(frozen=True, repr=False)
class ALS(Solver):
    r"""Ridge regressions of the rows of a factored matrix, then of its columns, both with their offsets.

    Iterates may lie outside the ball. Cost of a sweep: ratings times rank, and lines times the square of the rank.

    Parameters
    ----------
    rank : int
        Components.
    penalty : float, optional
        The strength :math:`\lambda\sigma_1^{p-1}` of the penalty, that of the leading component, of which good ones
        hardly depend on p. By default it is adapted until the norm of the iterate is the ball's radius.
    """

    rank: int = 40
    penalty: float | None = None

    def __post_init__(self) -> None:
        count("ALS(rank=...)", self.rank)
        if self.penalty is not None:
            positive("ALS(penalty=...)", self.penalty)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> ALSState:
        """The start if it has components, else small random ones."""
        assert isinstance(f, CompletionProblem)
        model = Factors.of_point(f, start)
        if not start.w.any():
            rank = min(self.rank, *f.shape)
            noise = np.random.default_rng(seed).standard_normal((f.shape[1], rank))
            rights = INITIAL_SCALE * math.sqrt(f.entries.unit) * noise
            model = Factors.of(f, np.zeros((f.shape[0], rank)), rights, model.offsets, np.ones(rank))
        return self.make_state(f, model, seed)

    def make_state(self, f: CompletionProblem, model: Factors, seed: int = 0, strength: float = math.nan) -> ALSState:
        """The state of a model."""
        strength = self.penalty or strength
        x = model.point(f)
        return ALSState(t=0, x=x, seed=seed, strength=strength, first=strength, sigma=model.sigma)

    def resume(self, f: CompletionProblem, model: Factors, seed: int, strength: float = math.nan) -> ALSState:
        """The state of a model in which components that a strong penalty has emptied are small and random again."""
        model = balance(f, model)
        dead = model.sigma <= 1e-3 * max(float(model.sigma.max(initial=0.0)), 1e-300)
        if dead.any():
            lefts, rights = model.lefts.copy(), model.rights.copy()
            lefts[:, dead] = 0.0  # so that the matrix, and its norm, are those of the others
            largest = max(float(np.abs(rights).max()), INITIAL_SCALE * math.sqrt(f.entries.unit))
            noise = np.random.default_rng(seed).standard_normal((len(rights), int(dead.sum())))
            rights[:, dead] = RESTART * largest * noise
            model = replace(model, lefts=lefts, rights=rights, sigma=np.where(dead, 0.0, model.sigma))
        return self.make_state(f, model, seed, strength)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> ALSState:
        assert isinstance(state, ALSState)
        assert isinstance(f, CompletionProblem)
        strength = INITIAL_SHARE * max_strength(f) if math.isnan(state.strength) else state.strength
        first = state.first if math.isfinite(state.first) else strength
        with single_blas_thread():  # products with few columns, beside threads of `parallel_for_rows`
            model = sweep(f, Factors.of_point(f, state.x, state.sigma).cast(regression_dtype(f)), strength)
        if self.penalty is None:  # the norm falls more slowly than the strength grows: the ratio is a safe factor
            radius: float = ball.radius  # type: ignore[attr-defined]  # the ball of the problem
            strength *= float(np.clip(lp_norm(model.sigma, f.p) / radius, 0.5, 2.0))
            strength = max(strength, min_strength(f, first))
        return replace(state, t=state.t + 1, x=model.point(f), strength=strength, first=first, sigma=model.sigma)


def precision(f: CompletionProblem) -> Any:
    """The floating-point type of the regressions."""
    return np.dtype(np.float32 if f.n >= MIN_SINGLE_PRECISION else np.float64)


def sweep(f: CompletionProblem, model: Factors, strength: float) -> Factors:
    """The model after regressions of all rows and then of all columns."""
    for side in (0, 1):
        scale = (f.rows, f.cols)[side][: f.entries.pattern.shape[side]] ** 2
        model = update_factors(f, model, side, strength * relative_ridge(model.sigma, f.p), scale)
        (every, users, items), means = f.entries.kinds, (model.rows.mean(), model.cols.mean())
        if every:  # the ridge is smallest if the offset of all takes what rows and columns share
            row, col = float(users * means[0]), float(items * means[1])
            model = replace(model, shift=model.shift + row + col, rows=model.rows - row, cols=model.cols - col)
        if side == 1 or f.p > 1.0:  # for p = 1 all components have one ridge, in any basis
            model = balance(f, model)
    return model


def relative_ridge(sigma: Array, p: float) -> Array:
    """The ridge of each component, relative to that of the first; for p > 1 it would vanish with the component."""
    relative: Array = np.maximum(sigma / max(float(sigma.max(initial=0.0)), 1e-300), MIN_SHARE) ** (p - 1.0)
    return relative


def balance(f: CompletionProblem, model: Factors) -> Factors:
    """The same matrix with the root of its weighted singular values in both factors.

    From Gram matrices: their rounding affects the balance of the factors, but not their product.
    """
    r, back = _gram_root(gram_matrix(model.lefts, f.rows))
    s, there = _gram_root(gram_matrix(model.rights, f.cols))
    u, sigma, vt = svd(r @ s.T)
    lefts = model.lefts @ (back @ (u * np.sqrt(sigma))).astype(model.lefts.dtype)
    rights = model.rights @ (there @ (vt.T * np.sqrt(sigma))).astype(model.rights.dtype)
    return replace(model, lefts=lefts, rights=rights, sigma=sigma)


def _gram_root(gram: Array) -> tuple[Array, Array]:
    """``R`` with ``R.T @ R`` the Gram matrix, and its pseudo-inverse."""
    squares, vectors = np.linalg.eigh(gram)
    real = squares > len(squares) * EPS * max(float(squares[-1]), 1e-300)
    roots = np.where(real, np.sqrt(np.where(real, squares, 1.0)), 0.0)
    return roots[:, None] * vectors.T, vectors * np.where(real, 1.0 / np.where(real, roots, 1.0), 0.0)


# ---------------------------------------------------------------- strengths


def max_strength(f: CompletionProblem) -> float:
    """The strength from which on the matrix of the ratings alone is zero for p = 1."""
    e, (m, n) = f.entries, f.entries.pattern.shape
    slope = e.s * e.loss.derivative(e.offsets(e.offsets_only), e.y)
    gradient = OnPattern(e.pattern, 0.5 * f.n * slope).scaled(1.0 / f.rows[:m], 1.0 / f.cols[:n])
    first = leading(gradient, lambda s: np.eye(1, len(s))[0], None)
    return max(float(first.values[0]), MIN_SHARE * (e.target_norm + abs(e.base) or 1.0))


def min_strength(f: CompletionProblem, first: float) -> float:
    """The lowest strength of a penalty that begins with ``first``."""
    return MIN_SHARE * max(first, math.sqrt(f.n * f.side.zero_value))


def estimate_strength(f: CompletionProblem, model: Factors) -> float:
    r"""The strength of the penalty whose minimiser a minimiser over the ball is.

    With the gradient G of the mean over n ratings, :math:`-n \langle G, Y\rangle = 2 \lambda \|Y\|_{S_p}^p`.
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
    """Targets and weights of the squares that majorise the loss at the predictions of a model.

    In the order of rows or of columns. Those of squares do not depend on the model, and are kept.
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
    share = np.broadcast_to(kind.type(curvature), f.n)  # takes no memory
    pair = target[order].astype(kind), share if weight is None else (weight[order] * (f.n * curvature)).astype(kind)
    if is_squared(e.loss):
        cache[side] = pair
    return pair


def update_factors(f: CompletionProblem, model: Factors, side: int, ridge: Array, scale: Array) -> Factors:
    """The model after the regressions of rows (``side`` 0) or columns (1), which start from the model.

    ``ridge`` is the penalty of each component, and ``scale`` its factor for each row or column of the matrix, which is
    one for those of side information.
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
    extra = extra[: len(weights)]  # a new user may have no features, which stand behind the lines of B
    shared, change = diagonalize(gram_matrix(extra, np.sqrt(weights)), ridge)
    change, other = change.astype(kind), other.astype(kind, copy=False)

    def columns(offset: Any, factor: Array) -> Array:  # the offset is the first coordinate of a regression
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
    """The factors of the rows of T, given those of items (``side`` 0), or of the columns of S: all one regression."""
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
    """The model for a problem with other side information, or where users and items have moved to new places.

    New users and items are zero, and the factors beyond the ratings are regressed on the others.
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
    """A known block of side information times ``block``: of S for side 0, of the transpose of T for side 1."""
    from projfree.numerics.entries_kernels import times_block

    at, values = matrix.pattern, matrix.values
    indptr, indices, order = at.by_column if (side == 1) != transposed else (at.indptr, at.indices, slice(None))
    values = np.broadcast_to(kind.type(1), len(values)) if values.strides == (0,) else values[order].astype(kind)
    block, out = np.ascontiguousarray(block, kind), np.empty((len(indptr) - 1, block.shape[1]), kind)
    parallel_for_rows(lambda start, stop: times_block(indptr, indices, values, block, out, start, stop), indptr)
    return out


def diagonalize(gram: Array, ridge: Array) -> tuple[Array, Array]:
    r"""Coordinates in which a penalty is the identity and a Gram matrix is diagonal: this diagonal, and C.

    With :math:`x = C z`, :math:`C^T \mathrm{diag}(\rho)\,C = I` and :math:`C^T G C` diagonal, no row multiplies by the
    Gram matrix, and the inverse of the sum is :math:`C (1 + \Lambda)^{-1} C^T`, which is never singular.
    """
    root = 1.0 / np.sqrt(np.maximum(ridge, max(EPS * float(np.trace(gram)), 1e-300)))
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    return np.maximum(values, 0.0), root[:, None] * vectors


def gram_matrix(factor: Array, weights: Array | None = None) -> Array:
    """``(D F)^T D F`` in double precision."""
    rows = factor.astype(np.float64, copy=False) if weights is None else factor * weights[:, None]
    gram: Array = rows.T @ rows
    return gram
