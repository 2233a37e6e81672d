r"""Alternating ridge regressions for Schatten-penalised completion: the fast road to a good answer.

With the weighted matrix :math:`Y = P \Sigma Q^T` and
:math:`\sigma^p \le \tfrac p2 s^{p-2}\sigma^2 + \text{const}` the problem

.. math:: \min_{X, b} \sum_i \omega_i\,\ell(X_{r_i c_i} + o_i(b), y_i) + \kappa\|b\|^2
          + \tfrac{2\lambda}{p} \|Y\|_{S_p}^p

has, for :math:`X = L R^T` balanced so that both factors carry :math:`\Sigma^{1/2}`, a majorant in L with the diagonal
ridge :math:`\rho_j = \lambda\,\sigma_j^{p-1}` (and likewise in R). Row i of L and its offset are a regression of their
own,

.. math:: \sum_{t \in \text{row } i} \omega_t\,(L_i \cdot R_{j_t} + b_i - e_t)^2 + \tfrac{L_\ell}{2}\,\kappa b_i^2
          + d_i^2 \sum_c \rho_c L_{ic}^2,

where e is what the offsets of others leave of the targets; a loss other than squares is majorised by its largest
curvature :math:`L_\ell` at the present predictions. The squares of side information give all rows one Gram matrix and
each a right-hand side. At a fixed point :math:`\|\nabla\|_* = 2\lambda \|Y\|_{S_p}^{p-1}`: the answer also minimises
over the ball of its own norm, up to the rank, and the certificate of the convex problem judges that.

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
from projfree.runtime import over_rows, single_blas
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State

#: Singular values count as at least this part of the largest in the ridge, which p > 1 would let vanish with them.
LEAST = 1e-6
#: How strongly the strength of the penalty follows the norm that is wanted, and the most it changes in a sweep.
FOLLOW, MOST = 0.7, 2.0
#: Strengths are at least this part of the first, and that of the size of all targets: without any, as for ratings that
#: are constant or a ball that is wider than they need, the regressions would have no unique answer.
WEAKEST = 1e-9
#: Without a penalty the first one is this part of the strongest.
FIRST = 0.3
#: The size of the first factors, for targets of the unit.
SMALL = 0.1
#: Components below this part of the first are begun anew on a path, with entries of about this size.
DEAD, NEW = 1e-3, 0.03
#: From so many ratings on, regressions are in single precision: what they leave is far above its rounding.
SINGLE = 50_000
#: Conjugate gradient steps for a row, which begins where it is; columns are padded to a multiple of the vector lanes.
STEPS, LANES = 3, 8
#: Rows that are worked on at once, so that they stay in a processor's cache.
BLOCK = 4096


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
        hardly depend on p. By default it follows the norm of the iterate, so that this becomes the ball's radius.
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
            (m, n), rank = f.shape, min(self.rank, *f.shape)
            rights = SMALL * math.sqrt(f.entries.unit) * np.random.default_rng(seed).standard_normal((n, rank))
            model = Factors.of(f, np.zeros((m, rank)), rights, model.offsets, np.ones(rank))
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
        model = balanced(f, model)
        dead = model.sigma <= DEAD * max(float(model.sigma.max(initial=0.0)), 1e-300)
        if dead.any():
            rng, lefts, rights = np.random.default_rng(seed), model.lefts.copy(), model.rights.copy()
            lefts[:, dead] = 0.0  # so that the matrix, and its norm, are those of the others
            size = NEW * max(float(np.abs(rights).max()), SMALL * math.sqrt(f.entries.unit))
            rights[:, dead] = size * rng.standard_normal((len(rights), int(dead.sum())))
            model = replace(model, lefts=lefts, rights=rights, sigma=np.where(dead, 0.0, model.sigma))
        return self.state_of(f, model, seed, strength)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> AlternatingState:
        assert isinstance(state, AlternatingState)
        assert isinstance(f, CompletionProblem)
        strength = FIRST * strongest(f) if math.isnan(state.strength) else state.strength
        first = state.first if math.isfinite(state.first) else strength
        with single_blas():  # products with few columns, and threads of our own
            model = sweep(f, Factors.of_point(f, state.x, state.sigma).cast(precision(f)), strength)
        if self.penalty is None:
            radius: float = ball.radius  # type: ignore[attr-defined]  # the ball of the problem
            strength *= float(np.clip((lp_norm(model.sigma, f.p) / radius) ** FOLLOW, 1.0 / MOST, MOST))
            strength = max(strength, weakest(f, first))
        return replace(state, t=state.t + 1, x=model.point(f), strength=strength, first=first, sigma=model.sigma)


def precision(f: CompletionProblem) -> Any:
    """That of the regressions."""
    return np.dtype(np.float32 if f.n >= SINGLE else np.float64)


def sweep(f: CompletionProblem, now: Factors, strength: float) -> Factors:
    """The model after regressions of all rows and then of all columns."""
    for side in (0, 1):
        scale = (f.rows, f.cols)[side][: f.entries.pattern.shape[side]] ** 2
        now = regress(f, now, side, strength * spread(now.sigma, f.p), scale)
        (every, users, items), means = f.entries.kinds, (now.rows.mean(), now.cols.mean())
        if every:  # the offset of all takes up what rows and columns share, as their ridge asks for
            row, col = float(users * means[0]), float(items * means[1])
            now = replace(now, shift=now.shift + row + col, rows=now.rows - row, cols=now.cols - col)
        if side == 1 or f.p > 1.0:  # for p = 1 all components have one ridge, in any basis
            now = balanced(f, now)
    return now


def spread(sigma: Array, p: float) -> Array:
    """The ridge of each component, relative to that of the first."""
    relative: Array = np.maximum(sigma / max(float(sigma.max(initial=0.0)), 1e-300), LEAST) ** (p - 1.0)
    return relative


def balanced(f: CompletionProblem, now: Factors) -> Factors:
    """The same matrix with the root of its weighted singular values in both factors, and these values.

    From Gram matrices: whatever their rounding does to the balance, the matrix is the same but for directions that it
    hides.
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
    slope = e.s * e.loss.derivative(e.offsets(e.offsets_alone), e.y)
    gradient = OnPattern(e.pattern, 0.5 * f.n * slope).scaled(1.0 / f.rows[:m], 1.0 / f.cols[:n])
    first = leading(gradient, lambda s: np.eye(1, len(s))[0], None)
    return max(float(first.values[0]), WEAKEST * (e.size_of_targets() or 1.0))


