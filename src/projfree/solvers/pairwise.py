"""Frank-Wolfe over an active set: pairwise or away steps, and quadratic corrections of all weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from projfree.algebra import UNIT, FactoredShape, Point, inner
from projfree.checks import Array, count, instance
from projfree.numerics.simplex_quadratic import minimise_on_simplex
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.hessian import Hessian
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State, bound_of, next_answer
from projfree.solvers.model_step import ARMIJO, NOTHING, falls_enough
from projfree.steps import ExactLineSearch, Schedule, StepRule

#: Only rounding is left where so many steps in a row, too small for values to tell, did not lower the least gap; a
#: single one may be small because it moves a small weight.
IDLE = 8
#: Values within so many roundings of each other tell nothing; the slope at the end of a step then does.
NOISE = 64.0
#: Corrections are made while the vertices as arrays have at most so many entries (256 MB),
MOST_ENTRIES = 1 << 25
#: and while their curvature is a small matrix, so that solving with it takes no longer than a read.
MOST_VERTICES = 2_000


@dataclass(frozen=True, eq=False)
class ActiveSet:
    r"""Vertices :math:`v_j` and weights :math:`\lambda_j` that add up to one: the mixture :math:`\sum_j\lambda_j v_j`.

    A vertex is held as its entries other than zero, so that those of an l_1 ball or a simplex take one number each.

    Attributes
    ----------
    shape : tuple of int
        The shape of a vertex.
    starts, places, values : ndarray
        Vertex j has the entries ``values[starts[j] : starts[j + 1]]`` at these places, in C order.
    weights : ndarray
        The weights.
    """

    shape: tuple[int, ...]
    starts: Array
    places: Array
    values: Array
    weights: Array

    @classmethod
    def of(cls, w: Array) -> ActiveSet:
        """A single point."""
        places = np.flatnonzero(w)
        return cls(w.shape, np.array([0, len(places)]), places, np.ravel(w)[places].astype(np.float64), np.ones(1))

    @property
    def consistent(self) -> bool:
        """Whether the arrays describe vertices: a file may say anything, and products trust the places."""
        starts, places, count = self.starts, self.places, len(self.weights)
        vectors = all(np.ndim(each) == 1 for each in (starts, places, self.values, self.weights))
        if not vectors or starts.dtype.kind not in "iu" or places.dtype.kind not in "iu" or len(starts) != count + 1:
            return False
        ordered = (
            starts[0] == 0 and starts[-1] == len(places) == len(self.values) and bool((np.diff(starts) >= 0).all())
        )
        within = bool(((places >= 0) & (places < math.prod(self.shape))).all())
        return ordered and within and count > 0 and bool(self.weights.min() >= 0.0)

    def fields(self) -> dict[str, Any]:
        """The arrays by name, as a state holds them."""
        return {name: getattr(self, name) for name in ("starts", "places", "values", "weights")}

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def matrix(self) -> Any:
        """The vertices as the rows of a sparse matrix."""
        import scipy.sparse as sp

        return sp.csr_array((self.values, self.places, self.starts), shape=(len(self), math.prod(self.shape)))

    @property
    def vertices(self) -> Array:
        """The vertices as an array of shape ``(m, ...)``."""
        return np.asarray(self.matrix.toarray()).reshape(len(self), *self.shape)

    def vertex(self, j: int) -> Array:
        """One of them."""
        v, part = np.zeros(math.prod(self.shape)), slice(self.starts[j], self.starts[j + 1])
        v[self.places[part]] = self.values[part]
        return v.reshape(self.shape)

    def along(self, g: Array) -> Array:
        """The inner product of ``g`` with each vertex."""
        return np.asarray(self.matrix @ g.ravel())

    def mixture(self, weights: Array | None = None) -> Array:
        """The vertices mixed with other weights, or with their own."""
        return np.asarray(self.matrix.T @ (self.weights if weights is None else weights)).reshape(self.shape)

    def reweighted(self, weights: Array) -> ActiveSet:
        """The vertices whose new weight is positive, with these weights divided by their sum."""
        on = weights > 0.0
        part = self.matrix[np.flatnonzero(on)]
        return ActiveSet(self.shape, part.indptr, part.indices, part.data, weights[on] / weights[on].sum())

    def with_new(self, v: Array) -> ActiveSet:
        """These vertices and behind them ``v`` without any weight, unless it is one of them."""
        new = ActiveSet.of(v)
        for j in range(len(self)):
            part = slice(self.starts[j], self.starts[j + 1])
            if np.array_equal(self.places[part], new.places) and np.array_equal(self.values[part], new.values):
                return self
        return ActiveSet(
            self.shape,
            np.append(self.starts, self.starts[-1] + len(new.places)),
            np.concatenate([self.places, new.places]),
            np.concatenate([self.values, new.values]),
            np.append(self.weights, 0.0),
        )


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
        H = f.hessian(here.point) if self.corrections > 0 and t % self.corrections == 0 and _is_small(f, old) else None
        active, g = state.active_set, here.slope.gradient
        if state.ahead > np.ptp(active.along(g)):  # not where the oracle was not asked
            assert state.answer is not None
            active = active.with_new(np.asarray(state.answer.vertex, dtype=np.float64))
        slopes = active.along(g)
        K = None if H is None else _curvature(f, H, active, state.K)
        target = self._blended(active, slopes, old) if K is None else minimise_on_simplex(K, slopes, active.weights)
        expected = float(slopes @ (active.weights - target))
        there, gamma, memory = self._moved(f, state, here, active.mixture(target), None if K is None else expected)
        weights = target if gamma == 1.0 else (1.0 - gamma) * active.weights + gamma * target
        state = self._noted(state, expected, gamma, abs(here.value))
        known = K if K is not None else state.K if len(active) == old else None
        state = replace(
            state,
            t=t,
            gamma=gamma,
            memory=memory,
            K=known[np.ix_(weights > 0.0, weights > 0.0)] if known is not None and f.structure.quadratic else None,
            **active.reweighted(weights).fields(),
        )
        return replace(self._looked(ball, state, there, f.convex), found=(*found, (t, there)))

    @staticmethod
    def _noted(state: PairwiseState, expected: float, gamma: float, value: float) -> PairwiseState:
        """The state with what a step tells about the end: whether anything is left to gain."""
        stuck, tiny = gamma == 0.0 or expected <= 0.0, expected <= NOTHING * UNIT * value
        asked = not math.isnan(state.ahead)
        idle = state.idle + 1 if (tiny or stuck) and not state.ahead < state.least else 0
        return replace(
            state,
            # Whatever stops the vertices in use, the oracle may know one that does not.
            estimate=math.inf if tiny or stuck else state.estimate,
            least=min(state.least, max(state.ahead, 0.0)) if asked else state.least,
            idle=idle,
            done=idle >= IDLE,
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
            there = f.evaluate(target, keep=not f.structure.quadratic)
            if _falls(here, there, expected, convex=f.convex):
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


def _is_small(f: SmoothFunction, vertices: int) -> bool:
    """Whether the curvature among so many vertices and a new one can be formed in one read."""
    return vertices < MOST_VERTICES and (vertices + 1) * math.prod(f.shape) <= MOST_ENTRIES


def _curvature(f: SmoothFunction, H: Hessian, active: ActiveSet, known: Array | None) -> Array:
    """The products of all vertices through a Hessian, given those of the first ones if they are known."""
    old, every = 0 if known is None else len(known), len(active)
    K = np.zeros((every, every))
    K[:old, :old] = 0.0 if known is None else known
    if old < every:
        points = [f.point(active.vertex(j)) for j in range(every)]
        products = H.products(tuple(points[old:]), tuple(points[:old]))
        K[old:, old:], K[old:, :old] = products[:, : every - old], products[:, every - old :]
        K[:old, old:] = K[old:, :old].T
    return np.asarray(0.5 * (K + K.T))


def _falls(here: Evaluation, there: Evaluation, expected: float, *, convex: bool) -> bool:
    """Whether a step brings enough of what was expected: by the values or, where rounding hides that, by the slope."""
    if falls_enough(there.value, here.value, expected):
        return True
    slope = inner(there.slope.gradient, there.point.w - here.point.w)
    level = there.value <= here.value + NOISE * UNIT * abs(here.value)
    return convex and level and slope <= ARMIJO * expected
