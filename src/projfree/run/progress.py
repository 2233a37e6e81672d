"""`Run`: the state of one run between the steps of its solver, and what identifies its problem."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import same, zeros
from projfree.algebra.hashing import short_hash
from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.compilation import working_clock
from projfree.objectives.base import SmoothFunction
from projfree.objectives.blackbox import NotFiniteError
from projfree.objectives.evaluation import Evaluation
from projfree.run.lower_bound import LowerBound
from projfree.run.result import Trace
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State
from projfree.solvers.choose import Plan

#: The relative gap is the gap divided by the value, or by this part of the value at the centre if that is larger.
CENTRE_SHARE = 1e-6
#: A value at the centre below this part of the terms whose difference it is, is rounding.
ROUNDED = 1e-12
#: The smallest scale, far above the rounding of a function that is zero everywhere.
LEAST_SCALE = 1e-270
#: What to do if a checkpoint cannot be used.
ANEW = "begin anew with this folder removed, or with another one"
#: What `short_hash` makes of arrays: it tells them apart, and nobody can read it.
HASH = re.compile(r"\b[0-9a-f]{16}\b")


def next_check(passes: float) -> float:
    """The number of passes at which the next tangent for the certificate is due: at most a tenth of all reads."""
    return 1.1 * passes + 5.0


class Run:
    """One run: state, trace, bounds and the best point so far. Callbacks are given this object.

    Attributes
    ----------
    iteration, passes, seconds
        What was done; ``seconds`` is solver time alone, without that of compiling.
    value, bound, gap, relative_gap
        The best value found, the best bound proved, and their difference (the latest Frank-Wolfe gap if the
        objective is not convex); infinite until known.
    best : Point
        The point with the best value.
    smallest_gap : tuple
        The smallest Frank-Wolfe gap found if the objective is not convex, and its iteration.
    state : State
        The state of the solver.
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
        certify: bool = True,
    ) -> None:
        self.f, self.ball, self.solver, self.state = f, ball, solver, state
        self.tol, self.max_iter, self.record, self.plan, self.certify = tol, max_iter, record, plan, certify
        # Callbacks may read the data through `f`; the run counts only what it reads itself.
        self.opened = f.open()
        self.trace, self.lower_bound = Trace(), LowerBound(ball, f.shape)
        self.seconds, self.first_iteration, self.work_before = 0.0, state.t, 0
        self.best, self.value = state.x, math.inf
        self.latest_gap, self.smallest_gap = math.inf, (math.inf, 0)
        self.centre_value, self.first_value = math.nan, math.inf
        self.next_check, self.next_confirm = next_check(0.0), 0.0
        # The gradient at the best point and the support of the set there, once they were recomputed.
        self.gradient: Array | None = None
        self.support = math.nan
        #: Whether the check at exit has found that the function is not convex.
        self.contradicted = False
        #: Whether bounds and averages came from a file, so that only what is proved again at the end counts.
        self.unproved = False
        #: Whether a warning was given that a checkpoint is missing.
        self.warned = False
        #: The rows of the trace whose value or gap may still become known, by iteration.
        self.rows: dict[int, int] = {}

    @cached_property
    def problem(self) -> dict[str, str]:
        """The fingerprint of the problem, which may take a pass over the data."""
        return dict(self.state.problem) or fingerprint(self.f, self.ball, self.solver)

    @property
    def iteration(self) -> int:
        """Iterations of this run so far."""
        return self.state.t - self.first_iteration

    @property
    def work(self) -> int:
        """What was read so far, in the objective's own units."""
        return self.opened.work + self.work_before

    @property
    def passes(self) -> float:
        """Reads of the data so far."""
        return self.work / self.f.pass_work

    @property
    def convex(self) -> bool:
        """Whether tangents bound the function: it is said to be convex, and no value contradicts that."""
        return self.f.convex and not (self.contradicted or self.opened.contradicted)

    @property
    def bound(self) -> float:
        """The best lower bound proved so far."""
        return self.lower_bound.bound

    @property
    def gap(self) -> float:
        """The certified gap of the best point, or the latest Frank-Wolfe gap if the objective is not convex."""
        return self.value - self.bound if self.convex else self.latest_gap

    @property
    def scale(self) -> float:
        """What gaps are relative to."""
        if math.isnan(self.centre_value):
            f = self.opened
            try:
                self.centre_value = f.evaluate(f.point(reference(f, self.ball)), tangent=False).reported.value
            except NotFiniteError:  # a function that is not defined there: gaps are relative to the value itself
                self.centre_value = 0.0
        centre, terms = abs(self.centre_value), self.f.structure.term_size or 0.0
        if centre <= ROUNDED * terms:  # any value as small is rounding
            return max(abs(self.value), terms, LEAST_SCALE)
        return max(abs(self.value), CENTRE_SHARE * centre, LEAST_SCALE)

    @property
    def relative_gap(self) -> float:
        """The gap divided by the scale."""
        gap = self.gap
        return gap / self.scale if math.isfinite(gap) else math.inf

    def advance(self) -> None:
        """Make one step of the solver, record what it found, and take a tangent for the certificate if one is due."""
        begun = working_clock()
        if not (self.iteration or self.f.structure.predictions or same(self.state.x.w, reference(self.f, self.ball))):
            _ = self.scale  # the size of a user's function at the centre tells what is rounding at a good start
        self.state = state = self._step()
        self._learn(state)
        looked = None
        # An iteration over all rows counts as one pass, so that a run does not depend on how its rows are stored.
        done = self.passes if state.evaluation is None else float(self.iteration)
        if not math.isnan(state.allowance) or any([each.tangent is not None for _, each in state.found]):
            self.next_check = next_check(done)  # the solver has taken one
        elif self.certify and done >= self.next_check:
            looked = self.opened.evaluate(state.x)
            if self.convex:
                self.lower_bound.offer(looked.reported.slope, state.x.w)
            self.next_check = next_check(done)
            self.state = replace(state, x=looked.point)  # with the intercept over all rows
        self.seconds += max(0.0, working_clock() - begun)
        self._append_row()
        for t, each in state.found:
            self._take(t - self.first_iteration, each.reported, state.gap)
        if looked is not None:
            self._take(self.iteration, looked.reported)
        self.rows = {t: row for t, row in self.rows.items() if t >= self.iteration}

    def _step(self) -> State:
        """The next state; an iterate whose factors exceed their memory is compressed."""
        try:
            state = self.solver.step(self.opened, self.ball, self.state)
        except (ValueError, ArithmeticError, LookupError) as error:
            if not self.unproved or isinstance(error, NotFiniteError):
                raise
            raise ValueError(  # numbers of a file that look well may lead beyond the range of floats
                f"the checkpoint leads to a step that fails ({error}); restore it from a copy, or begin anew with "
                "`start=`."
            ) from error
        short = self.ball.shortened(state.x.w)
        if short is not state.x.w:
            state = replace(state, x=self.f.point(short, state.x.intercept))
        # A step that the deadline has ended early says nothing about what was possible.
        return replace(state, done=False) if state.done and expired() else state

    def _learn(self, state: State) -> None:
        """Take the bound that the step has proved, and average its tangent with earlier ones."""
        if not self.convex or state.evaluation is None:
            return
        found = state.evaluation.reported
        # The oracle call of a run on a perturbed function bounds that function, not the reported one.
        own = found.tangent is state.evaluation.tangent
        if own and not math.isnan(state.allowance):
            self.lower_bound.take(state.bound, state.allowance, found.point.w)
            return
        known, asked = (state.bound, not math.isnan(state.gap)) if own else (-math.inf, False)
        valued = math.isfinite(self.value) and not math.isnan(self.centre_value)  # else the scale might cost a read
        goal = self.value - self.tol * self.scale if valued else math.inf
        self.lower_bound.add(found.slope, found.point.w, known, state.answer, own=asked, goal=goal)

    def _take(self, iteration: int, found: Evaluation, gap: float = math.nan) -> None:
        """Record what is known about an iterate; ``gap`` is the Frank-Wolfe gap there if it is known."""
        row = self.rows.get(iteration)
        if row is not None:
            self.trace.fill(row, value=found.value)
            if self.convex:
                self.trace.fill(row, gap=found.value - self.trace.at(row, "bound"))
        if iteration == 0:
            self.first_value = found.value
            if same(found.point.w, reference(self.f, self.ball)):
                self.centre_value = found.value
        if found.value < self.value:
            self.best, self.value = found.point, found.value
        if not self.convex and found.tangent is not None:
            self.latest_gap = self.ball.gap(found.slope.gradient, found.point.w) if math.isnan(gap) else gap
            self.smallest_gap = min(self.smallest_gap, (self.latest_gap, iteration))
            if row is not None:
                self.trace.fill(row, gap=self.latest_gap)

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


