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
from projfree.completion.factors import Factors
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
#: Rows that are worked on at once: as many as fit a processor's cache.
BLOCK = 2048
#: A ridge counts as at least this part of the trace of a Gram matrix: what is smaller is lost in rounding.
LEAST_RIDGE = 1e-12


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
        if start.w.any():
            return self.state_of(f, Factors.of_point(f, start), seed)
        (m, n), rng = f.shape, np.random.default_rng(seed)
        rank = min(self.rank, m, n)
        rights = SMALL * math.sqrt(f.entries.unit) * rng.standard_normal((n, rank))
        offsets = Factors.zero(f, start.intercept).offsets
        return self.state_of(f, Factors.of(f, np.zeros((m, rank)), rights, offsets, np.ones(rank)), seed)

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
            rng, left, right = np.random.default_rng(seed), model.lefts.copy(), model.rights.copy()
            left[:, dead] = 0.0  # so that the matrix, and its norm, are those of the others
            size = NEW * max(float(np.abs(right).max()), SMALL * math.sqrt(f.entries.unit))
            right[:, dead] = size * rng.standard_normal((len(right), int(dead.sum())))
            model = Factors.of(f, left, right, model.offsets, np.where(dead, 0.0, model.sigma))
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
        x = model.point(f)
        return replace(state, t=state.t + 1, x=x, strength=strength, first=first, sigma=model.sigma)


def precision(f: CompletionProblem) -> Any:
    """That of the regressions."""
    return np.dtype(np.float32 if f.n >= SINGLE else np.float64)


def sweep(f: CompletionProblem, now: Factors, strength: float) -> Factors:
    """The model after regressions of all rows and then of all columns."""
    for side in (0, 1):
        scale = (f.rows, f.cols)[side][: f.entries.pattern.shape[side]] ** 2
        now = regress(f, now, side, strength * spread(now.sigma, f.p), scale).centred(f.entries.kinds)
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
    lefts, rights = now.lefts, now.rights
    r, back = _root(gram_matrix(lefts, f.rows))
    s, there = _root(gram_matrix(rights, f.cols))
    u, sigma, vt = svd(r @ s.T)
    lefts = multiply(lefts, (back @ (u * np.sqrt(sigma))).astype(lefts.dtype))
    rights = multiply(rights, (there @ (vt.T * np.sqrt(sigma))).astype(rights.dtype))
    return Factors.of(f, lefts, rights, now.offsets, sigma)


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
    return WEAKEST * max(first, math.sqrt(f.n * f.side.known))


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


@dataclass(frozen=True)
class Lines:
    """The ratings in the order of rows or columns, as the compiled regressions take them."""

    indptr: Array
    indices: Array
    target: Array
    weight: Array

    @classmethod
    def of(cls, f: CompletionProblem, now: Factors, side: int) -> Lines:
        """With targets of squares that lie above the loss and touch it at the predictions of a model."""
        e, at, kind = f.entries, f.entries.pattern, precision(f)
        if side in e.lines:
            known: Lines = e.lines[side]
            return known
        target, weight, curvature = e.y, e.weight, 0.5 * e.loss.smoothness
        if not is_squared(e.loss):
            u = LowRank.of(now.left, now.right).on_places(at) + e.offsets(now.offsets)
            target = u - e.loss.derivative(u, e.y) / e.loss.smoothness
        if weight is not None:
            weight = weight * (f.n * curvature)
        elif curvature != 1.0:
            weight = np.full(f.n, curvature)
        indptr, indices, order = (at.indptr, at.indices, slice(None)) if side == 0 else at.by_column
        parts = [np.zeros(0, kind) if part is None else part[order].astype(kind) for part in (target, weight)]
        lines = cls(indptr, indices, *parts)
        if is_squared(e.loss):
            e.lines[side] = lines
        return lines