def weakest(f: CompletionProblem, first: float) -> float:
    """The strength below which the penalty does not fall that begins with ``first``."""
    return WEAKEST * max(first, math.sqrt(f.n * f.side.at_zero))


def strength_of(f: CompletionProblem, model: Factors) -> float:
    r"""The strength of the penalty that a minimiser over the ball of its norm has.

    With the gradient G of the mean over n ratings, :math:`-n \langle G, Y\rangle = 2 \lambda \|Y\|_{S_p}^p`.
    """
    powers = float(np.sum(model.sigma**f.p))
    if not powers:
        return strongest(f)
    x = model.point(f)
    gradient: Any = f.open().evaluate(x).slope.gradient
    found = -0.5 * f.n * gradient.inner(x.w) / powers * float(model.sigma.max()) ** (f.p - 1.0)
    return max(float(found), WEAKEST * (f.entries.size_of_targets() or 1.0))


# ---------------------------------------------------------------- regressions


def targets(f: CompletionProblem, now: Factors, side: int) -> tuple[Array, Array]:
    """Targets and weights of the squares that lie above the loss and touch it at the predictions of a model.

    In the order of rows or of columns. Those of squares stay the same.
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
    """The model after the regressions of rows (``side`` 0) or columns (1), begun at what they are.

    Parameters
    ----------
    ridge : ndarray
        The penalty of each component.
    scale : ndarray
        What it is multiplied by for each row or column of the matrix; it is one for those of side information.
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
    table = _padded(other @ change, 1.0, free)
    ridges, common = np.ones(table.shape[1], kind), np.zeros(table.shape[1], kind)
    ridges[:free], common[free : free + k] = 0.5 * e.loss.smoothness * e.ridge, shared
    pull = np.zeros((0, table.shape[1]), kind)
    if len(far):
        pull = _padded(products(known, far * weights[:, None], side, kind) @ change, 0.0, free)
    offset, new = np.zeros(len(own)), np.empty((len(own) + len(f.side.weights[1 - side]), k), kind)
    given = indptr, indices, target, kind.type(e.base + now.shift), theirs.astype(kind), weight, table
    inverse, own, scale = np.linalg.inv(change).T, own.astype(kind, copy=False), scale.astype(kind)

    def block(start: int, stop: int) -> None:  # of a size that fits a cache
        for first in range(start, stop, BLOCK):
            part = slice(first, min(first + BLOCK, stop))
            out = _padded(own[part] @ inverse, mine[part], free)
            right = pull[part] if len(pull) else pull
            ridge_rows(*given, ridges, scale, free, common, right, STEPS, out, part.start, part.stop)
            np.matmul(out[:, free : free + k], change.T, out=new[part])
            offset[part] = out[:, 0] if free else 0.0

    over_rows(block, indptr)
    new[len(own) :] = lines_beyond(f, other, side, ridge)
    if side == 0:
        return replace(now, lefts=new, rows=offset)
    return replace(now, rights=new, cols=offset)


