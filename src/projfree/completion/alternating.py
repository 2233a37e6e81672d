r"""Alternating ridge regressions for Schatten-penalised completion: the fast road to a good answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import LowRank, Point
from projfree.checks import Array, count, positive
from projfree.completion.als_updates import Sides, precision, regressed, with_offsets_regressed
from projfree.completion.implicit import ImplicitObjective
from projfree.completion.implicit_als import gram_matrix
from projfree.completion.offsets import OffsetObjective
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.spectra import EPS, leading, svd
from projfree.objectives.base import SmoothFunction
from projfree.runtime import single_blas
from projfree.sets.base import ConstraintSet
from projfree.sets.weighted import WeightedSchattenBall
from projfree.solvers.base import Solver, State

#: Singular values count as at least this part of the largest in the ridge, which p > 1 would let vanish with them.
LEAST = 1e-6
#: How strongly the strength of the penalty follows the norm that is wanted, and the most it changes in a sweep.
FOLLOW, MOST = 0.7, 2.0
#: Strengths are at least this part of the first, and that of the size of all targets, of features too: without any, as
#: where ratings are constant or the ball is wider than they need, the regressions would have no unique answer.
WEAKEST = 1e-9
#: Without a penalty the first one is this part of the strongest.
FIRST = 0.3
#: The size of the first factors, for targets of the unit.
SMALL = 0.1
#: Components below this part of the first are begun anew by `carry`, with entries of about this size.
DEAD, NEW = 1e-3, 0.03
#: Sweeps that settle the offsets before the strongest penalty is measured.
OFFSET_SWEEPS = 5

Sweepable = OffsetObjective | ImplicitObjective


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

    With :math:`Y = D_r X D_c = P \Sigma Q^T` and :math:`\sigma^p \le \tfrac p2 s^{p-2}\sigma^2 + \text{const}` the
    problem

    .. math:: \min_{X, b} \sum_i \omega_i\,\ell(X_{r_i c_i} + o_i(b), y_i) + \kappa\|b\|^2
              + \tfrac{2\lambda}{p} \|Y\|_{S_p}^p

    has, for :math:`X = L R^T` balanced so that both factors carry :math:`\Sigma^{1/2}`, a majorant in L with the
    diagonal ridge :math:`\lambda\,\sigma_j^{p-1} d_i^2` (and likewise in R): each row of L is a regression of its own.
    At a fixed point :math:`\|\nabla\|_* = 2\lambda \|Y\|_{S_p}^{p-1}`: the answer also minimises over the ball of its
    own norm, up to the rank, and the certificate of the convex problem judges that. Iterates may lie outside the ball.

    Parameters
    ----------
    rank : int
        Components.
    penalty : float, optional
        The strength :math:`\lambda\sigma_1^{p-1}` of the penalty, that of the leading component, of which good ones
        hardly depend on p. By default it follows the norm of the iterate, so that this becomes the ball's radius.

    Examples
    --------
    >>> import numpy as np
    >>> from itertools import islice
    >>> from projfree import Entries, Squared, as_data, iterate
    >>> from projfree.completion.offsets import OffsetObjective
    >>> from projfree.sets import WeightedSchattenBall
    >>> from projfree.completion.alternating import Alternating
    >>> data = as_data(Entries([0, 0, 1, 1], [0, 1, 0, 1], (2, 2), factored=True), [5.0, 3.0, 4.0, 1.0])
    >>> f, ball = OffsetObjective(Squared(), data, base=3.25), WeightedSchattenBall(1.0, 0.5, np.ones(2), np.ones(2))
    >>> *_, last = islice(iterate(f, ball, Alternating(rank=1)), 50)
    >>> round(float(last.sigma.sum()), 3)
    0.5
    """

    rank: int = 40
    penalty: float | None = None

    def __post_init__(self) -> None:
        count("Alternating(rank=...)", self.rank)
        if self.penalty is not None:
            positive("Alternating(penalty=...)", self.penalty)

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not (isinstance(f, Sweepable) and isinstance(ball, WeightedSchattenBall) and ball.p < 2.0):
            raise TypeError(
                f"Alternating needs an OffsetObjective and a WeightedSchattenBall with p below 2, got "
                f"{type(f).__name__} and {ball!r}; use CorrectivePrimalAveraging."
            )

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> AlternatingState:
        """The start where it has components, else small random ones."""
        f, ball = _known(f, ball)
        w: Any = start.w
        if not w.rank:
            (m, n), rng = f.shape, np.random.default_rng(seed)
            rank = min(self.rank, m, n)
            right = SMALL * math.sqrt(unit_of(f.entries)) * rng.standard_normal((n, rank))
            start = f.point(LowRank.of(np.zeros((m, rank)), right), start.intercept)
            sigma = np.ones(rank)
        else:
            sides, sigma = balanced(Sides.of(f, start), ball)
            start = sides.point(f)
        strength = self.penalty or math.nan
        return AlternatingState(t=0, x=start, seed=seed, strength=strength, first=strength, sigma=sigma)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> AlternatingState:
        """The state with components that a strong penalty has emptied made small and random again."""
        assert isinstance(state, AlternatingState)
        f, ball = _known(f, ball)
        strength = self.penalty or state.strength
        if not len(state.sigma):
            return replace(self.init(f, ball, state.x, state.seed), strength=strength, first=strength)
        state = replace(state, t=0, strength=strength, first=strength)
        dead = state.sigma <= DEAD * max(float(state.sigma[0]), 1e-300)
        if not dead.any():
            return state
        now, rng = Sides.of(f, state.x), np.random.default_rng(state.seed)
        left, right = now.lefts.copy(), now.rights.copy()
        left[:, dead] = 0.0  # so that the matrix, and its norm, are those of the others
        size = NEW * max(float(np.abs(right).max()), SMALL * math.sqrt(unit_of(f.entries)))
        right[:, dead] = size * rng.standard_normal((len(right), int(dead.sum())))
        sigma = np.where(dead, 0.0, state.sigma)
        return replace(state, x=now.with_factors(left, right).point(f), sigma=sigma)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> AlternatingState:
        assert isinstance(state, AlternatingState)
        f, ball = _known(f, ball)
        strength = FIRST * strongest(f, ball) if math.isnan(state.strength) else state.strength
        first = state.first if math.isfinite(state.first) else strength
        with single_blas():  # products with few columns, and threads of our own
            begun = Sides.of(f, state.x).in_precision(precision(f.entries))
            now, sigma = swept(f, ball, begun, state.sigma, strength)
        if self.penalty is None:
            strength *= float(np.clip((lp_norm(sigma, ball.p) / ball.radius) ** FOLLOW, 1.0 / MOST, MOST))
            strength = max(strength, weakest(f, first))
        return replace(state, t=state.t + 1, x=now.point(f), strength=strength, first=first, sigma=sigma)


