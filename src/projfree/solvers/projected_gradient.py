"""Projected gradient methods, with and without acceleration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from projfree.algebra import Point, inner, same
from projfree.checks import instance
from projfree.numerics.fista import momentum
from projfree.objectives.base import SmoothFunction
from projfree.sampling import FullBatch, Sampling
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State
from projfree.steps import BacktrackingGradient, GradientStep, InverseSmoothness


class ProjectingSolver(Solver):
    """Base class of solvers that need the projection onto the set."""

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if ball.structure(f.shape).projection == "none":
            raise ValueError(f"{type(self).__name__} needs a projection, {ball!r} has none; use PrimalAveraging.")


@dataclass(frozen=True, repr=False)
class ProjectedGradient(ProjectingSolver):
    r"""The projected gradient method.

    .. math:: x_t = P_C(x_{t-1} - \eta_t\nabla f(x_{t-1}))

    Parameters
    ----------
    step_rule : GradientStep
        ``InverseSmoothness()``, ``BacktrackingGradient()`` or ``InverseSqrt()``.
    sampling : Sampling
        ``Minibatch(1)`` with ``InverseSqrt()`` is projected stochastic gradient descent.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, ProjectedGradient, QuadraticForm, minimize
    >>> f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    >>> minimize(f, LpBall(2, radius=1.0), ProjectedGradient()).w.round(6)
    array([0.6, 0.8])
    """

    step_rule: GradientStep = field(default_factory=InverseSmoothness)
    sampling: Sampling = field(default_factory=FullBatch)

    def __post_init__(self) -> None:
        instance("ProjectedGradient(step_rule=...)", self.step_rule, GradientStep, "BacktrackingGradient()")
        instance("ProjectedGradient(sampling=...)", self.sampling, Sampling, "Minibatch(32)")

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if isinstance(self.step_rule, BacktrackingGradient) and not isinstance(self.sampling, FullBatch):
            raise ValueError(f"BacktrackingGradient looks at all rows, got {self.sampling!r}; use `InverseSqrt()`.")

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        t, x = state.t + 1, state.x
        here = self.sampling.evaluate(f, x, t, state.seed)
        new, eta, memory = self.step_rule(f, here, ball.project, t, state.memory)
        return replace(state, t=t, x=new, gamma=eta, memory=memory, evaluation=here)


@dataclass(frozen=True, kw_only=True)
class MomentumState(State):
    """State with the extrapolated point ``y`` and the momentum parameter ``theta``."""

    y: Point
    theta: float


@dataclass(frozen=True, repr=False)
class AcceleratedProjectedGradient(ProjectingSolver):
    r"""FISTA: projected gradient steps from an extrapolated point, with restarts if the momentum points uphill.

    .. math:: x_t = P_C(y_{t-1} - \eta\nabla f(y_{t-1})), \qquad
              y_t = x_t + \frac{\theta_{t-1} - 1}{\theta_t}(x_t - x_{t-1})

    Parameters
    ----------
    step_rule : GradientStep
        ``InverseSmoothness()`` or ``BacktrackingGradient()``.

    References
    ----------
    Beck, Teboulle (2009); O'Donoghue, Candes (2015), Adaptive restart for accelerated gradient schemes.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import AcceleratedProjectedGradient, LpBall, QuadraticForm, minimize
    >>> f = QuadraticForm(np.diag([1.0, 4.0]), np.array([3.0, 4.0]))
    >>> minimize(f, LpBall(1, radius=1.0), AcceleratedProjectedGradient(), tol=1e-9).w.round(6)
    array([0.6, 0.4])
    """

    step_rule: GradientStep = field(default_factory=InverseSmoothness)

    def __post_init__(self) -> None:
        kinds = (InverseSmoothness, BacktrackingGradient)
        instance("AcceleratedProjectedGradient(step_rule=...)", self.step_rule, kinds, "BacktrackingGradient()")

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> MomentumState:
        return MomentumState(t=0, x=start, seed=seed, y=start, theta=1.0)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, MomentumState)
        t, x, y = state.t + 1, state.x, state.y
        here = f.evaluate(y, also=() if same(x.w, y.w) else (x,))
        y, x = here.point, here.also[0].point if here.also else x
        new, eta, memory = self.step_rule(f, here, ball.project, t, state.memory)
        theta, weight = momentum(state.theta, restart=inner(y.w - new.w, new.w - x.w) > 0.0)
        return replace(
            state,
            t=t,
            x=new,
            y=new if weight == 0.0 else (1.0 + weight) * new + (-weight) * x,
            theta=theta,
            gamma=eta,
            memory=memory,
            evaluation=here,
        )
