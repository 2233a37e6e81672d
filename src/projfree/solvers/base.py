"""What a solver is: the first state and one step. The loop lives elsewhere."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from projfree.algebra import Minorant, Point, inner
from projfree.checks import Array
from projfree.objectives.base import Evaluation, SmoothFunction
from projfree.objectives.rounding import is_rounding
from projfree.sets.base import ConstraintSet, OracleResult
from projfree.sets.constrained import with_best_multipliers

if TYPE_CHECKING:
    from projfree.solvers.pairwise import ActiveSet

#: A full step must bring this part of the decrease that the gradient predicts, as Armijo's rule asks.
ARMIJO = 0.1
#: A step that brings less than this part of the gap is compared with one towards the vertex: where the curvature jumps,
#: as that of Huber's loss does, Newton's steps may fail for ever.
POOR = 1e-3


class GapBound(NamedTuple):
    """The Frank-Wolfe gap at a point, the lower bound that the tangent there proves, and the allowance in the bound.

    The tangent of a function that is not convex proves nothing: the bound is then minus infinity. Over a `Constrained`
    set the bound is that of the multipliers.
    """

    gap: float
    bound: float
    allowance: float
    multipliers: Array | None = None

    @classmethod
    def of(cls, ball: ConstraintSet, here: Evaluation, convex: bool = True, *multipliers: Array | None) -> GapBound:
        """From one support of the set, with the best of some multipliers where its rows need them."""
        m, ball = here.slope, with_best_multipliers(ball, here.slope.gradient, here.point.w, *multipliers)
        support = ball.support(-m.gradient)
        bound, allowance = m.minimum(ball, support) if convex else (-math.inf, 0.0)
        # A derivative in the intercept lowers the bound as well, which is no rounding.
        allowance = 0.0 if here.rest is not None else allowance
        return cls(inner(m.gradient, here.point.w) + support, bound, allowance, getattr(ball, "multipliers", None))

    @property
    def within_rounding(self) -> bool:
        """Whether the bound is lowered by more than twice the gap anyway, so that no step can gain anything."""
        return self.gap < 0.5 * self.allowance


@dataclass(frozen=True)
class State:
    """Where a solver stands after iteration ``t``, and what its last step found.

    The run records the values of the iterates before and after a step where they are known, averages the tangents of
    ``evaluation`` for bounds of its own, and turns ``m`` and ``oracle_result`` into one more bound.

    Attributes
    ----------
    t : int
        Number of iterations.
    x : Point
        The iterate.
    seed : int
        Seed of the run; with ``t`` it determines every random draw.
    gamma : float
        The last step size.
    memory : float
        The number that a step rule keeps from one iteration to the next.
    m : Minorant or None
        The minorant, a tangent or an average of tangents, whose minimiser over the set the oracle returned last.
    evaluation : Evaluation or None
        The evaluation of the last step, with its tangent, which is an estimate where rows were sampled. A checkpoint
        drops it, in the running solver as well.
    oracle_result : OracleResult or None
        The last result of the oracle, from which the next call starts. A checkpoint drops it as well.
    bound : GapBound or None
        The bound that the tangent of ``evaluation`` proves. A solver that gives it has no use for averages of tangents.
    done : bool
        Whether no step can improve the iterate by more than rounding.
    problem : mapping
        Fingerprint of the problem that the state belongs to, filled in by the run.
    solver : Solver or None
        The solver whose state it is, filled in by the run.
    active_set : ActiveSet or None
        The few vertices that the iterate is a convex combination of, where the solver keeps them.
    """

    t: int
    x: Point
    seed: int = 0
    gamma: float = math.nan
    memory: float = math.nan
    m: Minorant | None = field(default=None, repr=False)
    evaluation: Evaluation | None = field(default=None, metadata={"transient": True}, repr=False)
    oracle_result: OracleResult | None = field(default=None, metadata={"transient": True}, repr=False)
    bound: GapBound | None = field(default=None, metadata={"transient": True})
    done: bool = field(default=False, metadata={"transient": True})
    problem: Mapping[str, str] = field(default_factory=dict, metadata={"transient": True}, repr=False)
    solver: Solver | None = field(default=None, metadata={"transient": True}, repr=False)
    active_set: ActiveSet | None = field(default=None, repr=False)

    @classmethod
    def stored_fields(cls) -> list[str]:
        """The fields that outlive a run; others may hold data."""
        return [each.name for each in fields(cls) if not each.metadata.get("transient")]

    @property
    def gap(self) -> float:
        """The Frank-Wolfe gap at ``evaluation``, NaN where the step did not compute it."""
        if self.bound is not None:
            return self.bound.gap
        here, result = self.evaluation, self.oracle_result
        if here is None or result is None or self.m is not here.tangent:
            return math.nan
        return inner(here.slope.gradient, here.point.w) + result.support


class Solver(ABC):
    """One algorithm, as a frozen dataclass of its settings."""

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        """Raise an error that says why where the solver cannot run on this problem."""
        ball.check_shape(f.shape)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> State:
        """The state before the first iteration."""
        return State(t=0, x=start, seed=seed)

    @abstractmethod
    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        """One iteration."""

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        """A first state for another set that contains the iterate of ``state``, with what remains true there."""
        return self.init(f, ball, state.x, state.seed)

    def __repr__(self) -> str:
        """The call that makes this solver, without the settings that have their default."""
        settings = []
        for each in fields(cast("Any", self)):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            if each.init and (own := repr(getattr(self, each.name))) != repr(default):
                settings.append(f"{each.name}={own}")
        return f"{type(self).__name__}({', '.join(settings)})"


def call_oracle(ball: ConstraintSet, g: Array, last: OracleResult | None) -> OracleResult:
    """The oracle's result for ``g``, started from the last one.

    The support is NaN where it would cost a call of its own: the run computes it when it is due.
    """
    return OracleResult(*ball.oracle(g, None if last is None else last.warm))


def evaluation_at_iterate(f: SmoothFunction, state: State) -> Evaluation:
    """The evaluation of the iterate: that of the last step where it ended there, else a new one."""
    here = state.evaluation
    return here if here is not None and here.point.w is state.x.w else f.evaluate(state.x, keep=True)


def step_towards(f: SmoothFunction, here: Evaluation, there: Evaluation, expected: float) -> tuple[Evaluation, float]:
    """``there`` where f falls enough, else the evaluation of the minimiser on the way; and the step size."""
    if is_rounding(there.value - here.value + ARMIJO * expected, here.value):
        return there, 1.0
    hull = f.hull((here.point, there.point), here.slope.gradient)
    place = hull.minimise(np.zeros(1))
    return f.evaluate(hull.mix(place), keep=True), float(place[0])


def newton_step(
    f: SmoothFunction, ball: ConstraintSet, here: Evaluation, v: Point, gap: float, *multipliers: Array | None
) -> dict[str, Any]:
    """What changes in a state by a step towards the minimiser ``v`` of a model, given the Frank-Wolfe gap ``gap``.

    Where that brings little, f is minimised on the segment to the vertex of Frank and Wolfe too. The solver is done
    where neither lowers the value or the gap, or where the gap is rounding.
    """
    x, g = here.point, here.slope.gradient
    new, gamma = step_towards(f, here, f.evaluate(v, keep=True), max(0.0, inner(g, x.w - v.w)))
    bound, done = GapBound.of(ball, new, f.convex, *multipliers), is_rounding(gap, here.value)
    if here.value - new.value < POOR * gap and not bound.gap < (1.0 - POOR) * gap:
        vertex = f.evaluate(f.point(ball.lmo(g), x.intercept), keep=True)
        other, share = step_towards(f, here, vertex, gap)
        if other.value < min(here.value, new.value):
            new, gamma, bound = other, share, GapBound.of(ball, other, f.convex, *multipliers)
        elif not (new.value < here.value or bound.gap < gap):
            new, bound, done = here, GapBound.of(ball, here, f.convex, *multipliers), True
    return {"x": new.point, "gamma": gamma, "evaluation": new, "bound": bound, "done": done}