def swept(f: Sweepable, ball: WeightedSchattenBall, now: Sides, sigma: Array, strength: float) -> tuple[Sides, Array]:
    """The sides after one sweep and the singular values of the weighted matrix."""
    for side, weights in enumerate(_weights(f, ball)):
        now = regressed(f, now, side, strength * spread(sigma, ball.p), weights**2).centred(f.entries.kinds)
        if side == 1 or ball.p > 1.0:  # for p = 1 all components have one ridge, in any basis
            now, sigma = balanced(now, ball)
        f.entries.workspace.rows_read += f.entries.data.n
    return now, sigma


def spread(sigma: Array, p: float) -> Array:
    """The ridge of each component, relative to that of the first."""
    relative: Array = np.maximum(sigma / max(float(sigma.max(initial=0.0)), 1e-300), LEAST) ** (p - 1.0)
    return relative


def balanced(now: Sides, ball: WeightedSchattenBall) -> tuple[Sides, Array]:
    """The same matrix with the root of its weighted singular values in both factors, and these values.

    From Gram matrices: whatever their rounding does to the balance, the matrix is the same but for directions that it
    hides.
    """
    (m, n), rows, cols = (len(now.left), len(now.right)), ball.rows, ball.cols
    r, back = _root(gram_matrix(now.left, rows[:m]) + gram_matrix(now.below, rows[m:]))
    s, there = _root(gram_matrix(now.right, cols[:n]) + gram_matrix(now.beside, cols[n:]))
    u, sigma, vt = svd(r @ s.T)
    left, right = back @ (u * np.sqrt(sigma)), there @ (vt.T * np.sqrt(sigma))
    return now.turned(left, right), sigma


