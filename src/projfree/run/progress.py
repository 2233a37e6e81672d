"""`Run`: the books of one run, kept between the steps of its solver."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from projfree.algebra import Point, same
from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.compilation import working_clock
from projfree.objectives.base import SmoothFunction
from projfree.run.ladder import Ladder
from projfree.run.trace import Trace
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State
from projfree.solvers.plan import Plan

#: A tangent at the iterate is taken when this many passes have gone by, and a tenth of all so far, or as many again if
#: the last one proved nothing new: an interior optimum is certified there, or by tangents nearby.
CHECK_EVERY, CHECK_GROWTH, IDLE_GROWTH = 5.0, 1.1, 2.0
#: The scale of the relative gap is at least this part of the value at the centre.
CENTRE_SHARE = 1e-6
#: And at least this, far above the rounding of a function that is zero everywhere.
LEAST_SCALE = 1e-270


@dataclass
class Pending:
    """An iterate whose value no pass has shown yet, and its row of the trace."""

    row: int | None
    x: Point
    age: int = 0


class Run:
    """One run: state, trace, bounds and the best point so far. Callbacks are given this object.

    Attributes
    ----------
    iteration, passes, seconds
        What was done; ``seconds`` is solver time alone, without that of compiling.
    value, bound, gap, relative_gap
        The best value met, the best bound proved, and their difference (the latest Frank-Wolfe gap where the
        objective is not convex); infinite until known.
    best : Point
        The point with the best value.
    smallest_gap : tuple
        The smallest Frank-Wolfe gap met where the objective is not convex, and its iteration.
    state : State
        Where the solver stands.
    trace : Trace
        The rows so far.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, PrimalAveraging, QuadraticForm, minimize
    >>> f, ball = QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(1.5, radius=1.0)
    >>> minimize(f, ball, PrimalAveraging(), callbacks=[lambda run: run.relative_gap < 0.5]).status.name
    'CALLBACK'
    """

    def __init__(
        self,
        f: SmoothFunction,
        ball: ConstraintSet,
        solver: Solver,
        state: State,
        *,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        record: int = 1,
        plan: Plan | None = None,
    ) -> None:
        self.plan = plan
        # The gradient at the best point and the support of the set there, once they were recomputed.
        self.gradient: Array | None = None
        self.support = math.nan
        self.f, self.ball, self.solver, self.state = f, ball, solver, state
        self.tol, self.max_iter, self.record = tol, max_iter, record
        self.trace, self.ladder = Trace(), Ladder(ball, f.shape)
        self.seconds, self.first_iteration, self.work_before = 0.0, state.t, -f.work
        self.best, self.value = state.x, math.inf
        self.latest_gap, self.smallest_gap = math.inf, (math.inf, 0)
        self.centre_value = math.nan
        self.next_check, self.next_confirm = CHECK_EVERY, 0.0
        self.round_set = not ball.spectral and ball.strong_convexity(f.shape) > 0.0
        self.pending = [Pending(None, state.x)]

    @property
    def iteration(self) -> int:
        """Iterations of this run so far."""
        return self.state.t - self.first_iteration

    @property
    def passes(self) -> float:
        """Reads of the data so far."""
        return self.work / self.f.pass_work

    @property
    def work(self) -> int:
        """What was read so far, in the objective's own units."""
        return self.f.work + self.work_before

    @property
    def bound(self) -> float:
        """The best lower bound proved so far."""
        return self.ladder.bound

    @property
    def gap(self) -> float:
        """The certified gap of the best point, or the latest Frank-Wolfe gap where the objective is not convex."""
        return self.value - self.bound if self.f.convex else self.latest_gap

    @property
    def scale(self) -> float:
        """What gaps are relative to."""
        if math.isnan(self.centre_value):
            f = self.f.reported
            self.centre_value = f.value(f.point(self.ball.centre(f.shape)))
        return max(abs(self.value), CENTRE_SHARE * abs(self.centre_value), LEAST_SCALE)

    @property
    def relative_gap(self) -> float:
        """The gap divided by the scale."""
        return self.gap / self.scale if math.isfinite(self.gap) else math.inf

    def advance(self) -> None:
        """One step of the solver, and what it teaches."""
        previous, begun = self.state.x, working_clock()
        self.state = state = self._shortened(self.solver.step(self.f, self.ball, self.state))
        if state.done and expired():  # it may have ended early, and then says nothing about what was possible
            self.state = state = replace(state, done=False)
        gap = math.nan
        self._learn(state)
        at = state.at
        if state.tangent is not None and (at is previous or at is state.x):  # a tangent at an iterate: no check is due
            gap = state.gap if self.f.convex else self._stationarity(state.tangent.gradient, at, state.gap)
            self.next_check = self.after(self.passes)
        elif self.passes >= self.next_check and not self._suffices(state, previous):
            self._check(state.x)
        self.seconds += max(0.0, working_clock() - begun)
        self.pending.append(Pending(self._row(), state.x))
        self._note(at, gap, self.iteration - (at is previous))
        self.settle()

    def _suffices(self, state: State, previous: Point) -> bool:
        """Whether the solver's own tangents prove as much, and values come without a look at the iterate.

        Measured for sets that are strongly convex; on spectral ones the ladder does not look at every tangent.
        """
        taken = self.f.convex and state.tangent is not None and self.solver.tangents_suffice
        return taken and self.round_set and self.f.reported.knows(previous)

    def _shortened(self, state: State) -> State:
        """The state with an iterate whose factors fit their memory; one that was cut meets the data anew."""
        short = self.ball.shortened(state.x.w)
        return state if short is state.x.w else replace(state, x=self.f.point(short, state.x.hint()))

    def _learn(self, state: State) -> None:
        if self.f.convex and state.tangent is not None and state.at is not None:
            # The oracle call of a run on a perturbed function bounds that function, not the reported one.
            own = self.f.reported is self.f
            self.ladder.add(
                self.f.stripped(state.tangent),
                state.at.w,
                state.bound if own else -math.inf,
                state.answer,
                own=own and not math.isnan(state.gap),
                goal=self._goal(),
            )

    def _goal(self) -> float:
        """The bound that would end the run, where the ladder asks for it; infinite while no value is known."""
        asked = self.ball.support_cost == "call" and math.isfinite(self.value)
        return self.value - self.tol * self.scale if asked else math.inf

    def _check(self, x: Point) -> None:
        """Take a tangent at the iterate: the bound that serves an interior optimum too."""
        m, before = self.f.reported.minorant(x), self.bound
        if self.f.convex:
            self.ladder.try_tangent(m, x.w, self.state.answer)
        else:
            self._note(x, self._stationarity(m.gradient, x), self.iteration)
        idle = self.f.convex and self.bound <= before
        self.next_check = self.after(self.passes, IDLE_GROWTH if idle else CHECK_GROWTH)

    def _stationarity(self, gradient: Array, x: Point, known: float = math.nan) -> float:
        return self.ball.gap(gradient, x.w) if math.isnan(known) else known

    def _note(self, x: Point | None, gap: float, iteration: int) -> None:
        """Keep a Frank-Wolfe gap, the measure of stationarity where the objective is not convex."""
        if self.f.convex or math.isnan(gap):
            return
        self.latest_gap = gap
        if gap < self.smallest_gap[0]:
            self.smallest_gap = (gap, iteration)
        for pending in self.pending:
            if pending.x is x and pending.row is not None:
                self.trace.fill(pending.row, gap=gap)

    @staticmethod
    def after(passes: float, growth: float = CHECK_GROWTH) -> float:
        """The number of passes at which the next look is due."""
        return growth * passes + CHECK_EVERY

    def _row(self) -> int | None:
        if not self.record or self.iteration % self.record:
            return None
        return self.trace.append(
            iteration=self.iteration,
            passes=self.passes,
            seconds=self.seconds,
            bound=self.bound if self.f.convex else math.nan,
            gamma=self.state.gamma,
        )

    def settle(self) -> None:
        """Take the values that the last step made known; give up points that no step will meet again."""
        f, still = self.f.reported, []
        for pending in self.pending:
            if f.knows(pending.x):
                self._value_of(pending, f.value(pending.x))
            # Where f is not convex the gap of an iterate comes one step after its value.
            if pending.age == 0 and not (f.convex and f.knows(pending.x)):
                still.append(Pending(pending.row, pending.x, 1))
        self.pending = still

    def _value_of(self, pending: Pending, value: float) -> None:
        if pending.row is not None:
            self.trace.fill(pending.row, value=value)
            if self.f.convex:
                self.trace.fill(pending.row, gap=value - self.trace.at(pending.row, "bound"))
        elif self.iteration <= 1 and same(pending.x.w, self.ball.centre(self.f.shape)):
            self.centre_value = value
        if value < self.value:
            self.best, self.value = pending.x, value
