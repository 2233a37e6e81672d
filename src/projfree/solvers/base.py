"""What a solver is: the first state and one step. The loop lives elsewhere."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np

from projfree.algebra import Minorant, Point, inner
from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.sets.base import ConstraintSet, OracleResult

if TYPE_CHECKING:
    from projfree.solvers.pairwise import ActiveSet


@dataclass(frozen=True)
class State:
    """Where a solver stands after iteration ``t``, and what its last step learnt.

    Attributes
    ----------
    t : int
        Iterations done.
    x : Point
        The iterate.
    seed : int
        Seed of the run; with ``t`` it determines every random draw.
    gamma : float
        The last step.
    memory : float
        The one number that a step rule may carry along.
    evaluation : Evaluation or None
        The evaluation with a tangent that the last step made; None where rows were sampled.
    found : tuple of (int, Evaluation)
        The evaluations of iterates that the last step made, each with the iteration that the iterate belongs to.
    bound : float
        A lower bound on the function the solver runs on that the step's own oracle call proved, minus infinity where
        it proved none.
    allowance : float
        The rounding allowance in ``bound`` where that is the bound of the tangent of ``evaluation``, and averages with
        earlier tangents would prove less; NaN elsewhere.
    gap : float
        The Frank-Wolfe gap where the tangent was taken, NaN where the oracle was asked about something else.
    answer : OracleResult or None
        What the last oracle call answered; the next one begins from it. A checkpoint drops it, in the running solver
        as well.
    done : bool
        Whether the solver can do no more: any further step would be of rounding size.
    problem : mapping
        What the state belongs to, filled in by the run; it goes on with nothing else.
    solver : Solver or None
        The solver whose state it is, filled in by the run.
    """

    t: int
    x: Point
    seed: int = 0
    gamma: float = math.nan
    memory: float = math.nan
    evaluation: Evaluation | None = field(default=None, metadata={"transient": True}, repr=False)
    found: tuple[tuple[int, Evaluation], ...] = field(default=(), metadata={"transient": True}, repr=False)
    bound: float = field(default=-math.inf, metadata={"transient": True})
    allowance: float = field(default=math.nan, metadata={"transient": True})
    gap: float = field(default=math.nan, metadata={"transient": True})
    answer: OracleResult | None = field(default=None, metadata={"transient": True}, repr=False)
    done: bool = field(default=False, metadata={"transient": True})
    problem: Mapping[str, str] = field(default_factory=dict, metadata={"transient": True}, repr=False)
    solver: Solver | None = field(default=None, metadata={"transient": True}, repr=False)

    def moved(self, **changes: Any) -> Self:
        """`dataclasses.replace` in a tenth of its time, where a state has its fields and nothing else."""
        if hasattr(self, "__post_init__") or len(self.__dict__) != len(self.__dataclass_fields__):
            return replace(self, **changes)
        state = object.__new__(type(self))
        state.__dict__.update(self.__dict__, **changes)
        if len(state.__dict__) != len(self.__dict__):
            raise TypeError(f"{type(self).__name__} has no {', '.join(changes.keys() - vars(self).keys())}")
        return state

    @property
    def active_set(self) -> ActiveSet | None:
        """The few vertices that the iterate is a mixture of, where the solver keeps some."""
        return None


class Solver(ABC):
    """One algorithm, as a frozen dataclass of its settings."""

    @abstractmethod
    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> State:
        """The state before the first iteration."""

    @abstractmethod
    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        """One iteration."""

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        """A first state for another set that contains the iterate of ``state``, with what is true there as well."""
        return self.init(f, ball, state.x, state.seed)

    def __repr__(self) -> str:
        """The call that makes this solver, without the settings that are as by default."""
        settings = [f.name for f in fields(cast("Any", self)) if f.init and _is_told(f, getattr(self, f.name))]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in settings)})"

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        """Raise a sentence where the solver cannot run on this problem."""
        ball.check_shape(f.shape)


def _is_told(setting: Field[Any], value: Any) -> bool:
    """Whether a setting differs from its default; one without a default always does."""
    default = setting.default if setting.default_factory is MISSING else setting.default_factory()
    if default is MISSING:
        return True
    differs = value != default
    return bool(np.any(differs)) or np.shape(value) != np.shape(default)  # arrays compare entry by entry


def next_answer(ball: ConstraintSet, g: Array, state: State) -> OracleResult:
    """The oracle's answer about ``g``, begun from what the state keeps of the last one.

    The support is NaN where it would cost a call of its own: the run asks for it when it is due.
    """
    return OracleResult(*ball.oracle(g, None if state.answer is None else state.answer.warm))


def bound_of(m: Minorant, ball: ConstraintSet, support: float) -> float:
    """The lower bound that ``m`` proves, minus infinity where the support is not known."""
    return -math.inf if math.isnan(support) else m.lower(ball, support)


class Known(NamedTuple):
    """What one support tells about a point: the Frank-Wolfe gap, the bound there, and the allowance in the bound."""

    gap: float
    bound: float
    allowance: float

    @classmethod
    def of(cls, ball: ConstraintSet, here: Evaluation) -> Known:
        """About the point of an evaluation."""
        m = here.slope
        support = ball.support(-m.gradient)
        return cls(inner(m.gradient, here.point.w) + support, *m.minimum(ball, support))

    @property
    def exact(self) -> bool:
        """Whether the gap is within the rounding that the bound is lowered by anyway."""
        return self.gap <= 0.1 * self.allowance


def exact(found: Evaluation) -> Evaluation | None:
    """``found`` if its tangent is one, None if that is an estimate from sampled rows."""
    return found if found.tangent is not None and math.isfinite(found.tangent.constant) else None


def at_iterate(t: int, found: Evaluation) -> tuple[tuple[int, Evaluation], ...]:
    """What `State.found` says of an evaluation of the iterate of iteration ``t``."""
    return () if math.isnan(found.value) else ((t, found),)


def valued(f: SmoothFunction, t: int, x: Point) -> tuple[Point, tuple[tuple[int, Evaluation], ...]]:
    """The iterate of iteration ``t`` and what `State.found` says of it: its value where that costs no read."""
    found = f.evaluate(x, tangent=False, read=False)
    return found.point, at_iterate(t, found)
