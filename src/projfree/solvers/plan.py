"""The plan: which solver fits a problem, and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from projfree.checks import at_least, count, instance
from projfree.display import html_table
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver
from projfree.solvers.budget import VARIABLE, budget
from projfree.solvers.costs import Costs
from projfree.solvers.rules import RULES, Choice


@dataclass(frozen=True)
class Plan:
    """Which solver, why, and which would be next; from `plan`.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, QuadraticForm, plan
    >>> made = plan(QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(1.5, radius=1.0))
    >>> made.solver
    Direct()
    >>> print(made.explain())
    QuadraticForm (2,) over LpBall(p=1.5, radius=1.0), tolerance 1e-06
      chosen: Direct(): the minimum of a quadratic, solved for; about ...
      next:   ...
    """

    costs: Costs
    tol: float
    #: The bytes that a solver may take.
    budget: int
    #: The solver of choice.
    solver: Solver

    @property
    def problem(self) -> str:
        """The problem in one line."""
        return self.costs.describe(self.tol)

    @cached_property
    def _ranked(self) -> list[Choice]:
        """All solvers that apply, the cheapest first; a run needs no more than the first and does not ask for it."""
        return sorted([made for rule in RULES if (made := rule(self.costs)) is not None], key=attrgetter("work"))

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The solvers that fit in memory, the cheapest first."""
        return tuple([choice for choice in self._ranked if choice.memory <= self.budget])

    @property
    def too_large(self) -> tuple[Choice, ...]:
        """Those that would need more memory than there is, the cheapest first."""
        return tuple([choice for choice in self._ranked if choice.memory > self.budget])

    def __repr__(self) -> str:
        return f"Plan({self.solver!r}: {self.problem})"

    def _repr_html_(self) -> str:
        _, *lines = self.explain().splitlines()
        return html_table(f"Plan: {self.problem}", dict(line.strip().split(":", 1) for line in lines))

    def explain(self) -> str:
        """The problem, the choice and the runner-up, in words."""
        names = ("chosen:", "next:  ")
        lines = [f"  {name} {choice.line()}" for name, choice in zip(names, self.choices[:2], strict=False)]
        for first in self.too_large[:1]:
            lines.append(
                f"  not:    {first.solver!r}: it takes {first.memory / 1e6:,.1f} MB besides the data, and may take "
                f"{self.budget / 1e6:,.1f} MB ({VARIABLE}, by default half of the machine's memory)"
            )
        return "\n".join([self.problem, *lines])


def plan(f: SmoothFunction, ball: ConstraintSet, tol: float = 1e-6, *, radii: int = 1) -> Plan:
    """What `minimize` would do with a problem, made from loss, set, shape and storage alone.

    Parameters
    ----------
    f : SmoothFunction
        The objective.
    ball : ConstraintSet
        The set.
    tol : float
        The relative gap asked for. It is written down, and decides nothing: a looser one is met earlier on the same
        way, so that it never takes longer.
    radii : int
        Over how many balls the function will be minimised, as `path` does: a Gram matrix serves them all.

    Returns
    -------
    Plan
        All solvers that apply, the cheapest first; ``plan(f, ball).explain()`` puts it in words.

    Notes
    -----
    What needs more than half of the machine's memory besides the data is never chosen; the environment variable
    ``PROJFREE_MEMORY``, such as ``4GB``, stands in for that half.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Logistic, LpBall, Objective, as_data, plan
    >>> X, y = np.random.default_rng(0).standard_normal((500, 10)), np.repeat([-1.0, 1.0], 250)
    >>> plan(Objective(Logistic(), as_data(X, y)), LpBall(1.5, radius=1.0)).solver
    ConstrainedNewton()
    """
    instance("objective", f, SmoothFunction, "Objective(Squared(), as_data(X, y))")
    instance("ball", ball, ConstraintSet, "LpBall(2, radius=1.0)")
    at_least("tol", tol, 0.0)
    ball.check_shape(f.shape)
    costs, most = Costs(f, ball, count("radii", radii)), budget()
    return Plan(costs, tol, most, _cheapest(costs, most).solver)


def _cheapest(costs: Costs, most: int) -> Choice:
    """The cheapest choice that fits in memory; rules whose solvers take longer on any problem are not asked."""
    best, smallest = None, None
    for rule, tangents in RULES.items():
        if best is not None and best.work < tangents * costs.tangent:
            continue
        made = rule(costs)
        if made is not None and (smallest is None or made.memory < smallest.memory):
            smallest = made
        if made is not None and made.memory <= most and (best is None or made.work < best.work):
            best = made
    if best is None:
        assert smallest is not None  # Frank-Wolfe applies to everything
        raise _nothing_fits(smallest, most)
    return best


def _nothing_fits(smallest: Choice, most: int) -> MemoryError:
    return MemoryError(
        f"no solver fits in {most:,} bytes, half of the machine's memory or what {VARIABLE} says: the smallest, "
        f"{smallest.solver!r}, takes about {smallest.memory:,} besides the data; raise {VARIABLE}, or give `solver=`."
    )