def lines_beyond(f: CompletionProblem, other: Array, side: int, ridge: Array) -> Array:
    """The factors of the rows of T, given those of items (``side`` 0), or of the columns of S: all one regression."""
    kind, first, known = precision(f), f.side.counts[1 - side], f.side.known[1 - side]
    found = np.zeros((len(f.side.weights[1 - side]), len(ridge)), kind)
    if len(found):
        sums, (values, basis) = products(known, other, 1 - side, kind, True), common_basis(gram_matrix(other), ridge)
        for part, w in ((slice(first), f.implicit), (slice(first, None), 1.0)):
            found[part] = sums[part] @ (w * (basis / (1.0 + w * values)) @ basis.T).astype(kind)
    return found


def transferred(
    f: CompletionProblem, model: Factors, strength: float, users: Array | None = None, items: Array | None = None
) -> Factors:
    """The model for a problem with other side information, or where users and items have moved to new places.

    New users and items are zero, and the factors beyond the ratings are those that belong to the others.
    """
    m, n = f.entries.pattern.shape

    def placed(values: Array, at: Array | None, count: int) -> Array:
        out = np.zeros((count, *values.shape[1:]), values.dtype)
        out[slice(None) if at is None else at] = values
        return out

    left, rows = (placed(values, users, m) for values in (model.left, model.rows))
    right, cols = (placed(values, items, n) for values in (model.right, model.cols))
    ridge = strength * spread(model.sigma, f.p)
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
    over_rows(lambda start, stop: times_block(indptr, indices, values, block, out, start, stop), indptr)
    return out


def common_basis(gram: Array, ridge: Array) -> tuple[Array, Array]:
    r"""Coordinates in which a penalty is the identity and a Gram matrix is diagonal: this diagonal, and C.

    With :math:`x = C z`, :math:`C^T \mathrm{diag}(\rho)\,C = I` and :math:`C^T G C` diagonal no row has to multiply by
    the Gram matrix, and the inverse of both is :math:`C (1 + \Lambda)^{-1} C^T`, in which nothing can be singular.
    """
    root = 1.0 / np.sqrt(np.maximum(ridge, max(EPS * float(np.trace(gram)), 1e-300)))
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    return np.maximum(values, 0.0), root[:, None] * vectors


def _padded(factor: Array, offset: Array | float, free: int) -> Array:
    """The offsets, if they are free, and the factors beside them, in a number of columns that processors like."""
    k = free + factor.shape[1]
    out = np.zeros((len(factor), -(-k // LANES) * LANES), factor.dtype)
    out[:, free:k] = factor
    if free:
        out[:, 0] = offset
    return out


def gram_matrix(factor: Array, weights: Array | None = None) -> Array:
    """``(D F)^T D F`` in double precision."""
    rows = factor.astype(np.float64, copy=False) if weights is None else factor * weights[:, None]
    gram: Array = rows.T @ rows
    return gram
