"""Frank-Wolfe over an active set: pairwise or away steps, and quadratic corrections of all weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from projfree.algebra import UNIT, FactoredShape, Point, inner
from projfree.checks import Array, count, instance
from projfree.numerics.simplex_quadratic import minimise_on_simplex
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.sets.base import ConstraintSet
from projfree.solvers.active_set import ActiveSet
from projfree.solvers.base import Solver, State, bound_of, next_answer
from projfree.solvers.correction import correctable, curvature, falls
from projfree.steps import ExactLineSearch, Schedule, StepRule

#: A decrease of this many roundings of the value is none that values could tell; where so many such steps in a row did
#: not bring the gap below its least, only rounding is left.
NOTHING, IDLE = 16.0, 8
#: Where vertices come cheaply, those are taken in as well whose gap is this part of the best one's, at least so many.
SHARE, FEW = 0.3, 8


@dataclass(frozen=True, kw_only=True)
class PairwiseState(State):
    """A state with the active set, its curvature ``K`` where f is a quadratic, and an estimate of the gap.

    Attributes
    ----------
    starts, places, values, weights : ndarray
        The active set, see `ActiveSet`.
    K : ndarray or None
        The products of its vertices through the Hessian of a quadratic; None where they must be formed.
    estimate : float
        Half the Frank-Wolfe gap when the oracle was asked last.
    least, idle : float and int
        The least gap found so far, and how many steps that values could not tell have not lowered it.
    ahead : float
        How far the vertex that the oracle answered lies below the iterate; NaN where it was not asked about it.
    """

    starts: Array
    places: Array
    values: Array
    weights: Array
    K: Array | None = None
    estimate: float = math.inf
    least: float = math.inf
    idle: int = 0
    ahead: float = field(default=math.nan, metadata={"transient": True})

    @property
    def active_set(self) -> ActiveSet:
        return ActiveSet(tuple(self.x.w.shape), self.starts, self.places, self.values, self.weights)


@dataclass(frozen=True, repr=False)
class PairwiseFrankWolfe(Solver):
    r"""Move weight between the vertices that the iterate is a mixture of, and take in others when that brings more.

    .. math:: x = \sum_j \lambda_j v_j, \qquad
              a = \arg\max_j\langle\nabla f(x), v_j\rangle, \quad s = \arg\min_j\langle\nabla f(x), v_j\rangle, \quad
              v = \arg\min_{v \in C}\langle\nabla f(x), v\rangle

    Where :math:`\langle\nabla f(x), a - s\rangle \ge \langle\nabla f(x), x - v\rangle` the weight of a moves to s, else
    x moves towards v, which joins the active set. A correction does more in one step: it minimises the quadratic model
    of f over the hull of the active set and the new vertex, exactly, and drops the vertices without weight. Over
    polytopes the gap falls linearly, or to rounding in finitely many steps where f is a quadratic.

    A step costs one read of the data for the tangent, and one for the curvature among the vertices or the line search.
    The result holds the active set, and the start is one of its vertices until its weight is zero.

    Parameters
    ----------
    step_rule : StepRule
        How far steps without a correction go; `Backtracking` for a `BlackBox`.
    corrections : int
        Make a correction every so many steps; 0 for none. A `BlackBox` has none.
    lazy : bool
        Whether the oracle is asked only when the active set offers less than half the last Frank-Wolfe gap. A step
        that does not ask proves no bound by itself.
    away : bool
        Whether steps without a correction that add no vertex are away steps: x moves towards s, or away from a until a
        has no weight, whichever falls more steeply, and the weights of all other vertices keep their ratios.

    References
    ----------
    Tsuji, Tanaka, Pokutta (2022), Pairwise conditional gradients without swap steps; Lacoste-Julien, Jaggi (2015), On
    the global linear convergence of Frank-Wolfe optimization variants; Braun, Pokutta, Zink (2017), Lazifying
    conditional gradient algorithms; Halbey, Rakotomandimby, Besancon, Designolle, Pokutta (2025), Efficient quadratic
    corrections for Frank-Wolfe algorithms.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, PairwiseFrankWolfe, Squared, as_data, minimize
    >>> f = Objective(Squared(), as_data(np.diag([1.0, 2.0, 3.0]), [1.0, 1.0, 1.0]))
    >>> result = minimize(f, LpBall(1, radius=0.7), PairwiseFrankWolfe(), tol=1e-9)
    >>> result.w.round(4), result.active_set.weights.round(4)
    (array([0.1673, 0.2918, 0.2408]), array([0.344 , 0.4169, 0.2391]))
    """

    step_rule: StepRule = field(default_factory=ExactLineSearch)
    corrections: int = 1
    lazy: bool = True
    away: bool = False

    def __post_init__(self) -> None:
        instance("PairwiseFrankWolfe(step_rule=...)", self.step_rule, StepRule, "ExactLineSearch()")
        if isinstance(self.step_rule, Schedule):
            raise ValueError(
                f"PairwiseFrankWolfe needs a step that looks along the segment, got {self.step_rule!r}; use "
                "`ExactLineSearch()` or `Backtracking()`."
            )
        count("PairwiseFrankWolfe(corrections=...)", self.corrections, lowest=0)

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if isinstance(f.shape, FactoredShape):
            raise TypeError("PairwiseFrankWolfe needs dense parameters; use CorrectivePrimalAveraging.")

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> PairwiseState:
        return PairwiseState(t=0, x=start, seed=seed, **ActiveSet.of(start.w).fields())

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, PairwiseState)
        found: tuple[tuple[int, Evaluation], ...] = ()
        here = state.evaluation
        if here is None:
            here = f.evaluate(state.x, keep=True)
            state, found = self._looked(ball, state, here, f.convex), ((state.t, here),)
        t, old = state.t + 1, len(state.weights)
        correct = self.corrections > 0 and t % self.corrections == 0 and correctable(f, old)
        active = self._widened(ball, state, here, several=correct)
        slopes = active.along(here.slope.gradient)
        K = curvature(f, here.point, active, state.K) if correct else None
        target = self._blended(active, slopes, old) if K is None else minimise_on_simplex(K, slopes, active.weights)
        expected = float(slopes @ (active.weights - target))
        there, gamma, memory = self._moved(f, state, here, active.mixture(target), expected if correct else None)
        weights = target if gamma == 1.0 else (1.0 - gamma) * active.weights + gamma * target
        state = self._noted(state, expected, gamma, abs(here.value))
        known = K if correct else state.K if len(active) == old else None
        state = replace(
            state,
            t=t,
            gamma=gamma,
            memory=memory,
            K=known[np.ix_(weights > 0.0, weights > 0.0)] if known is not None and f.quadratic else None,
            **active.weighted(weights).kept(weights > 0.0).fields(),
        )
        return replace(self._looked(ball, state, there, f.convex), found=(*found, (t, there)))

    @staticmethod
    def _noted(state: PairwiseState, expected: float, gamma: float, value: float) -> PairwiseState:
        """The state with what a step tells about the end: whether anything is left to gain."""
        stuck, tiny = gamma == 0.0 or expected <= 0.0, expected <= NOTHING * UNIT * value
        asked = not math.isnan(state.ahead)
        idle = state.idle + 1 if tiny and not state.ahead < state.least else 0
        return replace(
            state,
            # Whatever stops the vertices in use, the oracle may know one that does not.
            estimate=math.inf if tiny or stuck else state.estimate,
            least=min(state.least, max(state.ahead, 0.0)) if asked else state.least,
            idle=idle,
            done=(stuck and asked) or idle >= IDLE,
        )

    def _looked(self, ball: ConstraintSet, state: PairwiseState, here: Evaluation, convex: bool) -> PairwiseState:
        """The state at an evaluated point, with the answer of the oracle about it unless the active set will do."""
        g = here.slope.gradient
        slopes = state.active_set.along(g)
        state = replace(state, x=here.point, evaluation=here)
        if self.lazy and float(np.ptp(slopes)) >= state.estimate:
            return replace(state, bound=-math.inf, gap=math.nan, ahead=math.nan)
        answer = next_answer(ball, g, state)
        level = inner(g, here.point.w)
        ahead = level - inner(g, answer.vertex)
        return replace(
            state,
            answer=answer,
            ahead=ahead,
            estimate=0.5 * ahead,
            bound=bound_of(here.slope, ball, answer.support) if convex else -math.inf,
            gap=level + answer.support,
        )

    def _widened(self, ball: ConstraintSet, state: PairwiseState, here: Evaluation, *, several: bool) -> ActiveSet:
        """The active set with the vertices that offer more than it does itself, if there are any."""
        active, g = state.active_set, here.slope.gradient
        if not state.ahead > np.ptp(active.along(g)):  # also where the oracle was not asked
            return active
        assert state.answer is not None
        active = active.with_new(ActiveSet.of(np.asarray(state.answer.vertex, dtype=np.float64)))
        more = ball.entry_vertices(g, max(FEW, len(active))) if several else None
        if more is None:
            return active
        places, values = more
        low = inner(g, here.point.w) - g.ravel()[places] * values >= SHARE * state.ahead
        return active.with_new(ActiveSet.of_entries(active.shape, places[low], values[low]))

    def _moved(
        self, f: SmoothFunction, state: PairwiseState, here: Evaluation, w: Array, expected: float | None
    ) -> tuple[Evaluation, float, float]:
        """The evaluation where the step to ``w`` ends, how much of it that is, and the memory of the rule.

        With an expected decrease ``w`` itself is tried first.
        """
        x, target = here.point, f.point(w, here.point.intercept)
        if expected is None:
            hull = f.hull((x, target), here.slope.gradient)
            gamma, memory = self.step_rule(state.t + 1, hull, state.memory)
        else:
            there = f.evaluate(target, keep=not f.quadratic)
            if falls(here, there, expected, convex=f.convex):
                return there, 1.0, state.memory
            hull = f.hull((x, there.point), here.slope.gradient)
            gamma, memory = float(hull.minimise(np.zeros(1))[0]), state.memory
        return f.evaluate(hull.mix(np.array([gamma])) if gamma > 0.0 else x, keep=True), gamma, memory

    def _blended(self, active: ActiveSet, slopes: Array, old: int) -> Array:
        """The weights at the end of a Frank-Wolfe step where there is a new vertex, else of a step among the others."""
        if len(active) > old:
            return np.asarray(np.eye(len(active))[old])
        return _away(active.weights, slopes) if self.away else _pairwise(active.weights, slopes)


def _pairwise(weights: Array, slopes: Array) -> Array:
    """The weights once the worst vertex has given its own to the best one."""
    target, worst, best = weights.copy(), int(slopes.argmax()), int(slopes.argmin())
    if worst != best:
        target[best] += target[worst]
        target[worst] = 0.0
    return target


def _away(weights: Array, slopes: Array) -> Array:
    """All weight on the best vertex or, where that is the steeper way, on all but the worst one."""
    level, worst, best = float(weights @ slopes), int(slopes.argmax()), int(slopes.argmin())
    target = weights.copy()
    target[worst] = 0.0
    rest = float(target.sum())
    if level - slopes[best] >= slopes[worst] - level or not rest > 0.0:
        return np.asarray(np.eye(len(weights))[best])
    return target / rest
