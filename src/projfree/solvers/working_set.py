"""Minima with few nonzero features, searched for among a few features at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array, count
from projfree.numerics.flat_ball import GroupL1Ball
from projfree.numerics.group_l1_qp import Columns, QPSolution, minimize_group_l1
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet, Structure, frank_wolfe_gap
from projfree.solvers.base import GapBound, Solver, State, evaluation_at_iterate, newton_step

#: Minimum size of a working set: with fewer features the pass that selects them would dominate the cost.
SMALLEST = 100
#: Models are solved to this fraction of the gap.
SHARE = 0.1
#: Largest damping: the curvature of a row is at least the damping times its derivative.
MOST_DAMPING = 64.0
#: A model may lower its multiplier to this part of the largest slope outside: below, it would have too few features.
BEYOND = 0.5
#: A start with more nonzero entries is replaced by a vertex; over a simplex, one with more than ``smallest``.
MOST_AT_START = 2_000


@dataclass(frozen=True, kw_only=True)
class WorkingSetState(State):
    """A state with the features in use, the multiplier, the damping of the model and, for squares, its columns."""

    level: float = math.nan
    damping: float = 0.0
    features: Array | None = None
    columns: Columns | None = field(default=None, metadata={"transient": True}, repr=False)


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
        here, structure = evaluation_at_iterate(f, state), ball.structure(f.shape)
        assert structure.group_l1 is not None
        most = self.smallest if structure.group_l1.tight else MOST_AT_START
        if state.features is None and np.count_nonzero(here.point.w) > most:
            here = f.evaluate(f.point(ball.lmo(here.slope.gradient), here.intercept), keep=True)
        x, g = here.point, here.slope.gradient
        features, least = self._features(structure, x.w, g, state)
        kept = state.columns if features is state.features else None
        model, gap = FeatureModel(f, ball, x, g, features, state.damping, kept), frank_wolfe_gap(ball, g, x.w)
        # The smaller the gap is, the less of it is due to the error of the model and to other features.
        share = min(SHARE, math.sqrt(gap / (abs(here.value) or gap or 1.0)))
        found = model.minimize(state.level, gap * share, SHARE * abs(here.value), least)
        v = f.point(found.w, x.intercept)
        moved = newton_step(f, ball, here, v, gap)
        if moved["done"]:  # the rounding of a model may raise the value: a smaller gap decides
            there = f.evaluate(v, keep=True)
            if (bound := GapBound.of(ball, there)).gap < gap:
                moved = {"x": there.point, "gamma": 1.0, "evaluation": there, "bound": bound, "done": False}
        return replace(
            state,
            t=state.t + 1,
            level=found.level,
            # Levenberg-Marquardt: halve the damping after a full step and quadruple it after a shorter one.
            damping=min(max(4.0 * state.damping, 1.0), MOST_DAMPING) if moved["gamma"] < 1.0 else 0.5 * state.damping,
            features=features,
            columns=model.columns if f.structure.quadratic_form else None,
            **moved,
        )

    def _features(self, structure: Structure, w: Array, g: Array, state: WorkingSetState) -> tuple[Array, float]:
        """The features of the next model, the free ones last, and the multiplier below which others are needed too.

        They are those of the last model where none is missing.
        """
        flat, features = structure.group_l1, state.features
        assert flat is not None
        bounded, outside = np.delete(np.arange(len(g)), structure.free), np.ones(len(g), dtype=bool)
        scores, outside[features if features is not None else []] = np.zeros(len(g)), False
        scores[bounded] = flat.scores(g[bounded])
        if features is None or (outside & (w.reshape(len(w), -1).any(axis=1) | (scores > state.level))).any():
            chosen = working_set(flat, w[bounded], g[bounded], state.level, self.smallest)
            features, outside[:] = np.append(bounded[chosen], structure.free), True
            outside[features] = False
        return features, BEYOND * float(np.max(scores, where=outside, initial=0.0))


def working_set(ball: GroupL1Ball, w: Array, g: Array, level: float, smallest: int) -> Array:
    """The nonzero features and as many of those with the largest slopes, or ``smallest`` if that is more.

    Of slopes that do not exceed ``level``, which violate no condition, no more than ``smallest`` are taken in. Groups
    come whole, their features as neighbours.
    """
    scores, used = ball.scores(g), w.reshape(len(w), -1).any(axis=1)
    nonzeros = int(np.count_nonzero(used))
    size = nonzeros + max(min(int(np.count_nonzero((scores > level) & ~used)), nonzeros), smallest)
    scores = np.where(used, math.inf, scores)
    chosen = np.arange(len(scores)) if size >= len(scores) else np.sort(np.argpartition(-scores, size - 1)[:size])
    if ball.groups is None:
        return chosen
    chosen = np.flatnonzero(np.isin(ball.groups, ball.groups[chosen]))
    return chosen[np.argsort(ball.groups[chosen], kind="stable")]


class FeatureModel:
    r"""The quadratic model :math:`\tfrac12\langle v, Hv\rangle - \langle b, v\rangle` of f at x among some features.

    ``columns`` holds H; those of squares do not depend on x. The free features are the last ones.
    """

    def __init__(
        self,
        f: SmoothFunction,
        ball: ConstraintSet,
        x: Point,
        g: Array,
        features: Array,
        damping: float = 0.0,
        columns: Columns | None = None,
    ) -> None:
        structure, k = ball.structure(f.shape), 1
        assert structure.group_l1 is not None
        self.x, self.features, self.bound = x, features, structure.free_bound
        bounded = np.setdiff1d(features, structure.free, assume_unique=True)
        self.ball = structure.group_l1.among(bounded - np.searchsorted(structure.free, bounded))
        self.start, self.slope = x.w[features], g[features]
        if columns is None:
            hessian = f.hessian(x, features)
            assert hessian is not None
            columns = hessian.columns(damping)
            columns = Columns.of_matrix(hessian.matrix, f.structure.outputs) if columns is None else columns.formed()
        if len(columns.mean) > len(features):  # each output has a part of its own
            k, columns = f.structure.outputs, Columns.of_matrix(columns.A)
            self.ball, self.start, self.slope = self.ball.flattened(k), self.start.ravel(), self.slope.ravel()
        self.columns, self.free = columns, len(structure.free) * k

    def minimize(self, level: float, goal: float, fall: float, least: float) -> QPSolution:
        """The minimiser over the ball as a parameter of f, from a guess at the multiplier or zero."""
        own = self.columns, self.slope, self.ball, self.start
        found = minimize_group_l1(*own, level, goal, fall=fall, least=least, free=self.free, bound=self.bound)
        return replace(found, w=self.parameter(found.w))

    def parameter(self, v: Array) -> Array:
        """A minimiser of the model as a parameter of f."""
        w = np.zeros_like(self.x.w)
        w[self.features] = v.reshape(w[self.features].shape)
        return w
