"""Minima with few features that are not zero, found among a few at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, inner
from projfree.checks import Array, count
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.flat_quadratic import minimise_flat
from projfree.numerics.free_quadratic import minimise_with_free
from projfree.numerics.symmetric import Formed, Symmetric
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Known, Solver, State, at_iterate
from projfree.solvers.model_step import NOTHING, step_towards

#: Models are solved to this part of the gap, those of quadratics to the second where a set is likely to be the last
#: one: where it has less than so many times as many features as are not zero.
SHARE, FINE, FEW_NEW = 1e-2, 1e-6, 1.1
#: The multiplier that the first set begins with, over the largest slope at the start.
FIRST_LEVEL = 0.5
#: At most as many features that are zero are taken in as are not; where the last ones are inside the ball, by this
#: part of the radius, three times as many, but no more than this, nor than a quarter of all that may be in use.
SHORT, MOST_NEW = 0.999, 1_000
#: Sets that are new are solved exactly below this size, and have twice as many features as are not zero up to it.
SMALL = 500
#: More features than this, times the outputs that meet, are not taken in: products would need 130 MB, systems seconds.
MOST_FEATURES = 4_000
#: Products of more features than this are not formed where their columns are at hand, but taken with one vector at a
#: time; more than so many are then not taken in.
MOST_FORMED, MOST_COLUMNS = 1_000, 20_000
#: A start with more features than this that are not zero is replaced by a vertex.
MOST_AT_START = 2_000


@dataclass(frozen=True, kw_only=True)
class WorkingSetState(State):
    """A state with value and tangent ``m`` at the iterate, the multiplier, the features in use and, for quadratics, H.

    H is the part of the Hessian that belongs to these features.
    """

    m: Minorant | None = None
    value: float = math.nan
    level: float = math.nan
    features: Array | None = None
    H: Array | None = None


@dataclass(frozen=True, repr=False)
class WorkingSet(Solver):
    r"""Minimise over a few features at a time, chosen by the gradient of all.

    For sets whose minima have few features that are not zero: the ball of l_1, weighted or without negative entries,
    the simplex, and sums of norms of groups, ``GroupBall(p, 1, ...)`` with any p, weighted or not, with one weight for
    each group. Each iteration minimises the quadratic model of f

    .. math:: \min_{v \in C,\ v_j = 0\ (j \notin W)} \langle\nabla f(x), v - x\rangle
              + \tfrac12 \langle v - x, H_W (v - x)\rangle

    over the features W, exactly (see `projfree.numerics.flat_quadratic`), and moves there, or to the minimum on the way
    where f does not fall enough. W holds the features that are not zero and those with the largest slopes. The gradient
    at the new point, one read of the data, says what is missing in W and proves a bound. The part :math:`H_W` of the
    Hessian costs one read as well, and products of the features in W alone.

    Parameters
    ----------
    smallest : int
        W has at least so many features, and twice as many as are not zero.

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

    smallest: int = 100

    def __post_init__(self) -> None:
        count("WorkingSet(smallest=...)", self.smallest)

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not f.has_hessian or not f.convex:
            raise TypeError(
                f"WorkingSet needs the Hessian of a convex function of features, which {f.workload().name} has not; "
                "use AcceleratedProjectedGradient or FrankWolfe."
            )
        if ball.as_flat(f.shape) is None:
            raise ValueError(
                "WorkingSet needs a set whose minima have few features, such as LpBall(1, ...), GroupBall(2, 1, ...) "
                f"or Simplex(), got {ball!r}; use CorrectivePrimalAveraging."
            )

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> WorkingSetState:
        return WorkingSetState(t=0, x=start, seed=seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> WorkingSetState:
        assert isinstance(state, WorkingSetState)
        kept = {name: getattr(state, name) for name in ("m", "value", "level", "features", "H")}
        return WorkingSetState(t=0, x=state.x, seed=state.seed, **kept)  # none of them knows the set

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, WorkingSetState)
        flat = ball.as_flat(f.shape)
        assert flat is not None
        began, state = self._begun(f, ball, state) if state.m is None else ((), state)
        x, m = state.x, state.m
        assert m is not None
        free = ball.free_features()
        by_columns = f.has_columns and flat.groups is None and not len(free)
        most = MOST_COLUMNS if by_columns else MOST_FEATURES // systems(f.quadratic, f.shape, flat)
        features = self._with_free(free, flat, m.gradient, state, most)
        if features is None:  # whoever comes next has the tangent for nothing
            here = f.evaluate(x)
            return replace(state, t=state.t + 1, evaluation=here, found=(*began, (state.t + 1, here)), too_large=True)
        if by_columns and len(features) > MOST_FORMED:
            H = f.column_products(x, features)
        else:
            H = Formed(self._hessian(f, x, features, state))
        share = self._share(f, x, features, H, state)
        v, level = _minimum(flat, x.w, m.gradient, features, H, state.level, share, free, ball.free_bound)
        expected, least = inner(m.gradient, x.w - v), NOTHING * UNIT * abs(state.value)
        target = f.point(v, x.intercept)
        new, gamma = step_towards(f, x, state.value, m, target, expected)
        after = Known.of(ball, new)
        if gamma < 1.0 and expected <= least:  # values differ by rounding alone: the smaller gap decides
            there = f.evaluate(target, keep=True)
            if (known := Known.of(ball, there)).gap < after.gap:
                new, gamma, after = there, 1.0, known
        done = expected <= least and not after.gap <= 0.5 * ball.gap(m.gradient, x.w)
        if done:  # a model without curvature knows no minimum, but there may be a slope: the vertex decides
            corner = f.point(ball.lmo(m.gradient), x.intercept)
            other, way = step_towards(f, x, state.value, m, corner, inner(m.gradient, x.w - corner.w))
            if other.value < new.value - least:
                new, gamma, after, done = other, way, Known.of(ball, other), False
        return replace(
            state,
            t=state.t + 1,
            x=new.point,
            m=new.slope,
            value=new.value,
            level=level,
            features=features,
            H=H.formed if f.quadratic and len(H.diagonal) == len(features) else None,
            gamma=gamma,
            evaluation=new,
            found=(*began, (state.t + 1, new)),
            bound=after.bound,
            # The last tangent proves the most, so that averages of all are not kept; what the derivative in the
            # intercept may cost is in the allowance, and no rounding.
            allowance=after.allowance if new.rest is None else 0.0,
            gap=after.gap,
            done=done,
        )

    @staticmethod
    def _begun(
        f: SmoothFunction, ball: ConstraintSet, state: WorkingSetState
    ) -> tuple[tuple[tuple[int, Evaluation], ...], WorkingSetState]:
        """With the tangent at the start, or at the vertex that the gradient there asks for where it has no zeros.

        Also what is known of the start.
        """
        looked = f.evaluate(state.x, keep=True)
        began = at_iterate(state.t, looked)
        if np.count_nonzero(looked.point.w) > MOST_AT_START:
            looked = f.evaluate(f.point(ball.lmo(looked.slope.gradient), looked.intercept), keep=True)
        return began, replace(state, x=looked.point, m=looked.slope, value=looked.value)

    @staticmethod
    def _share(f: SmoothFunction, x: Point, features: Array, H: Symmetric, state: WorkingSetState) -> float:
        """The part of the gap to which the model is solved.

        A large set that is new will hardly be the last one, unless few of its features were zero; small ones are solved
        in no time.
        """
        if f.quadratic and H.formed is not None and (features is state.features or len(features) < SMALL):
            return 0.0
        few = features is state.features or len(features) < FEW_NEW * np.count_nonzero(x.w)
        return FINE if f.quadratic and few else SHARE

    def _with_free(self, free: Array, flat: FlatBall, g: Array, state: WorkingSetState, most: int) -> Array | None:
        """`_features` where some stand outside the flat set: these come last, always."""
        if not len(free):
            return self._features(flat, state.x.w, g, state, most)
        kept = np.delete(np.arange(len(g)), free)
        last = state.features
        place = np.full(len(g), -1)
        place[kept] = np.arange(len(kept))
        inner = replace(state, features=None if last is None else place[last[: -len(free)]])
        found = self._features(flat, state.x.w[kept], g[kept], inner, most - len(free))
        if found is None:
            return None
        return last if last is not None and found is inner.features else np.append(kept[found], free)

    def _features(self, flat: FlatBall, w: Array, g: Array, state: WorkingSetState, most: int) -> Array | None:
        """The features in use and those with the largest slopes, those of a group next to each other.

        At most so many; None where that leaves no room for others.
        """
        scores = flat.scores(g)
        used = np.flatnonzero(w.any(axis=tuple(range(1, w.ndim))) if w.ndim > 1 else w)
        last, size = state.features, self.smallest
        if last is not None:
            outside = scores.copy()
            outside[last] = -math.inf
            missing = int(np.count_nonzero(outside > state.level))
            if not missing:
                return last
            most_new = max(len(used), self.smallest)
            if flat.norm(w) < SHORT * flat.radius:  # the features so far do not even use up the radius
                most_new = max(most_new, min(3 * len(last), MOST_NEW, most // 4))
            size = len(used) + min(max(2 * missing, self.smallest // 2), most_new)
        size = max(size, self.smallest, min(2 * len(used), SMALL))
        if len(used) >= most < len(w):
            return None
        size = min(size, most)
        scores[used] = math.inf
        chosen = np.argpartition(-scores, size - 1)[:size] if size < len(w) else np.arange(len(w))
        if flat.groups is None:
            return np.sort(chosen)
        chosen = np.flatnonzero(np.isin(flat.groups, np.unique(flat.groups[chosen])))
        return chosen[np.argsort(flat.groups[chosen], kind="stable")] if len(chosen) <= most else None

    @staticmethod
    def _hessian(f: SmoothFunction, x: Point, features: Array, state: WorkingSetState) -> Array:
        """The part of the Hessian that belongs to the features; of a quadratic only what is new is formed."""
        if state.H is None or state.features is None:
            return f.hessian_among(x, features)
        before = np.full(f.shape[0], -1)
        before[state.features] = np.arange(len(state.features))
        old, new = np.flatnonzero(before[features] >= 0), np.flatnonzero(before[features] < 0)
        H = np.empty((len(features), len(features)))
        H[np.ix_(old, old)] = state.H[np.ix_(before[features[old]], before[features[old]])]
        if len(new):
            H[new] = rows = f.hessian_among(x, features, new)
            H[:, new] = rows.T
        return H


def systems(quadratic: bool, shape: tuple[int, ...], flat: FlatBall) -> int:
    """How many outputs meet in one system of the model: none where they share a Hessian and no group joins them."""
    return 1 if quadratic and flat.groups is None else math.prod(shape[1:])


def _minimum(
    flat: FlatBall,
    w: Array,
    g: Array,
    features: Array,
    H: Symmetric,
    level: float,
    share: float,
    apart: Array,
    bound: float,
) -> tuple[Array, float]:
    """The minimiser of the model over the features, and the multiplier there; those ``apart`` are the last ones.

    These lie between ``-bound`` and ``bound``.
    """
    free, side = len(apart), len(H.diagonal)
    bounded = features[: len(features) - free]
    # The set counts its own features alone.
    among, old, slope = flat.among(bounded - np.searchsorted(apart, bounded)), w[features], g[features]
    if side > len(features):
        among = among.flattened(side // len(features))
        old, slope = old.ravel(), slope.ravel()
        free *= side // len(features)
    # At the start nothing is known about it; later new features may ask for more than the old ones did.
    highest = FIRST_LEVEL * among.level(slope[: side - free])
    level = highest if math.isnan(level) else max(level, highest)
    b = H.times(old.reshape(side, -1).T).T.reshape(old.shape) - slope
    if free:
        assert H.formed is not None
        found = minimise_with_free(H.formed, b, among, old, level, share, free=free, bound=bound)
    else:
        found = minimise_flat(H, b, among, old, level, share)
    v = np.zeros_like(w)
    v[features] = found.w.reshape(len(features), *w.shape[1:])
    return v, found.level
