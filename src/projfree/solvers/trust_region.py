"""Squares over a Euclidean ball when there are too many features for a Gram matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from projfree.algebra import FactoredShape, Minorant, Point
from projfree.checks import Array, count
from projfree.numerics.lanczos import KrylovBasis, Lanczos, Small
from projfree.objectives.base import SmoothFunction
from projfree.sets import LpBall
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Known, Solver, State
from projfree.solvers.correction import has_products
from projfree.solvers.hessian_free import newton_move
from projfree.solvers.restoring import member

#: A tangent is taken at the minimiser over the space when its relative gap, which the space knows without a read, has
#: that many digits, of which the last but one is not asked for often, and at each digit more; a little later than that,
#: because what it proves is less by an allowance for rounding.
FIRST, SKIPPED, LATER = 4, 5, 0.9
#: The iterate is formed in every iteration while the space is at most this large, and then in each that this divides:
#: it costs as much as the space is large, and the recurrence does not need it.
OFTEN, SOMETIMES = 24, 8
#: A residual this much smaller than b is rounding.
NOISE = 1e-14


@dataclass(frozen=True, kw_only=True)
class KrylovState(State):
    """A state with the space, the value at zero and the tangent at the iterate, None where it was not taken.

    ``memory`` is the number of digits at the last tangent.
    """

    Q: Array = field(metadata=member("r", "D"))
    alpha: Array = field(metadata=member("s"))
    beta: Array = field(metadata=member("s"))
    length: float = field(default=math.nan, metadata=member(least=0.0))
    constant: float = math.nan
    penalty: float = field(default=0.0, metadata=member(least=0.0))
    m: Minorant | None = None
    store: KrylovBasis | None = field(default=None, metadata={"transient": True}, repr=False)

    def consistent(self, f: SmoothFunction, ball: ConstraintSet) -> bool:
        begun = len(self.Q) > 0 or not self.length > 0.0
        return begun and len(self.Q) - len(self.alpha) in (0, 1)

    @property
    def space(self) -> Lanczos:
        """The space as an object."""
        return Lanczos(self.Q, self.alpha, self.beta, self.length, self.store)


@dataclass(frozen=True, repr=False)
class TrustRegionLanczos(Solver):
    r"""Minimise a quadratic over the Euclidean ball within Krylov spaces, one more dimension each iteration.

    .. math:: x_t = \arg\min \bigl\{f(w) : w \in \operatorname{span}\{b, Hb, \dots, H^{t-1} b\},\ \|w\|_2 \le r\bigr\}

    No method that adds gradients needs fewer iterations. One read an iteration, and one more for the
    certificate at each digit from the fourth on. H is never formed. The space does
    not depend on the start, which is looked at first, nor on the radius, so that a path shares one space.

    Parameters
    ----------
    memory : int
        The largest dimension of the space, a vector each. Where that is not enough, truncated Newton steps go on from
        the minimiser over it, without a basis: each costs as many reads as it takes to reduce the residual tenfold.

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

    memory: int = 200

    @property
    def times_tangents(self) -> bool:
        return True

    def __post_init__(self) -> None:
        count("TrustRegionLanczos(memory=...)", self.memory, lowest=4)

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not f.convex or not f.quadratic or not has_products(f):
            raise TypeError(
                "TrustRegionLanczos needs a convex quadratic such as an Objective with Squared(), got "
                f"{f.workload().name}; use CorrectivePrimalAveraging."
            )
        if isinstance(f.shape, FactoredShape):
            raise TypeError("TrustRegionLanczos needs dense parameters; use CorrectivePrimalAveraging.")
        _euclidean(ball, f.shape)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> KrylovState:
        none = np.zeros(0)
        return KrylovState(t=0, x=start, seed=seed, Q=np.zeros((0, start.w.size)), alpha=none, beta=none)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> KrylovState:
        assert isinstance(state, KrylovState)
        space = vars(state.space)
        return KrylovState(t=0, x=state.x, seed=state.seed, constant=state.constant, **space)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, KrylovState)
        radius = _euclidean(ball, f.shape).radius
        if math.isnan(state.length):
            state = _begun(f, state)
        if not state.length > 0.0:  # zero is a minimiser
            return replace(_looked(f, ball, state, f.point(np.zeros(f.shape))), done=True)
        if state.t == 0 and not state.space.size and state.x.w.any():
            return _looked(f, ball, state, state.x)
        if state.t > 0 and (state.space.closed or state.space.size >= self.memory) and state.m is not None:
            return _newton(f, ball, state)
        carried = state.t == 0 and state.space.size > 0  # the space of another radius, which may do
        if not carried:
            # The product does not depend on where it is taken.
            H = f.hessian(state.x)
            assert H is not None
            image = H.times(state.space.Q[-1].reshape(f.shape))
            state = replace(state, **vars(state.space.extended(image.ravel())))
        found = state.space.minimise(radius, state.penalty)
        state, done = replace(state, penalty=found.penalty), self._ends(state, found)
        digits = _digits(state, found, radius)
        if done or carried or self._due(state, digits):
            state = replace(state, memory=digits)
            return replace(_looked(f, ball, state, _point(f, state, found, radius)), done=done)
        moved = replace(state, t=state.t + 1, gamma=1.0, m=None, evaluation=None, found=(), gap=math.nan)
        formed = state.space.size <= OFTEN or moved.t % SOMETIMES == 0
        return replace(moved, x=_point(f, state, found, radius)) if formed else moved

    @staticmethod
    def _ends(state: KrylovState, found: Small) -> bool:
        return state.space.closed or found.rest <= NOISE * state.length

    def _due(self, state: KrylovState, digits: float) -> bool:
        """Whether a tangent is worth its read."""
        if state.space.size >= self.memory:
            return True
        # Right after another one the next product costs as much, and may make it unnecessary.
        return state.m is None and digits >= FIRST and digits != SKIPPED and not digits <= state.memory


