"""Squares over a Euclidean ball when there are too many features for a Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import FactoredShape, Point
from projfree.checks import Array, count
from projfree.numerics.lanczos import Krylov
from projfree.objectives.base import SmoothFunction
from projfree.sets import LpBall
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State

#: A tangent is taken at the iterate when its gap, which the space knows without a read, has fallen by this factor,
FALL = 10.0
#: and only every so many iterations.
EVERY = 3
#: A residual this much smaller than b is rounding.
NOISE = 1e-14


@dataclass(frozen=True, kw_only=True)
class KrylovState(State):
    """A state with the space and its products, b, and the next direction; ``memory`` is the gap at the last tangent."""

    Q: Array
    HQ: Array
    T: Array
    b: Array | None = None
    direction: Array | None = None

    @property
    def space(self) -> Krylov:
        """The space as an object."""
        return Krylov(self.Q, self.HQ, self.T)


@dataclass(frozen=True, repr=False)
class TrustRegionLanczos(Solver):
    r"""Minimise a quadratic over the Euclidean ball within Krylov spaces, one more dimension each iteration.

    .. math:: x_t = \arg\min \bigl\{f(w) : w \in \operatorname{span}\{b, Hb, \dots, H^{t-1} b\},\ \|w\|_2 \le r\bigr\}

    No method that adds gradients needs fewer iterations. One read an iteration, and one more every third
    iteration if the gap has fallen by a factor of ten, for the certificate. H is never formed.

    Parameters
    ----------
    memory : int
        The largest dimension of the space; two vectors are held for each. A full space is shrunk to a third: the
        iterate, the latest directions and those with least curvature; where that happens convergence slows down.

    References
    ----------
    Gould, Lucidi, Roma, Toint (1999), Solving the trust-region subproblem using the Lanczos method.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, TrustRegionLanczos, as_data, minimize
    >>> f = Objective(Squared(), as_data(np.diag([1.0, 2.0, 3.0]), [1.0, 1.0, 1.0]))
    >>> minimize(f, LpBall(2, radius=0.5), TrustRegionLanczos(), tol=1e-9).w.round(4)
    array([0.291 , 0.3107, 0.2623])
    """

    memory: int = 100

    def __post_init__(self) -> None:
        count("TrustRegionLanczos(memory=...)", self.memory, lowest=4)

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not f.convex or not f.quadratic:
            raise TypeError(
                "TrustRegionLanczos needs a convex quadratic such as an Objective with Squared(), got "
                f"{f.workload().name}; use CorrectivePrimalAveraging."
            )
        if isinstance(f.shape, FactoredShape):
            raise TypeError("TrustRegionLanczos needs dense parameters; use CorrectivePrimalAveraging.")
        _euclidean(ball, f.shape)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> KrylovState:
        return KrylovState(t=0, x=start, seed=seed, **vars(Krylov.empty(start.w.size)))

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> KrylovState:
        assert isinstance(state, KrylovState)
        return KrylovState(t=0, x=state.x, seed=state.seed, b=state.b, **vars(state.space))

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, KrylovState)
        radius, space = _euclidean(ball, f.shape).radius, state.space
        b = -f.minorant(f.point(np.zeros(f.shape))).gradient.ravel() if state.b is None else state.b
        direction = self._direction(state, b, radius)
        if space.size >= self.memory:
            space = space.shrunk(space.minimise(b, radius).h, self.memory // 3)
        q = space.next(direction, NOISE * float(np.linalg.norm(b))) if direction.any() else None
        if q is not None:
            # Within the ball, where neither b nor the product drowns the other.
            slope = f.minorant(f.point((radius * q).reshape(f.shape))).gradient.ravel()
            space = space.extended(q, (slope + b) / radius)
        return self._moved(f, radius, replace(state, t=state.t + 1, b=b, **vars(space)), done=q is None)

    @staticmethod
    def _direction(state: KrylovState, b: Array, radius: float) -> Array:
        """What to add to the space: at first the start, which is worth a dimension, or b."""
        if state.direction is not None:
            return state.direction
        if state.space.size:
            return state.space.minimise(b, radius).direction
        return state.x.w.ravel() if state.x.w.any() else b

    @staticmethod
    def _moved(f: SmoothFunction, radius: float, state: KrylovState, done: bool) -> State:
        """The state at the minimiser over the space, with a tangent there if one is due."""
        assert state.b is not None
        if not state.space.size:  # b is zero, and so is the start, which is then a minimiser
            here = f.evaluate(state.x)
            return replace(state, gamma=1.0, evaluation=here, found=((state.t, here),), done=True)
        found, last = state.space.minimise(state.b, radius), state.memory
        norm = float(np.linalg.norm(found.x))
        x = f.point((found.x * min(1.0, radius / norm if norm > 0.0 else 1.0)).reshape(f.shape), state.x.intercept)
        gap = found.gap(radius)
        due = done or (state.t % EVERY == 0 and not gap > last / FALL)
        looked = f.evaluate(x) if due else None
        return replace(
            state,
            x=x if looked is None else looked.point,
            gamma=1.0,
            memory=gap if due else last,
            direction=found.direction,
            evaluation=looked,
            found=() if looked is None else ((state.t, looked),),
            done=done,
        )


def _euclidean(ball: ConstraintSet, shape: tuple[int, ...]) -> LpBall:
    """The ball as a Euclidean one, or a sentence."""
    lp = ball.as_lp(shape)
    if lp is None or lp.p != 2.0:
        raise ValueError(f"TrustRegionLanczos needs the Euclidean ball LpBall(2, ...), got {ball!r}; use Direct.")
    return lp
