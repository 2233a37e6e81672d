"""Base classes of solvers: the state and one iteration. The loop is in `projfree.run`."""

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

#: Fraction of the decrease predicted by the gradient that a full step must attain (Armijo's rule).
ARMIJO = 0.1
#: A Newton step that decreases f by less than this fraction of the gap is compared with a Frank-Wolfe step: with a
#: discontinuous curvature, as of Huber's loss, Newton steps may fail repeatedly.
POOR = 1e-3


class GapBound(NamedTuple):
    """The Frank-Wolfe gap at a point, the lower bound from the tangent, and the allowance for rounding errors in it.
    For a non-convex function the bound is minus infinity. Over a `Constrained` set the bound uses the multipliers.
    """

    gap: float
    bound: float
    allowance: float
    multipliers: Array | None = None

    @classmethod
    def of(cls, ball: ConstraintSet, here: Evaluation, convex: bool = True, *multipliers: Array | None) -> GapBound:
        """Compute the gap and the bound at ``here`` from one support; use the best of the multipliers for the rows."""
        m, ball = here.slope, with_best_multipliers(ball, here.slope.gradient, here.point.w, *multipliers)
        support = ball.support(-m.gradient)
        bound, allowance = m.minimum(ball, support) if convex else (-math.inf, 0.0)
        # With a nonzero derivative in the intercept, the allowance contains more than rounding errors.
        allowance = 0.0 if here.rest is not None else allowance
        return cls(inner(m.gradient, here.point.w) + support, bound, allowance, getattr(ball, "multipliers", None))

    @property
    def within_rounding(self) -> bool:
        """Whether the allowance for rounding errors exceeds twice the gap, so that a step cannot improve the bound."""
        return self.gap < 0.5 * self.allowance


@dataclass(frozen=True)
class State:
    """State of a solver after iteration ``t``, with the results of the last step.

    The run records the known values of the iterates, and computes lower bounds from averages of the tangents of
    ``evaluation`` and from ``m`` and ``oracle_result``.

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
        The number that a step rule stores between iterations.
    m : Minorant or None
        The minorant (a tangent or an average of tangents) that the last oracle call minimised.
    evaluation : Evaluation or None
        The evaluation of the last step with its tangent, an estimate if rows were sampled. It is dropped when a
        checkpoint is written, also in the running solver.
    oracle_result : OracleResult or None
        The last result of the oracle, the warm start of the next call. A checkpoint drops it as well.
    bound : GapBound or None
        The bound from the tangent of ``evaluation``. The run averages no tangents for solvers that set it.
    done : bool
        Whether no step can improve the iterate by more than rounding.
    problem : mapping
        Fingerprint of the problem, set by the run.
    solver : Solver or None
        The solver, set by the run.
    active_set : ActiveSet or None
        The vertices whose convex combination is the iterate, if the solver stores them.
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
        """Return the names of the fields that a checkpoint stores; other fields may reference data."""
        return [each.name for each in fields(cls) if not each.metadata.get("transient")]

    @property
    def gap(self) -> float:
        """The Frank-Wolfe gap at ``evaluation``, NaN if the step did not compute it."""
        if self.bound is not None:
            return self.bound.gap
        here, result = self.evaluation, self.oracle_result
        if here is None or result is None or self.m is not here.tangent:
            return math.nan
        return inner(here.slope.gradient, here.point.w) + result.support


class Solver(ABC):
    """Base class of solvers, which are frozen dataclasses of their parameters."""

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        """Raise an error if the solver does not support the problem."""
        ball.check_shape(f.shape)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> State:
        """Return the state before the first iteration."""
        return State(t=0, x=start, seed=seed)

    @abstractmethod
    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        """Return the state after one more iteration."""

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        """Return an initial state for another set that contains the iterate, reusing quantities that stay valid."""
        return self.init(f, ball, state.x, state.seed)

    def __repr__(self) -> str:
        """Return the call that creates the solver, without parameters at their default."""
        settings = []
        for each in fields(cast("Any", self)):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            if each.init and (own := repr(getattr(self, each.name))) != repr(default):
                settings.append(f"{each.name}={own}")
        return f"{type(self).__name__}({', '.join(settings)})"


def call_oracle(ball: ConstraintSet, g: Array, last: OracleResult | None) -> OracleResult:
    """Call the oracle for ``g``, with the warm start of the last result.

    The support is NaN if it needs a separate call; the run computes it when it next checks the gap.
    """
    return OracleResult(*ball.oracle(g, None if last is None else last.warm))


def evaluation_at_iterate(f: SmoothFunction, state: State) -> Evaluation:
    """Return the evaluation of the iterate, reusing that of the last step if it is at the iterate."""
    here = state.evaluation
    return here if here is not None and here.point.w is state.x.w else f.evaluate(state.x, keep=True)


def step_towards(f: SmoothFunction, here: Evaluation, there: Evaluation, expected: float) -> tuple[Evaluation, float]:
    """Return ``there`` if f decreases enough, else the evaluation of the minimiser on the segment, and the step."""
    if is_rounding(there.value - here.value + ARMIJO * expected, here.value):
        return there, 1.0
    hull = f.hull((here.point, there.point), here.slope.gradient)
    place = hull.minimise(np.zeros(1))
    return f.evaluate(hull.mix(place), keep=True), float(place[0])


def newton_step(
    f: SmoothFunction, ball: ConstraintSet, here: Evaluation, v: Point, gap: float, *multipliers: Array | None
) -> dict[str, Any]:
    """Return the changed fields of the state after a step towards the minimiser ``v`` of a model.

    If the decrease is small compared with the Frank-Wolfe gap ``gap``, a Frank-Wolfe step with line search is tried
    too. The solver is done if neither step decreases the value or the gap, or if the gap is of rounding size.
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