def _digits(state: KrylovState, found: Small, radius: float) -> float:
    """The digits of the value at the minimiser over the space, both of which the space knows."""
    below = 0.5 * (state.length * float(found.h[0]) + found.penalty * float(found.h @ found.h))
    value, gap = abs(state.constant - below), found.gap(radius)
    if not gap > 0.0:
        return math.inf
    return float(math.floor(math.log10(LATER * value / gap))) if value > 0.0 else 0.0


def _begun(f: SmoothFunction, state: KrylovState) -> KrylovState:
    """The state with a space of dimension zero, from the value and the gradient at zero."""
    zero = f.evaluate(f.point(np.zeros(f.shape)))
    space = Lanczos.begun(-zero.slope.gradient.ravel())
    return replace(state, constant=zero.value, **vars(space))


def _point(f: SmoothFunction, state: KrylovState, found: Small, radius: float) -> Point:
    """The minimiser over the space, within the ball to rounding."""
    x = state.space.point(found.h)
    norm = float(np.linalg.norm(x))
    return f.point((x * min(1.0, radius / norm if norm > 0.0 else 1.0)).reshape(f.shape), state.x.intercept)


def _looked(f: SmoothFunction, ball: ConstraintSet, state: KrylovState, x: Point) -> KrylovState:
    """The state at ``x``, with the tangent there."""
    here = f.evaluate(x, keep=True)
    known, t = Known.of(ball, here), state.t + 1
    return replace(
        state,
        t=t,
        x=here.point,
        m=here.slope,
        gamma=1.0,
        evaluation=here,
        found=((t, here),),
        bound=known.bound,
        gap=known.gap,
    )


def _newton(f: SmoothFunction, ball: ConstraintSet, state: KrylovState) -> KrylovState:
    """The state after a truncated Newton step, which needs no basis."""
    assert state.m is not None
    move = newton_move(f, ball, state.x, state.m)
    t = state.t + 1
    return replace(
        state,
        t=t,
        x=move.new.point,
        m=move.new.slope,
        gamma=move.gamma,
        evaluation=move.new,
        found=((t, move.new),),
        bound=move.known.bound,
        gap=move.known.gap,
        done=move.last,
    )


def _euclidean(ball: ConstraintSet, shape: tuple[int, ...]) -> LpBall:
    """The ball as a Euclidean one, or a sentence."""
    lp = ball.as_lp(shape)
    if lp is None or lp.p != 2.0:
        raise ValueError(f"TrustRegionLanczos needs the Euclidean ball LpBall(2, ...), got {ball!r}; use Direct.")
    return lp
