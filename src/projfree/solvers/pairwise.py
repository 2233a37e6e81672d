"""Frank-Wolfe with an active set: pairwise or away steps, and quadratic corrections of all weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from projfree.algebra import FactoredShape, Point, inner
from projfree.checks import Array, count, instance
from projfree.numerics.simplex_quadratic import minimise_on_simplex
from projfree.objectives.base import Evaluation, SmoothFunction
from projfree.objectives.hessian import Hessian
from projfree.objectives.rounding import is_rounding
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State, call_oracle, step_towards
from projfree.steps import ExactLineSearch, Schedule, StepRule

#: Number of consecutive steps with a decrease of rounding size after which the solver stops; a single decrease may be
#: small because the vertex has a small weight.
IDLE = 8
#: Maximum number of entries of the vertices as a dense array (256 MB) for which corrections are made.
MOST_ENTRIES = 1 << 25


@dataclass(frozen=True, eq=False)
class ActiveSet:
    r"""A convex combination :math:`\sum_j\lambda_j v_j` of vertices :math:`v_j` with weights :math:`\lambda_j`.

    Vertices are stored as sparse vectors; those of an l_1 ball or a simplex have one nonzero entry.

    Attributes
    ----------
    shape : tuple of int
        The shape of a vertex.
    starts, places, values : ndarray
        The vertices as `indptr`, `indices` and `data` of a CSR array, with flat indices in C order.
    weights : ndarray
        The weights.
    """

    shape: tuple[int, ...] = field(metadata={"transient": True})
    starts: Array
    places: Array
    values: Array
    weights: Array

    @classmethod
    def of(cls, w: Array) -> ActiveSet:
        """Create the active set of a single point."""
        places = np.flatnonzero(w)
        return cls(w.shape, np.array([0, len(places)]), places, np.ravel(w)[places].astype(np.float64), np.ones(1))

    @classmethod
    def checked(cls, shape: tuple[int, ...], **arrays: Array) -> ActiveSet:
        """Create an active set from the arrays of a file; raise ValueError if they are invalid."""
        self = cls(shape, **arrays)
        if {self.starts.dtype.kind, self.places.dtype.kind} != {"i"} or not all(self.weights >= 0.0) or not len(self):
            raise ValueError("an active set needs integer places and weights that are not negative")
        self.matrix.check_format(full_check=True)
        return self

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

    def along(self, g: Array) -> Array:
        """Return the inner product of ``g`` with each vertex."""
        return np.asarray(self.matrix @ g.ravel())

    def mixture(self, weights: Array | None = None) -> Array:
        """Return the combination of the vertices with ``weights``, by default those of the active set."""
        return np.asarray(self.matrix.T @ (self.weights if weights is None else weights)).reshape(self.shape)

    def reweighted(self, weights: Array) -> ActiveSet:
        """Return the active set with new weights, normalised to sum to one, without vertices of weight zero."""
        on = weights > 0.0
        part = self.matrix[np.flatnonzero(on)]
        return ActiveSet(self.shape, part.indptr, part.indices, part.data, weights[on] / weights[on].sum())

    def with_new(self, v: Array) -> ActiveSet:
        """Return the active set with ``v`` appended with weight zero, unless it already contains ``v``."""
        new = ActiveSet.of(v)
        for first, last in zip(self.starts[:-1], self.starts[1:], strict=True):
            part = slice(first, last)
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
    """State with the active set; ``m`` is None if the oracle was not called for the last tangent.

    Attributes
    ----------
    K : ndarray or None
        The matrix ``<v_i, H v_j>`` for the Hessian of a quadratic; None if it must be computed.
    half_gap : float
        Half of the Frank-Wolfe gap at the last call of the oracle.
    idle : int
        The number of consecutive steps with a decrease of rounding size.
    """

    active_set: ActiveSet
    K: Array | None = None
    half_gap: float = math.inf
    idle: int = 0


@dataclass(frozen=True, repr=False)
class PairwiseFrankWolfe(Solver):
    r"""Pairwise Frank-Wolfe: move weight between active vertices, or add a vertex if that decreases f more.

    .. math:: x = \sum_j \lambda_j v_j, \qquad
              a = \arg\max_j\langle\nabla f(x), v_j\rangle, \quad s = \arg\min_j\langle\nabla f(x), v_j\rangle, \quad
              v = \arg\min_{v \in C}\langle\nabla f(x), v\rangle

    If :math:`\langle\nabla f(x), a - s\rangle \ge \langle\nabla f(x), x - v\rangle`, weight moves from a to s, else x
    moves towards v, which is added to the active set. A correction step minimises the quadratic model of f over the
    convex hull of the active set and the new vertex exactly, and drops vertices of weight zero. Over polytopes the gap
    converges linearly; for quadratics with corrections it is of rounding size after finitely many steps.

    A step costs one read of the data for the tangent, and one for the curvature or the line search. The state of the
    result contains the active set. The start is one of its vertices until its weight is zero.

    Parameters
    ----------
    step_rule : StepRule
        Step rule of steps without a correction; use `Backtracking` for a `BlackBox`.
    corrections : int
        Number of steps between corrections; 0 for no corrections. A `BlackBox` has no corrections.
    lazy : bool
        Whether to call the oracle only if the pairwise gap of the active set is below half of the last Frank-Wolfe gap.
        A step without an oracle call gives no lower bound.
    away : bool
        Whether to use away steps in place of pairwise steps: x moves towards s, or away from a, whichever is the
        steeper direction, and the ratios of the other weights do not change.

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
    >>> result.w.round(4), result.state.active_set.weights.round(4)
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
        return PairwiseState(t=0, x=start, seed=seed, active_set=ActiveSet.of(start.w))

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, PairwiseState)
        if state.evaluation is None:
            state = self._at(ball, state, f.evaluate(state.x, keep=True))
        here, result, active, known = state.evaluation, state.oracle_result, state.active_set, state.K
        assert here is not None
        t, x, g, old = state.t + 1, here.point, here.slope.gradient, len(active)
        v = None if state.m is None or result is None else np.asarray(result.vertex, dtype=np.float64)
        if v is not None and inner(g, x.w) - inner(g, v) > np.ptp(active.along(g)):
            active = active.with_new(v)
        slopes, K, H = active.along(g), None, None
        if self.corrections and t % self.corrections == 0 and (old + 1) * math.prod(f.shape) <= MOST_ENTRIES:
            H = f.hessian(x)
        if H is not None:
            K = known = _products(f, H, active, known)
            target = minimise_on_simplex(K, slopes, active.weights)
        elif len(active) > old:  # a Frank-Wolfe step
            target, known = np.eye(len(active))[old], None
        else:
            target = (_away if self.away else _pairwise)(active.weights, slopes)
        expected, end = float(slopes @ (active.weights - target)), f.point(active.mixture(target), x.intercept)
        if K is not None:
            there, gamma = step_towards(f, here, f.evaluate(end, keep=True), expected)
            memory = state.memory
        else:
            hull = f.hull((x, end), g)
            gamma, memory = self.step_rule(t, hull, state.memory)
            there = f.evaluate(hull.mix(np.array([gamma])), keep=True)
        weights = target if gamma == 1.0 else (1.0 - gamma) * active.weights + gamma * target
        hidden, on = gamma == 0.0 or is_rounding(expected, here.value), weights > 0.0
        idle = state.idle + 1 if hidden else 0
        state = replace(
            state,
            t=t,
            gamma=gamma,
            memory=memory,
            K=known[np.ix_(on, on)] if known is not None and f.structure.quadratic else None,
            # Call the oracle after a step without progress: a new vertex may give progress.
            half_gap=math.inf if hidden else state.half_gap,
            idle=idle,
            done=idle >= IDLE,
            active_set=active.reweighted(weights),
        )
        return self._at(ball, state, there)

    def _at(self, ball: ConstraintSet, state: PairwiseState, here: Evaluation) -> PairwiseState:
        """Return the state at an evaluated point; call the oracle unless the pairwise gap is large enough."""
        m, result, half_gap, g = None, state.oracle_result, state.half_gap, here.slope.gradient
        if not self.lazy or float(np.ptp(state.active_set.along(g))) < half_gap:
            m, result = here.slope, call_oracle(ball, g, result)
            half_gap = 0.5 * (inner(g, here.point.w) - inner(g, result.vertex))
        return replace(state, x=here.point, evaluation=here, m=m, oracle_result=result, half_gap=half_gap)