def reference(f: SmoothFunction, ball: ConstraintSet) -> Any:
    """The point whose value sets the scale of gaps where the minimum is close to zero."""
    return ball.centre(f.shape) if f.structure.term_size is None else zeros(f.shape)


def fingerprint(f: SmoothFunction, ball: ConstraintSet, solver: Solver) -> dict[str, str]:
    """The parts of a problem, each as a string that tells it from others: tangents of one function bound no other."""
    parts = {"objective": f.fingerprint(), "set": _describe(ball), "solver": _describe(solver)}
    return parts | {"shape": str(f.shape)}


def refuse_other(
    name: str, theirs: Mapping[str, str], mine: Mapping[str, str], anew: str = "begin anew with `start=`"
) -> None:
    """Raise ValueError naming the first part in which the problems differ, and what to do instead."""
    for part, own in mine.items():
        if theirs.get(part) != own:
            its, this = (HASH.sub("", str(text)).strip() for text in (theirs.get(part), own))
            differ = "has other numbers" if its == this else f"is {its}, this one is {this}"
            raise ValueError(f"{name} is of another problem: its {part} {differ}; give the same {part}, or {anew}.")


def _describe(thing: Any) -> str:
    if isinstance(thing, ConstraintSet) and (own := thing.fingerprint()):
        return own
    if is_dataclass(thing) and not isinstance(thing, type):
        inside = ", ".join(f"{f.name}={_describe(getattr(thing, f.name))}" for f in fields(thing))
        return f"{type(thing).__name__}({inside})"
    if isinstance(thing, np.ndarray):
        return f"array {thing.shape} {short_hash('', thing)}"
    return getattr(thing, "__qualname__", None) or repr(thing)
