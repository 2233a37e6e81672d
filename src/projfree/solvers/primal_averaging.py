"""Primal Averaging: Frank-Wolfe on an averaged gradient, and its corrective form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import NoneType

import numpy as np

from projfree.algebra import Minorant, Point, mix, zeros
from projfree.checks import instance
from projfree.objectives.base import SmoothFunction
from projfree.sampling import FullBatch, Sampling
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State, call_oracle
from projfree.steps import OpenLoop, Schedule, StepResult, StepRule


@dataclass(frozen=True, kw_only=True)
class AveragingState(State):
    """State with the last vertex ``v``; ``m`` is the average of the tangents so far."""

    v: Point


@dataclass(frozen=True, repr=False)
class PrimalAveraging(Solver):
    r"""Primal Averaging: each step moves towards the minimiser of an average of tangents at extrapolated points z.

    .. math:: z &= (1 - \gamma_t) x_{t-1} + \gamma_t v_{t-1}, \qquad
              m_t = (1 - a_t) m_{t-1} + a_t\,\mathrm{tangent}(z), \\
              v_t &= \arg\min_{v \in C} m_t(v), \qquad x_t = (1 - \gamma_t) x_{t-1} + \gamma_t v_t

    The average of tangents is a minorant of a convex f, so :math:`\min_C m_t` is a lower bound at no further cost. An
    iteration costs one read of the data.

    Parameters
    ----------
    schedule : Schedule
        The weights :math:`\gamma_t`; ``OpenLoop(2)`` is :math:`2 / (t + 1)`.
    average : Schedule, optional
        The weights :math:`a_t` of the gradients. By default those of ``schedule`` (option A of the paper).
        ``LastGradient()`` is option B, which is slower and included for comparison.
    search : StepRule, optional
        A line search from :math:`x_{t-1}` to :math:`v_t` in place of :math:`\gamma_t`; it costs a second read.
    sampling : Sampling
        The rows of each gradient. ``Growing(2)`` with averaging is the better stochastic method; ``Growing(4)`` with
        ``LastGradient()`` is that of the paper.

    References
    ----------
    Lan (2013), The complexity of large-scale convex programming under a linear optimization oracle;
    Levy, Krause (2019) and Wang, Abernethy (2018) for strongly convex sets.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, PrimalAveraging, QuadraticForm, minimize
    >>> f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    >>> minimize(f, LpBall(2, radius=1.0), PrimalAveraging()).w.round(6)
    array([0.6, 0.8])
    """

    schedule: Schedule = field(default_factory=OpenLoop)
    average: Schedule | None = None
    search: StepRule | None = None
    sampling: Sampling = field(default_factory=FullBatch)

    def __post_init__(self) -> None:
        name = type(self).__name__
        instance(f"{name}(schedule=...)", self.schedule, Schedule, "OpenLoop(2)")
        instance(f"{name}(average=...)", self.average, (Schedule, NoneType), "LastGradient()")
        instance(f"{name}(search=...)", self.search, (StepRule, NoneType), "ExactLineSearch()")
        instance(f"{name}(sampling=...)", self.sampling, Sampling, "Growing(2)")

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if self.search is not None and not isinstance(self.sampling, FullBatch):
            raise ValueError(
                f"PrimalAveraging with {self.sampling!r} cannot search along all rows; leave `search` out."
            )

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> AveragingState:
        return AveragingState(t=0, x=start, seed=seed, v=start, m=Minorant(-math.inf, zeros(f.shape)))

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, AveragingState)
        assert state.m is not None
        t = state.t + 1
        gamma = self.schedule.weight(t)
        old = 1.0 - (gamma if self.average is None else self.average.weight(t))
        z = mix((1.0 - gamma, state.x), (gamma, state.v))
        here = self.sampling.evaluate(f, z, t, state.seed, also=(state.x,))
        m = old * state.m + (1.0 - old) * here.slope  # the weights sum to one exactly
        result = call_oracle(ball, m.gradient, state.oracle_result)
        # A zero average has no unique minimiser: reuse the last vertex, so that steps stay small.
        v = f.point(result.vertex) if m.gradient.any() else state.v
        last = here.also[0].point if here.also else state.x  # with its optimised intercept
        x, gamma, memory = self.move(f, (last, v, state.v), t, gamma, state.memory)
        return replace(state, t=t, x=x, v=v, m=m, gamma=gamma, memory=memory, evaluation=here, oracle_result=result)

    def move(self, f: SmoothFunction, points: tuple[Point, ...], t: int, gamma: float, memory: float) -> StepResult:
        """Return the next iterate, given the last one, the new vertex and the last vertex."""
        x, v, _ = points
        if self.search is None:
            return mix((1.0 - gamma, x), (gamma, v)), gamma, memory
        hull = f.hull((x, v))
        gamma, memory = self.search(t, hull, memory)
        return hull.mix(np.array([gamma])), gamma, memory


@dataclass(frozen=True, repr=False)
class CorrectivePrimalAveraging(PrimalAveraging):
    r"""Primal Averaging whose iterate minimises f over the convex hull of the last iterate and the last two vertices.

    .. math:: x_t = \arg\min\,\{f(x) : x \in \mathrm{conv}\{x_{t-1}, v_t, v_{t-1}\}\}

    The hull contains the point of Primal Averaging, so the method has the same rate and certificate. The values
    decrease (except when the factors of a matrix are truncated), and no smoothness constant is needed. An iteration
    costs two reads of the data. The function must be convex and have predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import CorrectivePrimalAveraging, LpBall, Objective, Squared, as_data, minimize
    >>> f = Objective(Squared(), as_data(np.diag([1.0, 2.0, 3.0]), [1.0, 1.0, 1.0]))
    >>> minimize(f, LpBall(1.5, radius=0.5), CorrectivePrimalAveraging(), tol=1e-9).w.round(4)
    array([0.2073, 0.2727, 0.2388])
    """

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if not f.structure.predictions:
            raise TypeError(
                f"CorrectivePrimalAveraging needs images of points, and {type(f).__name__} has none; use "
                "PrimalAveraging or FrankWolfe."
            )
        if not f.convex:
            raise TypeError("CorrectivePrimalAveraging needs a convex objective; use FrankWolfe(ExactLineSearch()).")
        if not isinstance(self.sampling, FullBatch):
            raise ValueError(
                f"CorrectivePrimalAveraging looks at all rows, got {self.sampling!r}; use PrimalAveraging."
            )

    def move(self, f: SmoothFunction, points: tuple[Point, ...], t: int, gamma: float, memory: float) -> StepResult:
        hull = f.hull(points)
        # Start at the last iterate and at the point of PA, so that values decrease and the rate of PA holds.
        place = hull.minimise(np.zeros(2), np.array([gamma, 0.0]))
        return hull.mix(place), float(place.sum()), memory