def _root(gram: Array) -> tuple[Array, Array]:
    """``R`` with ``R.T @ R`` the Gram matrix, and its pseudo-inverse."""
    squares, vectors = np.linalg.eigh(gram)
    real = squares > len(squares) * EPS * max(float(squares[-1]), 1e-300)
    roots = np.where(real, np.sqrt(np.where(real, squares, 1.0)), 0.0)
    return roots[:, None] * vectors.T, vectors * np.where(real, 1.0 / np.where(real, roots, 1.0), 0.0)


def unit_of(e: OffsetObjective) -> float:
    """The root mean square of the targets without their base, in steps of 1,024: one for ratings of usual sizes.

    Factors begin with its root, so that the sweeps do the same for ratings in any unit. Targets do not count as more
    than the loss lets them pull, or a single outlier would be the unit of all.
    """
    size = e.data.deviation(e.base, _most_pull(e))
    return float(1024.0 ** round(math.log(size, 1024.0))) if size > 0.0 else 1.0


def offsets_alone(e: OffsetObjective) -> Sides:
    """The best offsets without a matrix."""
    (m, n), none = e.shape, np.zeros((0, 1))
    now = Sides(np.zeros((m, 1)), np.zeros((n, 1)), np.zeros(m), np.zeros(n), 0.0, none, none)
    for _ in range(OFFSET_SWEEPS):
        for side in (0, 1):
            now = with_offsets_regressed(e, now, side).centred(e.kinds)
    return now


def strongest(f: Sweepable, ball: WeightedSchattenBall) -> float:
    """The strength from which on the matrix of the ratings alone is zero for p = 1, after a fit of the offsets."""
    e, now = f.entries, offsets_alone(f.entries)
    rows, cols = _weights(f, ball)
    point = e.point(LowRank.of(now.left, now.right), now.offsets)
    gradient = (0.5 * e.data.n * e.slope_at(point)).scaled(1.0 / rows, 1.0 / cols)
    found = leading(gradient, lambda s: np.eye(1, len(s))[0], None)
    return max(float(found.values[0]), least_strength(e))


def least_strength(e: OffsetObjective) -> float:
    """The least strength that any model has, by the size of the targets, each as far as the loss lets it pull."""
    return WEAKEST * (e.data.size_of_targets(e.base, _most_pull(e)) or 1.0)


def _most_pull(e: OffsetObjective) -> float:
    """The residual from which on a loss has its largest slope: without bound for squares."""
    far = math.sqrt(np.finfo(np.float64).max) * np.array([-1.0, 1.0])
    return float(np.abs(e.loss.derivative(far, np.zeros(2))).max()) / e.loss.smoothness


def weakest(f: Sweepable, first: float) -> float:
    """The strength below which the penalty does not fall that begins with ``first``."""
    return WEAKEST * max(first, math.sqrt(f.entries.data.n * f.known))


def _weights(f: Sweepable, ball: WeightedSchattenBall) -> tuple[Array, Array]:
    """The weights of the rows and columns of the matrix of ratings."""
    m, n = f.entries.shape
    return ball.rows[:m], ball.cols[:n]


def _known(f: SmoothFunction, ball: ConstraintSet) -> tuple[Sweepable, WeightedSchattenBall]:
    assert isinstance(f, Sweepable)
    assert isinstance(ball, WeightedSchattenBall)
    return f, ball
