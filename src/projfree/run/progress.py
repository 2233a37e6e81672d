"""`Run`: the books of one run, kept between the steps of its solver."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from projfree.algebra import Point, same
from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.compilation import working_clock
from projfree.objectives.base import SmoothFunction
from projfree.objectives.blackbox import NotFiniteError
from projfree.objectives.evaluation import Evaluation
from projfree.run.ladder import Ladder
from projfree.run.trace import Trace
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State
from projfree.solvers.choose import Plan

#: A tangent at the iterate is taken when this many passes have gone by, and a tenth of all so far, or as many again if
#: the last one proved nothing new: an interior optimum is certified there, or by tangents nearby.
CHECK_EVERY, CHECK_GROWTH, IDLE_GROWTH = 5.0, 1.1, 2.0
#: The scale of the relative gap is at least this part of the value at the centre.
CENTRE_SHARE = 1e-6
#: A value at the centre below this part of the terms whose difference it is, is rounding.
ROUNDED = 1e-12
#: And at least this, far above the rounding of a function that is zero everywhere.
LEAST_SCALE = 1e-270


class Run:
    """One run: state, trace, bounds and the best point so far. Callbacks are given this object.

    Attributes
    ----------
    iteration, passes, seconds
        What was done; ``seconds`` is solver time alone, without that of compiling.
    value, bound, gap, relative_gap
        The best value found, the best bound proved, and their difference (the latest Frank-Wolfe gap where the
        objective is not convex); infinite until known.
    best : Point
        The point with the best value.
    smallest_gap : tuple
        The smallest Frank-Wolfe gap found where the objective is not convex, and its iteration.
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
        # Whether somebody was told that a checkpoint is missing.
        self.warned = False
        # The gradient at the best point and the support of the set there, once they were recomputed.
        self.gradient: Array | None = None
        self.support = math.nan
        # Callbacks may look at `f` and read its data; the run counts what it reads itself.
        self.f, self.ball, self.solver, self.state = f, ball, solver, state
        self.opened = f.open()
        self.tol, self.max_iter, self.record = tol, max_iter, record
        self.trace, self.ladder = Trace(), Ladder(ball, f.shape)
        self.seconds, self.first_iteration, self.work_before = 0.0, state.t, 0
        self.best, self.value = state.x, math.inf
        self.latest_gap, self.smallest_gap = math.inf, (math.inf, 0)
        self.centre_value, self.first_value = math.nan, math.inf
        self.next_check, self.next_confirm = CHECK_EVERY, 0.0
        #: Whether the check at exit has found that the function is not convex.
        self.contradicted = False
        #: Whether bounds and averages came from a file, so that only what is proved anew at the end counts.
        self.unproved = False
        #: The rows of the trace whose value or gap may still become known, by iteration.
        self.rows: dict[int, int] = {}

    @property
    def iteration(self) -> int:
        """Iterations of this run so far."""
        return self.state.t - self.first_iteration

    @property
    def passes(self) -> float:
        """Reads of the data so far."""
        return (self.opened.work + self.work_before) / self.f.pass_work

    @property
    def work(self) -> int:
        """What was read so far, in the objective's own units."""
        return self.opened.work + self.work_before

    @property
    def convex(self) -> bool:
        """Whether tangents bound the function: it is said to be convex, and no value contradicts that."""
        return self.f.convex and not (self.contradicted or self.opened.contradicted)

    @property
    def bound(self) -> float:
        """The best lower bound proved so far."""
        return self.ladder.bound

    @property
    def gap(self) -> float:
        """The certified gap of the best point, or the latest Frank-Wolfe gap where the objective is not convex."""
        return self.value - self.bound if self.convex else self.latest_gap

    @property
    def scale(self) -> float:
        """What gaps are relative to."""
        if math.isnan(self.centre_value):
            f = self.opened
            try:
                self.centre_value = f.evaluate(f.point(f.reference(self.ball)), tangent=False).reported.value
            except NotFiniteError:  # a function that is not defined there: gaps are relative to the value itself
                self.centre_value = 0.0
        centre, terms = abs(self.centre_value), self.f.term_size
        if centre <= ROUNDED * terms:  # there is nothing to explain: any value as small is rounding
            return max(abs(self.value), terms, LEAST_SCALE)
        return max(abs(self.value), CENTRE_SHARE * centre, LEAST_SCALE)

    @property
    def relative_gap(self) -> float:
        """The gap divided by the scale."""
        gap = self.gap
        return gap / self.scale if math.isfinite(gap) else math.inf

    def advance(self) -> None:
        """One step of the solver, and what it teaches."""
        begun = working_clock()
        if not (self.iteration or self.f.has_images or same(self.state.x.w, self.f.reference(self.ball))):
            _ = self.scale  # how large a user's function is at the centre tells what is rounding at a good start
        try:
            stepped = self.solver.step(self.opened, self.ball, self.state)
        except ValueError as error:
            if not self.unproved or isinstance(error, NotFiniteError):
                raise
            raise ValueError(  # numbers of a file that look well may lead beyond the range of floats
                f"the checkpoint leads to a step that fails ({error}); restore it from a copy, or begin anew with "
                "`start=`."
            ) from error
        self.state = state = self._shortened(stepped)
        if state.done and expired():  # it may have ended early, and then says nothing about what was possible
            self.state = state = replace(state, done=False)
        self._learn(state)
        looked = None
        if any([each.tangent is not None for _, each in state.found]):  # a tangent at an iterate: no check is due
            self.next_check = self.after(self.passes)
        elif self.passes >= self.next_check and not self._suffices(state):
            looked = self._check(state.x)
            self.state = replace(state, x=looked.point)  # with the intercept over all rows
        self.seconds += max(0.0, working_clock() - begun)
        self._append_row()
        now = self.iteration
        for t, each in state.found:
            self._take(t - self.first_iteration, each.reported, state.gap)
        if looked is not None:
            self._take(now, looked.reported)
        self.rows = {t: row for t, row in self.rows.items() if t >= now}

    @cached_property
    def round_set(self) -> bool:
        """Whether the set is strongly convex and its support does not need singular values."""
        return not self.ball.spectral and self.ball.strong_convexity(self.f.shape) > 0.0

    def _suffices(self, state: State) -> bool:
        """Whether the solver's own tangents prove as much, and values come without a look at the iterate.

        Measured for sets that are strongly convex; on spectral ones the ladder does not look at every tangent.
        """
        if self.solver.times_tangents:
            return True
        taken = self.convex and state.evaluation is not None and self.solver.tangents_suffice and bool(state.found)
        return taken and self.round_set

    def _shortened(self, state: State) -> State:
        """The state with an iterate whose factors fit their memory; the image of one that was cut is formed anew."""
        short = self.ball.shortened(state.x.w)
        return state if short is state.x.w else replace(state, x=self.f.point(short, state.x.intercept))

    def _learn(self, state: State) -> None:
        if self.convex and state.evaluation is not None:
            # The oracle call of a run on a perturbed function bounds that function, not the reported one.
            found = state.evaluation.reported
            own = found.tangent is state.evaluation.tangent
            if own and not math.isnan(state.allowance):
                self.ladder.take(state.bound, state.allowance, found.point.w)
                return
            self.ladder.add(
                found.slope,
                found.point.w,
                state.bound if own else -math.inf,
                state.answer,
                own=own and not math.isnan(state.gap),
                goal=self._goal(),
            )

    def _goal(self) -> float:
        """The bound that would end the run, where the ladder asks for it; infinite while no value is known."""
        asked = self.ball.support_cost == "call" and math.isfinite(self.value)
        return self.value - self.tol * self.scale if asked else math.inf

    def _check(self, x: Point) -> Evaluation:
        """Take a tangent at the iterate: the bound that serves an interior optimum too."""
        found, before = self.opened.evaluate(x), self.bound
        if self.convex:
            self.ladder.try_tangent(found.reported.slope, x.w, self.state.answer)
        idle = self.convex and self.bound <= before
        self.next_check = self.after(self.passes, IDLE_GROWTH if idle else CHECK_GROWTH)
        return found

    def _take(self, iteration: int, found: Evaluation, gap: float = math.nan) -> None:
        """Take in what is known about an iterate; ``gap`` is the Frank-Wolfe gap there if somebody knows it."""
        row = self.rows.get(iteration)
        if row is not None:
            self.trace.fill(row, value=found.value)
            if self.convex:
                self.trace.fill(row, gap=found.value - self.trace.at(row, "bound"))
        if iteration == 0:
            self.first_value = found.value
        if iteration == 0 and same(found.point.w, self.f.reference(self.ball)):
            self.centre_value = found.value
        if found.value < self.value:
            self.best, self.value = found.point, found.value
        if not self.convex and found.tangent is not None:
            self._note(self.ball.gap(found.slope.gradient, found.point.w) if math.isnan(gap) else gap, iteration)

    def _note(self, gap: float, iteration: int) -> None:
        """Keep a Frank-Wolfe gap, the measure of stationarity where the objective is not convex."""
        self.latest_gap = gap
        if gap < self.smallest_gap[0]:
            self.smallest_gap = (gap, iteration)
        if iteration in self.rows:
            self.trace.fill(self.rows[iteration], gap=gap)

    @staticmethod
    def after(passes: float, growth: float = CHECK_GROWTH) -> float:
        """The number of passes at which the next look is due."""
        return growth * passes + CHECK_EVERY

    def _append_row(self) -> None:
        """Begin the row of this iteration, if it is recorded."""
        now = self.iteration
        if self.record and now % self.record == 0:
            self.rows[now] = self.trace.append(
                iteration=now,
                passes=self.passes,
                seconds=self.seconds,
                bound=self.bound if self.convex else math.nan,
                gamma=self.state.gamma,
            )

    def settle(self) -> None:
        """Find the value of the last iterate, for the last row of the trace and perhaps as the best one."""
        self._take(self.iteration, self.opened.evaluate(self.state.x, tangent=False).reported)
