r"""Alternating ridge regressions for completion with a Schatten penalty.

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
FIRST = 0.3
#: Strengths and ridges stay above this part of their scale, so that the regressions have unique answers.
WEAKEST = 1e-9
#: The size of random factors for targets of the unit, small beside what a first sweep finds.
SMALL = 0.1
#: Emptied components restart at this part of the largest entry: three sweeps can then grow them to their size.
RESTART = 0.03
#: From so many ratings on regressions are in single precision, which halves their memory traffic.
SINGLE = 50_000


@dataclass(frozen=True, kw_only=True)
class AlternatingState(State):
    """A state with the strength of the penalty, now and at first, and the singular values of the weighted matrix.

    The strengths are NaN before the first sweep that has to find one.
    """

    strength: float
    first: float
    sigma: Array


@dataclass(frozen=True, repr=False)
class Alternating(Solver):
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
        count("Alternating(rank=...)", self.rank)
        if self.penalty is not None:
            positive("Alternating(penalty=...)", self.penalty)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> AlternatingState:
        """The start if it has components, else small random ones."""
        assert isinstance(f, CompletionProblem)
        model = Factors.of_point(f, start)
        if not start.w.any():
            rank = min(self.rank, *f.shape)
            noise = np.random.default_rng(seed).standard_normal((f.shape[1], rank))
            rights = SMALL * math.sqrt(f.entries.unit) * noise
            model = Factors.of(f, np.zeros((f.shape[0], rank)), rights, model.offsets, np.ones(rank))
        return self.state_of(f, model, seed)

    def state_of(
        self, f: CompletionProblem, model: Factors, seed: int = 0, strength: float = math.nan
    ) -> AlternatingState:
        """The state of a model."""
        strength = self.penalty or strength
        x = model.point(f)
        return AlternatingState(t=0, x=x, seed=seed, strength=strength, first=strength, sigma=model.sigma)

    def resume(self, f: CompletionProblem, model: Factors, seed: int, strength: float = math.nan) -> AlternatingState:
        """The state of a model in which components that a strong penalty has emptied are small and random again."""
        model = balance(f, model)
        dead = model.sigma <= 1e-3 * max(float(model.sigma.max(initial=0.0)), 1e-300)
        if dead.any():
            lefts, rights = model.lefts.copy(), model.rights.copy()
            lefts[:, dead] = 0.0  # so that the matrix, and its norm, are those of the others
            largest = max(float(np.abs(rights).max()), SMALL * math.sqrt(f.entries.unit))
            noise = np.random.default_rng(seed).standard_normal((len(rights), int(dead.sum())))
            rights[:, dead] = RESTART * largest * noise
            model = replace(model, lefts=lefts, rights=rights, sigma=np.where(dead, 0.0, model.sigma))
        return self.state_of(f, model, seed, strength)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> AlternatingState:
        assert isinstance(state, AlternatingState)
        assert isinstance(f, CompletionProblem)
        strength = FIRST * strongest(f) if math.isnan(state.strength) else state.strength
        first = state.first if math.isfinite(state.first) else strength
        with single_blas_thread():  # products with few columns, beside threads of `parallel_for_rows`
            model = sweep(f, Factors.of_point(f, state.x, state.sigma).cast(precision(f)), strength)
        if self.penalty is None:  # the norm falls more slowly than the strength grows: the ratio is a safe factor
            radius: float = ball.radius  # type: ignore[attr-defined]  # the ball of the problem
            strength *= float(np.clip(lp_norm(model.sigma, f.p) / radius, 0.5, 2.0))
            strength = max(strength, weakest(f, first))
        return replace(state, t=state.t + 1, x=model.point(f), strength=strength, first=first, sigma=model.sigma)


def precision(f: CompletionProblem) -> Any:
    """The floating-point type of the regressions."""
    return np.dtype(np.float32 if f.n >= SINGLE else np.float64)


def sweep(f: CompletionProblem, now: Factors, strength: float) -> Factors:
    """The model after regressions of all rows and then of all columns."""
    for side in (0, 1):
        scale = (f.rows, f.cols)[side][: f.entries.pattern.shape[side]] ** 2
        now = regress(f, now, side, strength * relative_ridge(now.sigma, f.p), scale)
        (every, users, items), means = f.entries.kinds, (now.rows.mean(), now.cols.mean())
        if every:  # the ridge is smallest if the offset of all takes what rows and columns share
            row, col = float(users * means[0]), float(items * means[1])
            now = replace(now, shift=now.shift + row + col, rows=now.rows - row, cols=now.cols - col)
        if side == 1 or f.p > 1.0:  # for p = 1 all components have one ridge, in any basis
            now = balance(f, now)
    return now


def relative_ridge(sigma: Array, p: float) -> Array:
    """The ridge of each component, relative to that of the first; for p > 1 it would vanish with the component."""
    relative: Array = np.maximum(sigma / max(float(sigma.max(initial=0.0)), 1e-300), WEAKEST) ** (p - 1.0)
    return relative


def balance(f: CompletionProblem, now: Factors) -> Factors:
    """The same matrix with the root of its weighted singular values in both factors.

    From Gram matrices: their rounding affects the balance of the factors, but not their product.
    """
    r, back = _root(gram_matrix(now.lefts, f.rows))
    s, there = _root(gram_matrix(now.rights, f.cols))
    u, sigma, vt = svd(r @ s.T)
    lefts = now.lefts @ (back @ (u * np.sqrt(sigma))).astype(now.lefts.dtype)
    rights = now.rights @ (there @ (vt.T * np.sqrt(sigma))).astype(now.rights.dtype)
    return replace(now, lefts=lefts, rights=rights, sigma=sigma)


def _root(gram: Array) -> tuple[Array, Array]:
    """``R`` with ``R.T @ R`` the Gram matrix, and its pseudo-inverse."""
    squares, vectors = np.linalg.eigh(gram)
    real = squares > len(squares) * EPS * max(float(squares[-1]), 1e-300)
    roots = np.where(real, np.sqrt(np.where(real, squares, 1.0)), 0.0)
    return roots[:, None] * vectors.T, vectors * np.where(real, 1.0 / np.where(real, roots, 1.0), 0.0)


# ---------------------------------------------------------------- strengths


def strongest(f: CompletionProblem) -> float:
    """The strength from which on the matrix of the ratings alone is zero for p = 1."""
    e, (m, n) = f.entries, f.entries.pattern.shape
    slope = e.s * e.loss.derivative(e.offsets(e.offsets_only), e.y)
    gradient = OnPattern(e.pattern, 0.5 * f.n * slope).scaled(1.0 / f.rows[:m], 1.0 / f.cols[:n])
    first = leading(gradient, lambda s: np.eye(1, len(s))[0], None)
    return max(float(first.values[0]), WEAKEST * (e.size + abs(e.base) or 1.0))


def weakest(f: CompletionProblem, first: float) -> float:
    """The lowest strength of a penalty that begins with ``first``."""
    return WEAKEST * max(first, math.sqrt(f.n * f.side.at_zero))


def strength_of(f: CompletionProblem, model: Factors) -> float:
    r"""The strength of the penalty whose minimiser a minimiser over the ball is.

    With the gradient G of the mean over n ratings, :math:`-n \langle G, Y\rangle = 2 \lambda \|Y\|_{S_p}^p`.
    """
    powers = float(np.sum(model.sigma**f.p))
    if not powers:
        return strongest(f)
    x = model.point(f)
    gradient: Any = f.open().evaluate(x).slope.gradient
    found = -0.5 * f.n * gradient.inner(x.w) / powers * float(model.sigma.max()) ** (f.p - 1.0)
    return max(float(found), WEAKEST * (f.entries.size + abs(f.entries.base) or 1.0))


# ---------------------------------------------------------------- regressions


def targets(f: CompletionProblem, now: Factors, side: int) -> tuple[Array, Array]:
    """Targets and weights of the squares that majorise the loss at the predictions of a model.

    In the order of rows or of columns. Those of squares do not depend on the model, and are kept.
    """
    e, kind = f.entries, precision(f)
    known: dict[int, tuple[Array, Array]] = e.regressions
    if side in known:
        return known[side]
    target, weight, curvature = e.y, e.weight, 0.5 * e.loss.smoothness
    if not is_squared(e.loss):
        u = LowRank.of(now.left, now.right).on_places(e.pattern) + e.offsets(now.offsets)
        target = u - e.loss.derivative(u, e.y) / e.loss.smoothness
    order = slice(None) if side == 0 else e.pattern.by_column[2]
    share = np.broadcast_to(kind.type(curvature), f.n)  # takes no memory
    found = target[order].astype(kind), share if weight is None else (weight[order] * (f.n * curvature)).astype(kind)
    if is_squared(e.loss):
        known[side] = found
    return found


def regress(f: CompletionProblem, now: Factors, side: int, ridge: Array, scale: Array) -> Factors:
    """The model after the regressions of rows (``side`` 0) or columns (1), which start from the model.

    ``ridge`` is the penalty of each component, and ``scale`` its factor for each row or column of the matrix, which is
    one for those of side information.
    """
    from projfree.completion.kernels import ridge_rows

    e, kind, k = f.entries, precision(f), len(ridge)
    own, other, far = (now.left, now.right, now.beside) if side == 0 else (now.right, now.left, now.below)
    mine, theirs = (now.rows, now.cols) if side == 0 else (now.cols, now.rows)
    indptr, indices = (e.pattern.indptr, e.pattern.indices) if side == 0 else e.pattern.by_column[:2]
    target, weight = targets(f, now, side)
    known, free = f.side.known[side], int(e.kinds[1 + side])
    weights = f.n * f.side.weights[side]
    far = far[: len(weights)]  # a new user may have no features, which stand behind the lines of B
    shared, change = common_basis(gram_matrix(far, np.sqrt(weights)), ridge)
    change, other = change.astype(kind), other.astype(kind, copy=False)

    def columns(offset: Any, factor: Array) -> Array:  # the offset is the first coordinate of a regression
        return np.hstack([np.full((len(factor), 1), np.reshape(offset, (-1, 1)), kind)[:, :free], factor])

    table, out = columns(1.0, other @ change), columns(mine, own.astype(kind, copy=False) @ np.linalg.inv(change).T)
    ridges, common = columns(0.5 * e.loss.smoothness * e.ridge, np.ones((1, k), kind))[0], columns(0.0, shared[None])[0]
    pull = np.zeros((0, free + k), kind)
    if len(far):
        pull = columns(0.0, products(known, far * weights[:, None], side, kind) @ change)
    given = indptr, indices, target, kind.type(e.base + now.shift), theirs.astype(kind), weight, table
    rest = ridges, scale.astype(kind), free, common.astype(kind), pull, out
    parallel_for_rows(lambda start, stop: ridge_rows(*given, *rest, start, stop), indptr)
    new = np.concatenate([out[:, free:] @ change.T, lines_beyond(f, other, side, ridge)])
    offset = out[:, 0].astype(np.float64) if free else np.zeros(len(own))
    return replace(now, lefts=new, rows=offset) if side == 0 else replace(now, rights=new, cols=offset)


def lines_beyond(f: CompletionProblem, other: Array, side: int, ridge: Array) -> Array:
    """The factors of the rows of T, given those of items (``side`` 0), or of the columns of S: all one regression."""
    kind, first, known = precision(f), f.side.counts[1 - side], f.side.known[1 - side]
    found = np.zeros((len(f.side.weights[1 - side]), len(ridge)), kind)
    if len(found):
        sums, (values, basis) = products(known, other, 1 - side, kind, True), common_basis(gram_matrix(other), ridge)
        for part, w in ((slice(first), f.implicit), (slice(first, None), 1.0)):
            found[part] = sums[part] @ (w * (basis / (1.0 + w * values)) @ basis.T).astype(kind)
    return found


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
    lefts = np.concatenate([left, lines_beyond(f, right, 0, ridge)])
    rights = np.concatenate([right, lines_beyond(f, left, 1, ridge)])
    return replace(model, lefts=lefts, rights=rights, rows=rows, cols=cols)


def products(known: OnPattern, block: Array, side: int, kind: Any, transposed: bool = False) -> Array:
    """A known block of side information times ``block``: of S for side 0, of the transpose of T for side 1."""
    from projfree.numerics.entries_kernels import times_block

    at, values = known.pattern, known.values
    indptr, indices, order = at.by_column if (side == 1) != transposed else (at.indptr, at.indices, slice(None))
    values = np.broadcast_to(kind.type(1), len(values)) if values.strides == (0,) else values[order].astype(kind)
    block, out = np.ascontiguousarray(block, kind), np.empty((len(indptr) - 1, block.shape[1]), kind)
    parallel_for_rows(lambda start, stop: times_block(indptr, indices, values, block, out, start, stop), indptr)
    return out


def common_basis(gram: Array, ridge: Array) -> tuple[Array, Array]:
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
