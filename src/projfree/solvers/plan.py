"""The plan: which solver fits a problem, and why."""

from __future__ import annotations

from dataclasses import dataclass
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

    problem: str
    choices: tuple[Choice, ...]
    #: What would need more memory than there is, cheapest first, and the bytes that there are.
    too_large: tuple[Choice, ...] = ()
    budget: int | None = None

    def __repr__(self) -> str:
        return f"Plan({self.solver!r}: {self.problem})"

    def _repr_html_(self) -> str:
        _, *lines = self.explain().splitlines()
        return html_table(f"Plan: {self.problem}", dict(line.strip().split(":", 1) for line in lines))

    @property
    def solver(self) -> Solver:
        """The solver of choice."""
        return self.choices[0].solver

    def explain(self) -> str:
        """The problem, the choice and the runner-up, in words."""
        names = ("chosen:", "next:  ")
        lines = [f"  {name} {choice.line()}" for name, choice in zip(names, self.choices[:2], strict=False)]
        if self.too_large and self.budget is not None:
            first = self.too_large[0]
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
    """
    instance("objective", f, SmoothFunction, "Objective(Squared(), as_data(X, y))")
    instance("ball", ball, ConstraintSet, "LpBall(2, radius=1.0)")
    at_least("tol", tol, 0.0)
    costs, most = Costs(f, ball, count("radii", radii)), budget()
    found = sorted([choice for rule in RULES if (choice := rule(costs)) is not None], key=attrgetter("work"))
    fitting = tuple([choice for choice in found if choice.memory <= most])
    if not fitting:
        raise _nothing_fits(min(found, key=attrgetter("memory")), most)
    return Plan(costs.describe(tol), fitting, tuple([choice for choice in found if choice.memory > most]), most)


def _nothing_fits(smallest: Choice, most: int) -> MemoryError:
    return MemoryError(
        f"no solver fits in {most:,} bytes, half of the machine's memory or what {VARIABLE} says: the smallest, "
        f"{smallest.solver!r}, takes about {smallest.memory:,} besides the data; raise {VARIABLE}, or give `solver=`."
    )
