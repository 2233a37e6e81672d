"""The plan: which solver fits a problem, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import at_least, instance
from projfree.objectives import Objective, QuadraticForm
from projfree.objectives.base import SmoothFunction
from projfree.objectives.gram_form import is_quadratic
from projfree.sets import WithFree
from projfree.sets.base import ConstraintSet, NormBall
from projfree.solvers.base import Solver
from projfree.solvers.direct import Direct
from projfree.solvers.frank_wolfe import FrankWolfe
from projfree.solvers.lanczos import TrustRegionLanczos
from projfree.solvers.model import MOST_PARAMETERS, lp_of
from projfree.solvers.newton import ConstrainedNewton
from projfree.solvers.primal_averaging import CorrectivePrimalAveraging
from projfree.solvers.projected_gradient import AcceleratedProjectedGradient
from projfree.solvers.relay import Relay
from projfree.steps import Backtracking, BacktrackingGradient, ExactLineSearch

# Measured by `python benchmarks/auto.py` on its grid of problems; all costs are in reads of X.
#: A Hessian or Gram matrix of D parameters costs D times this (24 ms for 48,842 x 108, of which one read is 1.5 ms).
HESSIAN = 0.15
#: Flops of one model solve, over D^3, and flops in the time in which memory gives one number.
MODEL_FLOPS, FLOPS_A_READ = 5.0, 8.0
#: A tangent costs a read and a half for one output, and this part of a read for each of several.
TANGENT, OUTPUT = 1.5, 0.4
#: A search along images, for an intercept or a step, costs a row so many numbers' time for each output (3.4 ms for
#: 48,842 rows); a coupled loss costs more.
SEARCH, COUPLED_SEARCH = 250.0, 400.0
#: Hessians and tangents that Newton needs for each digit.
NEWTON_HESSIANS, NEWTON_TANGENTS = 0.5, 1.5
#: Iterations of first-order methods over the square of the digits asked for, on problems that are not easy.
CORRECTIVE, ACCELERATED, LANCZOS, FRANK_WOLFE = 4.0, 5.0, 12.0, 400.0
#: From this many parameters on a first-order method gets a chance before any Hessian is formed, for so many of the
#: reads that one would cost: easy problems (small radii) are then done, and others start better. Unless that is few.
RELAY_FROM, RELAY_SHARE, FEW = 200, 1.0, 8
#: The smallest exponent of a ball that is round enough for averages of vertices to beat projections.
ROUND = 1.3
#: Iterations of averages before accelerated gradients take over, and those after which a look at the norm decides.
AVERAGES, LOOK = 100, 8
#: The share for Krylov spaces before a Gram matrix is formed; model solves that an exact solution takes the time of.
KRYLOV_SHARE, EXACT_SOLVE = 0.08, 3.0


@dataclass(frozen=True)
class Choice:
    """A solver for a problem and what it is expected to cost.

    Attributes
    ----------
    solver : Solver
        With its settings.
    reads : float
        Reads of the data, about.
    work : float
        All work, in the time of so many reads.
    memory : int
        Bytes beside the data.
    why : str
        One clause.
    """

    solver: Solver
    reads: float
    work: float
    memory: int
    why: str

    def line(self) -> str:
        """The choice in one line."""
        return (
            f"{self.solver!r}: {self.why}; about {self.reads:,.0f} reads of the data, the work of {self.work:,.0f}, "
            f"and {self.memory / 1e6:,.1f} MB beside it"
        )


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

    @property
    def solver(self) -> Solver:
        """The solver of choice."""
        return self.choices[0].solver

    def explain(self) -> str:
        """The problem, the choice and the runner-up, in words."""
        names = ("chosen:", "next:  ")
        lines = [f"  {name} {choice.line()}" for name, choice in zip(names, self.choices[:2], strict=False)]
        return "\n".join([self.problem, *lines])


def plan(f: SmoothFunction, ball: ConstraintSet, tol: float = 1e-6) -> Plan:
    """What `minimize` would do with a problem, made from loss, set, shape, storage and tolerance alone.

    Parameters
    ----------
    f : SmoothFunction
        The objective.
    ball : ConstraintSet
        The set.
    tol : float
        The relative gap asked for.

    Returns
    -------
    Plan
        All solvers that apply, the cheapest first; ``plan(f, ball).explain()`` puts it in words.
    """
    instance("objective", f, SmoothFunction, "Objective(Squared(), as_data(X, y))")
    instance("ball", ball, ConstraintSet, "LpBall(2, radius=1.0)")
    at_least("tol", tol, 0.0)
    problem = Problem(f, ball, max(-math.log10(max(tol, 1e-15)), 1.0))
    found = [choice for rule in RULES if (choice := rule(problem)) is not None]
    return Plan(problem.describe(tol), tuple(sorted(found, key=lambda choice: choice.work)))


@dataclass(frozen=True)
class Problem:
    """A problem and the digits asked for, with the numbers that rules look at."""

    f: SmoothFunction
    ball: ConstraintSet
    digits: float

    def describe(self, tol: float) -> str:
        """One line."""
        f, rows = self.f, "" if self.f.rows is None else f"{self.f.rows:,} rows, "
        what = (
            f"{f.loss!r}{' with intercept' if f.fit_intercept else ''}"
            if isinstance(f, Objective)
            else type(f).__name__
        )
        return f"{what} {rows}{f.shape} over {self.ball!r}, tolerance {tol:g}"

    @property
    def parameters(self) -> int:
        """Entries of a parameter."""
        return int(np.prod(self.f.shape))

    @property
    def has_model(self) -> bool:
        """Whether a quadratic model over the set can be formed and solved."""
        if (
            isinstance(self.ball, WithFree) and self.f.convex
        ):  # so wide that models would need far more digits than the answer
            return False
        return self.f.has_hessian and self.ball.projects_quickly and self.parameters <= MOST_PARAMETERS

    @property
    def model_work(self) -> float:
        """Reads that one solve of a model takes the time of."""
        return MODEL_FLOPS * float(self.parameters) ** 3 / (FLOPS_A_READ * self.size)

    @property
    def outputs(self) -> int:
        """Predictions for each row; tasks and entries of a matrix have one each."""
        return int(np.prod(self.f.outputs)) if isinstance(self.f, Objective) else int(np.prod(self.f.shape[1:]))

    @property
    def tangent(self) -> float:
        """Reads that a tangent takes the time of, its intercept included."""
        f, k = self.f, self.outputs
        if not isinstance(f, Objective):
            return 1.0
        one = TANGENT if k == 1 else 1.0 + OUTPUT * k
        return one if f.loss.quadratic or not f.fit_intercept else one + 1.0 + self.search

    @property
    def search(self) -> float:
        """Reads that a search along images takes the time of."""
        f = self.f
        if not isinstance(f, Objective):
            return 0.0
        return (COUPLED_SEARCH if f.loss.coupled else SEARCH) * self.outputs * (f.rows or 1) / self.size

    @property
    def size(self) -> float:
        """Numbers that a read of the data meets."""
        if isinstance(self.f, Objective) and self.f.data.stored is not None:
            return max(1.0, float(self.f.data.stored))
        return float((self.f.rows or self.f.shape[0]) * self.f.shape[0])

    @property
    def round(self) -> bool:
        """Whether the set is round enough for averaged vertices: its boundary has no flat pieces."""
        return isinstance(self.ball, NormBall) and _round(self.ball)

    @property
    def image_bytes(self) -> int:
        """Bytes of one image."""
        return 8 * (self.f.rows or 0) * self.outputs


def direct(problem: Problem) -> Choice | None:
    """Solve a quadratic, after one pass where it is given by rows."""
    f, d = problem.f, problem.f.shape[0]
    if not (is_quadratic(f) and f.convex and problem.ball.projects_quickly) or getattr(f, "form", "auto") == "data":
        return None
    asked = getattr(f, "form", "auto") == "gram"
    if (lp_of(problem.ball, f.shape) is None and problem.parameters > MOST_PARAMETERS) or (
        d > MOST_PARAMETERS and not asked
    ):
        return None
    gram = 0.0 if isinstance(f, QuadraticForm) else HESSIAN * d + 1.0
    why = "one pass for the Gram matrix, then an exact solve" if gram else "the minimum of a quadratic, solved for"
    work = 4.0 + gram + EXACT_SOLVE * problem.model_work
    after = round(KRYLOV_SHARE * work / problem.tangent)
    if gram and not asked and d >= RELAY_FROM and after >= FEW and lanczos(problem) is not None:
        why = (
            f"a Gram matrix of {d:,} features and its spectrum take the time of {work:,.0f} reads, perhaps for nothing"
        )
        return Choice(Relay(TrustRegionLanczos(), Direct(), after), 4.0 + after, work, 32 * d * d, why)
    return Choice(Direct(), 3.0 + (gram > 0.0), 0.0 if asked else work, 32 * d * d, why)


def newton(problem: Problem) -> Choice | None:
    """A handful of Hessians, after some cheap iterations where a Hessian is not cheap."""
    f, D = problem.f, problem.parameters
    if is_quadratic(f) or not problem.has_model:
        return None
    pairs = 0.5 * (D / f.shape[0] + 1.0) if isinstance(f, Objective) and f.loss.coupled else 1.0
    one = HESSIAN * D * pairs + problem.model_work
    hessians, tangents = 1.0 + NEWTON_HESSIANS * problem.digits, 2.0 + NEWTON_TANGENTS * problem.digits
    reads, memory = hessians + 2.0 * tangents, 32 * D * D + 6 * problem.image_bytes
    work, why = tangents * problem.tangent + hessians * one, f"few parameters ({D:,}), so that a Hessian is cheap"
    if D < RELAY_FROM or not f.convex:
        return Choice(ConstrainedNewton(), reads, work, memory, why)
    first = CorrectivePrimalAveraging() if problem.round else AcceleratedProjectedGradient(BacktrackingGradient())
    after = round(RELAY_SHARE * one / (2.0 * problem.tangent + problem.search))
    if after < FEW:
        return Choice(ConstrainedNewton(), reads, work, memory, why)
    why = f"a Hessian of {D:,} parameters takes the time of {one:,.0f} reads, which may be enough without one"
    return Choice(Relay(first, ConstrainedNewton(), after), reads + 2.0 * after, work, memory, why)


def lanczos(problem: Problem) -> Choice | None:
    """Krylov spaces for squares over a Euclidean ball."""
    f, lp = problem.f, lp_of(problem.ball, problem.f.shape)
    if not (isinstance(f, Objective) and is_quadratic(f) and lp is not None and lp.p == 2.0):
        return None
    reads = 1.3 * LANCZOS * problem.digits**2
    why = "squares over a Euclidean ball, where Krylov spaces need the fewest reads"
    return Choice(TrustRegionLanczos(), reads, reads * problem.tangent, 16 * problem.parameters * 50, why)


def corrective(problem: Problem) -> Choice | None:
    """Corrective Primal Averaging; with accelerated gradients behind it for minima inside, where there is a choice."""
    f = problem.f
    if not (f.convex and f.has_images):
        return None
    # Over sets with flat pieces vertices repeat, and averages of them converge slowly.
    steps = CORRECTIVE * (1.0 if problem.round else 10.0) * problem.digits**2
    work = steps * (2.0 * problem.tangent + problem.search)
    solver: Solver = CorrectivePrimalAveraging()
    why = "a round set, no projection and no Hessian needed" if problem.round else "no projection and no Hessian needed"
    if problem.round and problem.ball.projects_quickly:
        solver = Relay(solver, AcceleratedProjectedGradient(BacktrackingGradient()), AVERAGES, LOOK)
        why = "averages of vertices suit a round set, accelerated gradients a minimum inside it; no Hessian needed"
    return Choice(solver, 2.0 * steps, work, 5 * problem.image_bytes, why)


def accelerated(problem: Problem) -> Choice | None:
    """Accelerated projected gradients."""
    f = problem.f
    if not (f.convex and problem.ball.projects_quickly and f.has_images):
        return None
    reads = 2.2 * ACCELERATED * problem.digits**2
    why = "a quick projection and no Hessian needed"
    solver = AcceleratedProjectedGradient(BacktrackingGradient())
    return Choice(solver, reads, reads * problem.tangent, 4 * problem.image_bytes, why)


def frank_wolfe(problem: Problem) -> Choice | None:
    """Frank-Wolfe, where nothing else applies."""
    f = problem.f
    rule = ExactLineSearch() if f.has_images else Backtracking()
    steps = FRANK_WOLFE * problem.digits**2
    work = steps * (2.0 * problem.tangent + problem.search)
    why = "it descends on every smooth function"
    return Choice(FrankWolfe(rule), 2.0 * steps, work, 3 * problem.image_bytes, why)


RULES = (direct, newton, lanczos, corrective, accelerated, frank_wolfe)


def _round(ball: NormBall) -> bool:
    inner = getattr(ball, "ball", ball)
    exponents = [getattr(inner, name) for name in ("p", "q") if hasattr(inner, name)]
    return bool(exponents) and all(ROUND <= p < math.inf for p in exponents)
