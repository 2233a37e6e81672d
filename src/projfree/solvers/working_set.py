"""Minima with few nonzero features, searched for among a few features at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import Point, inner
from projfree.checks import Array, count
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.group_l1_qp import EXPONENT, Columns, QPSolution, minimize_group_l1
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet, frank_wolfe_gap
from projfree.solvers.base import GapBound, Solver, State, evaluation_at_iterate, step_towards
from projfree.steps import is_rounding

#: The fewest features of a working set: fewer would save no time beside the read that chooses them.
SMALLEST = 100
#: Models are solved to this part of the gap.
SHARE = 0.05
#: Features are taken in where those outside cause more than this part of the gap.
OUTSIDE = 0.1
#: The most by which the curvature of a row is raised, over its derivative.
MOST_DAMPING = 64.0
#: The first multiplier, over the largest slope at the start.
FIRST_LEVEL = 0.5
#: A start with more nonzero entries is replaced by a vertex; over a simplex, one with more than ``smallest``.
MOST_AT_START = 2_000


@dataclass(frozen=True, kw_only=True)
class WorkingSetState(State):
    """A state with the features in use, the multiplier, its exponent, and the damping of the model."""

    level: float = math.nan
    exponent: float = EXPONENT
    damping: float = 0.0
    features: Array | None = None


@dataclass(frozen=True, repr=False)
class WorkingSet(Solver):
    r"""Newton's method on a few features at a time, chosen by the gradient of all.

    For sets whose minima have few nonzero features: the l_1 ball, weighted or without negative entries, the simplex,
    and ``GroupBall(2, 1, ...)``. Each iteration minimises the quadratic model of f

    .. math:: \min_{v \in C,\ v_j = 0\ (j \notin W)} \langle\nabla f(x), v - x\rangle
              + \tfrac12 \langle v - x, H_W (v - x)\rangle

    over the features W by coordinate descent (see `projfree.numerics.group_l1_qp`), and moves there, or to the minimum
    on the way where f does not fall enough. W holds the nonzero features and those with the largest slopes. The
    gradient at the new point, one read of the data, says what is missing in W and proves a bound.

    Parameters
    ----------
    smallest : int
        W has at least so many features.

    References
    ----------
    Friedman, Hastie, Tibshirani (2010), Regularization paths for generalized linear models via coordinate descent;
    Massias, Gramfort, Salmon (2018), Celer: a fast solver for the lasso with dual extrapolation.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, WorkingSet, as_data, minimize
    >>> f = Objective(Squared(), as_data(np.diag([1.0, 2.0, 3.0]), [1.0, 1.0, 1.0]))
    >>> result = minimize(f, LpBall(1, radius=0.5), WorkingSet(), tol=1e-9)
    >>> result.w.round(4)
    array([0.0204, 0.2551, 0.2245])
    """

    smallest: int = SMALLEST

    def __post_init__(self) -> None:
        count("WorkingSet(smallest=...)", self.smallest)

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not f.structure.hessian or not f.convex:
            raise TypeError(
                f"WorkingSet needs the Hessian of a convex function of features, which {f.structure.name} has not; "
                "use AcceleratedProjectedGradient or FrankWolfe."
            )
        if ball.structure(f.shape).group_l1 is None:
            raise ValueError(
                "WorkingSet needs a set whose minima have few features, such as LpBall(1, ...), GroupBall(2, 1, ...) "
                f"or Simplex(), got {ball!r}; use CorrectivePrimalAveraging."
            )

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> WorkingSetState:
        return WorkingSetState(t=0, x=start, seed=seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> WorkingSetState:
        assert isinstance(state, WorkingSetState)
        return replace(state, t=0, bound=None, done=False)  # the rest does not depend on the radius

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, WorkingSetState)
        here = evaluation_at_iterate(f, state)
        if state.features is None:
            flat = ball.structure(f.shape).group_l1
            assert flat is not None
            if np.count_nonzero(here.point.w) > (self.smallest if flat.tight else MOST_AT_START):
                here = f.evaluate(f.point(ball.lmo(here.slope.gradient), here.intercept), keep=True)
            state = replace(state, x=here.point)
        x, g = here.point, here.slope.gradient
        features = self._features(ball, f.shape, g, state)
        found = _minimize_model(f, ball, x, g, features, state)
        expected = inner(g, x.w - found.w)
        tiny = is_rounding(expected, here.value)
        new, gamma = step_towards(f, here, f.point(found.w, x.intercept), expected)
        bound = GapBound.of(ball, new)
        if gamma < 1.0 and tiny:  # values differ by rounding alone: the smaller gap decides
            there = f.evaluate(f.point(found.w, x.intercept), keep=True)
            if (other := GapBound.of(ball, there)).gap < bound.gap:
                new, gamma, bound = there, 1.0, other
        done = tiny and not bound.gap < frank_wolfe_gap(ball, g, x.w)
        if done:  # a model without curvature has no minimiser, but there may be a slope: a Frank-Wolfe step decides
            corner = f.point(ball.lmo(g), x.intercept)
            there, share = step_towards(f, here, corner, inner(g, x.w - corner.w))
            if not is_rounding(new.value - there.value, here.value):
                new, gamma, bound, done = there, share, GapBound.of(ball, there), False
        return replace(
            state,
            t=state.t + 1,
            x=new.point,
            level=found.level,
            exponent=found.exponent,
            # Halved after a whole step and raised after a shorter one, as in methods of Levenberg and Marquardt.
            damping=min(max(4.0 * state.damping, 1.0), MOST_DAMPING) if gamma < 1.0 else 0.5 * state.damping,
            features=features,
            gamma=gamma,
            evaluation=new,
            bound=bound,
            done=done,
        )

    def _features(self, ball: ConstraintSet, shape: tuple[int, ...], g: Array, state: WorkingSetState) -> Array:
        """The nonzero features and those that violate the optimality conditions most; the free ones come last."""
        structure = ball.structure(shape)
        free, flat = structure.free, structure.group_l1
        assert flat is not None
        bounded = np.delete(np.arange(len(g)), free)
        w, scores = state.x.w[bounded].reshape(len(bounded), -1), flat.scores(g[bounded])
        used = np.flatnonzero(w.any(axis=1))
        size = max(2 * len(used), self.smallest)
        if state.features is not None:
            outside, inside = scores.copy(), np.searchsorted(bounded, state.features[: len(state.features) - len(free)])
            outside[inside] = -math.inf
            level = float(scores[inside].max(initial=-math.inf if flat.tight else 0.0))
            little = flat.radius * (float(outside.max()) - level) <= OUTSIDE * frank_wolfe_gap(ball, g, state.x.w)
            if little and np.isin(used, inside).all():
                return state.features
            violators = int(np.count_nonzero(outside > level))
            size = len(used) + min(violators, max(len(used), self.smallest))
        scores[used] = math.inf
        return np.append(bounded[select(flat, scores, size)], free)


def _minimize_model(
    f: SmoothFunction, ball: ConstraintSet, x: Point, g: Array, features: Array, state: WorkingSetState
) -> QPSolution:
    """The minimiser of the model over the features."""
    structure = ball.structure(f.shape)
    flat, free = structure.group_l1, structure.free
    assert flat is not None
    bounded = features[: len(features) - len(free)]
    model = FeatureModel(f, flat.among(bounded - np.searchsorted(free, bounded)), x, g, features, state.damping)
    share = 1 if model.b.shape == x.w[features].shape else math.prod(f.shape[1:])
    slope = model.slope[: len(model.slope) - len(free) * share]
    level = max(0.0 if math.isnan(state.level) else state.level, FIRST_LEVEL * model.ball.level(slope))
    goal = SHARE * frank_wolfe_gap(ball, g, x.w)
    found = minimize_group_l1(
        model.columns,
        model.b,
        model.ball,
        model.start,
        level,
        goal,
        free=len(free) * share,
        bound=structure.free_bound,
        exponent=state.exponent,
    )
    return replace(found, w=model.parameter(found.w))


class FeatureModel:
    """The quadratic model of f at x among some features: ``columns`` and b, with the ball, the start and the slope."""

    def __init__(
        self, f: SmoothFunction, ball: FlatBall, x: Point, g: Array, features: Array, damping: float = 0.0
    ) -> None:
        self.x, self.features = x, features
        self.ball, self.start, self.slope = ball, x.w[features], g[features]
        hessian = f.hessian(x, features)
        assert hessian is not None
        columns = hessian.columns(damping)
        if columns is None:
            H = hessian.matrix
            if len(H) > len(features):  # each output has a part of its own
                self.ball, self.start, self.slope = (
                    ball.flattened(len(H) // len(features)),
                    *map(np.ravel, (self.start, self.slope)),
                )
            columns = Columns.of_matrix(H, self.start.size // len(H))
        self.columns = columns.formed()
        self.b = columns.times(self.start.reshape(len(self.start), -1)).reshape(self.start.shape) - self.slope

    def parameter(self, v: Array) -> Array:
        """A minimiser of the model as a parameter of f."""
        w = np.zeros_like(self.x.w)
        w[self.features] = v.reshape(w[self.features].shape)
        return w


def select(flat: FlatBall, scores: Array, size: int) -> Array:
    """The features with the largest scores, whole groups of them as neighbours."""
    chosen = (
        np.sort(np.argpartition(-scores, size - 1)[:size]) if 0 < size < len(scores) else np.arange(len(scores))[:size]
    )
    if flat.groups is None:
        return chosen
    chosen = np.flatnonzero(np.isin(flat.groups, flat.groups[chosen]))
    return chosen[np.argsort(flat.groups[chosen], kind="stable")]