def regress(f: CompletionProblem, now: Factors, side: int, ridge: Array, scale: Array) -> Factors:
    """The model after the regressions of rows (``side`` 0) or columns (1), begun at what they are.

    Parameters
    ----------
    ridge : ndarray
        The penalty of each component.
    scale : ndarray
        What it is multiplied by for each row or column of the matrix; it is one for those of side information.
    """
    from projfree.completion.kernels import ridge_rows, sums_of_rows

    e, kind, k = f.entries, precision(f), len(ridge)
    own, other, far = (now.left, now.right, now.beside) if side == 0 else (now.right, now.left, now.below)
    mine, theirs = (now.rows, now.cols) if side == 0 else (now.cols, now.rows)
    lines, free, beyond = Lines.of(f, now, side), int(e.kinds[1 + side]), f.side.counts[side]
    weights = f.n * f.side.weights[side]
    far = far[: len(weights)]  # a new user may have no features, which stand behind the lines of B
    basis = Basis.of(gram_matrix(far, np.sqrt(weights)), ridge, kind)
    table = _padded(basis.of_other(other), 1.0, free)
    ridges, shared = np.ones(table.shape[1], kind), np.zeros(table.shape[1], kind)
    ridges[:free] = 0.5 * e.loss.smoothness * e.ridge
    ridges[free : free + k], shared[free : free + k] = basis.ridge, basis.shared
    given: tuple[Any, ...] = (lines.indptr, lines.indices, lines.target, kind.type(e.base + now.shift))
    given += (theirs.astype(kind), lines.weight, table, ridges, scale.astype(kind), free, shared)
    # The sums of these over the places of a line are its products with the ones of B.
    both = np.concatenate([other, far[:beyond]], axis=1).astype(kind, copy=False) if f.implicit else None
    inverse = f.implicit * _ridge_inverse(f.implicit * gram_matrix(other), ridge) if f.implicit else None
    features = f.features[side]
    pull = None if features is None else (features.times(far[beyond:] * weights[beyond:, None])).astype(kind)
    found, offset, extra = np.empty((len(own), k), kind), np.zeros(len(own)), np.empty((len(own), k), kind)

    def block(start: int, stop: int) -> None:
        part = slice(start, stop)
        right = np.zeros((0, k), kind) if pull is None else pull[part]
        if both is not None and inverse is not None:
            sums = np.empty((stop - start, 2 * k), kind)
            sums_of_rows(lines.indptr, lines.indices, both, sums, start, stop)
            extra[part] = sums[:, :k] @ inverse.astype(kind)
            right = sums[:, k:] * kind.type(f.implicit) + (right if len(right) else 0)
        right = _padded(basis.of_other(right), 0.0, free) if len(right) else right.astype(kind)
        out = _padded(basis.of_own(own[part]), mine[part], free)
        ridge_rows(*given, right, STEPS, out, start, stop)
        found[part] = basis.back(out[:, free : free + k])
        if free:
            offset[part] = out[:, 0]

    def blocks(start: int, stop: int) -> None:  # arrays of all rows would be written to fresh memory, which is slower
        for first in range(start, stop, BLOCK):
            block(first, min(first + BLOCK, stop))

    over_rows(blocks, lines.indptr)
    lines_beyond = [extra] if f.implicit else [np.zeros((0, k), kind)]
    if (theirs_features := f.features[1 - side]) is not None:
        lines_beyond.append(_feature_factors(theirs_features, other, ridge).astype(kind))
    new = np.concatenate(lines_beyond)
    if side == 0:
        return replace(now, left=found, rows=offset, below=new)
    return replace(now, right=found, cols=offset, beside=new)


def _feature_factors(table: OnPattern, own: Array, ridge: Array) -> Array:
    """The factors of features, given those of the lines that have them; their weight is that of a rating."""
    factors: Array = table.transposed_times(own.astype(np.float64)) @ _ridge_inverse(gram_matrix(own), ridge)
    return factors


def _ridge_inverse(gram: Array, ridge: Array) -> Array:
    r"""The inverse of :math:`G + \mathrm{diag}(\rho)` for a positive semidefinite G and a positive ridge.

    In coordinates in which both are diagonal nothing can be singular: :math:`C (1 + \Lambda)^{-1} C^T` with
    :math:`C^T \mathrm{diag}(\rho)\,C = I` and :math:`C^T G C = \Lambda`.
    """
    root = 1.0 / np.sqrt(np.maximum(ridge, max(LEAST_RIDGE * float(np.trace(gram)), 1e-300)))
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    change = root[:, None] * vectors
    inverse: Array = (change / (1.0 + np.maximum(values, 0.0))) @ change.T
    return inverse


@dataclass(frozen=True)
class Basis:
    r"""Coordinates in which the penalty of the components and a Gram matrix are both diagonal.

    With :math:`x = C z`, :math:`C^T \mathrm{diag}(\rho)\,C = I` and :math:`C^T G C` diagonal, no row has to multiply by
    the Gram matrix. Without one C is the identity.
    """

    ridge: Array
    shared: Array
    change: Array | None
    kind: Any

    @classmethod
    def of(cls, gram: Array, ridge: Array, kind: Any) -> Basis:
        """The basis of a Gram matrix, which may be zero, and a penalty."""
        if not gram.any():
            return cls(ridge, np.zeros(len(ridge)), None, kind)
        root = 1.0 / np.sqrt(ridge)
        shared, vectors = np.linalg.eigh(root[:, None] * gram * root)
        return cls(np.ones(len(ridge)), np.maximum(shared, 0.0), root[:, None] * vectors, kind)

    def of_other(self, factor: Array) -> Array:
        """Rows of the other side, or right-hand sides, in these coordinates."""
        return self._times(factor, self.change)

    def of_own(self, factor: Array) -> Array:
        """Rows of this side in these coordinates."""
        return self._times(factor, None if self.change is None else np.linalg.inv(self.change).T)

    def back(self, factor: Array) -> Array:
        """Rows of this side as they were before."""
        return self._times(factor, None if self.change is None else self.change.T)

    def _times(self, factor: Array, by: Array | None) -> Array:
        return factor.astype(self.kind, copy=False) if by is None else multiply(factor, by.astype(self.kind))


def _padded(factor: Array, offset: Array | float, free: int) -> Array:
    """The offsets, if they are free, and the factors beside them, in a number of columns that processors like."""
    k = free + factor.shape[1]
    out = np.zeros((len(factor), -(-k // LANES) * LANES), factor.dtype)
    out[:, free:k] = factor
    if free:
        out[:, 0] = offset
    return out


def multiply(factor: Array, by: Array) -> Array:
    """``factor @ by`` by blocks of rows and in the precision of ``by``."""
    out = np.empty((len(factor), by.shape[1]), by.dtype)
    for start in range(0, len(factor), BLOCK):
        part = slice(start, start + BLOCK)
        np.matmul(factor[part].astype(by.dtype, copy=False), by, out=out[part])
    return out


def gram_matrix(factor: Array, weights: Array | None = None) -> Array:
    """``(D F)^T D F``, summed in double precision over blocks of rows."""
    total = np.zeros((factor.shape[1],) * 2)
    for start in range(0, len(factor), BLOCK):
        part = slice(start, start + BLOCK)
        block = factor[part] if weights is None else factor[part] * weights[part, None]
        total += block.T @ block
    return total