def _pairwise(weights: Array, slopes: Array) -> Array:
    """Return the weights after all weight of the worst vertex is moved to the best one."""
    target, worst, best = weights.copy(), int(slopes.argmax()), int(slopes.argmin())
    if worst != best:
        target[best] += target[worst]
        target[worst] = 0.0
    return target


def _away(weights: Array, slopes: Array) -> Array:
    """Return all weight on the best vertex or, if that is steeper, on all vertices except the worst one."""
    level, worst, best = float(weights @ slopes), int(slopes.argmax()), int(slopes.argmin())
    target = weights.copy()
    target[worst] = 0.0
    rest = float(target.sum())
    if level - slopes[best] >= slopes[worst] - level or not rest > 0.0:
        return np.asarray(np.eye(len(weights))[best])
    return target / rest


def _products(f: SmoothFunction, H: Hessian, active: ActiveSet, known: Array | None) -> Array:
    """Return the matrix ``<v_i, H v_j>`` of all vertices, reusing the block of the first ones if it is known."""
    old, K = 0 if known is None else len(known), np.zeros((len(active), len(active)))
    K[:old, :old] = 0.0 if known is None else known
    if old < len(active):
        points = tuple(map(f.point, active.vertices))
        products = H.products(points[old:], points[:old])
        K[old:, old:], K[old:, :old] = products[:, : len(active) - old], products[:, len(active) - old :]
        K[:old, old:] = K[old:, :old].T
    return np.asarray(0.5 * (K + K.T))
