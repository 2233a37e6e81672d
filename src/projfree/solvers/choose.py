"""`plan`: the solver that `minimize` uses for a problem, and the reason."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from projfree import solvers
from projfree.algebra import FactoredShape
from projfree.checks import count, instance
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet
from projfree.sets.constrained import Constrained
from projfree.solvers.base import Solver
from projfree.steps import Backtracking, BacktrackingGradient, ExactLineSearch

#: Above this number of features, the Hessian products of truncated Newton (about thirty) cost less than the Hessian.
FEW = 200
#: Maximum number of parameters for which the Hessian is formed; its factorization then takes about a second.
MOST_PARAMETERS = 2_000
#: For smaller p, the curvature of the l_p sphere makes truncated Newton steps slow.
LEAST_P = 1.2
#: Number of arrays of the size of the Hessian in memory when a quadratic model is minimised.
MATRICES = 7
#: Files with the memory limit of a container, for both versions of control groups.
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Plan:
    """The solver that `minimize` chooses for a problem, and the reason; returned by `plan`.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, QuadraticForm, plan
    >>> plan(QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(1.5, radius=1.0)).solver
    Direct()
    """

    problem: str
    solver: Solver
    why: str

    def explain(self) -> str:
        """Return a description of the problem, the solver and the reason for it."""
        return f"{self.problem}\n  {self.solver!r}: {self.why}"


def plan(f: SmoothFunction, ball: ConstraintSet, *, radii: int = 1) -> Plan:
    """Choose a solver from the structure of the set and of the objective.

    Parameters
    ----------
    f : SmoothFunction
        The objective.
    ball : ConstraintSet
        The set.
    radii : int
        The number of radii of a path, whose solutions share one Gram matrix.

    Notes
    -----
    The choice depends only on the loss, the set and the shape, not on the tolerance or the values of the data. Solvers
    that would form matrices larger than half of the memory of the machine, or than the environment variable
    ``PROJFREE_MEMORY``, such as ``4GB``, are excluded.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, QuadraticForm, plan
    >>> print(plan(QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(1.5, radius=1.0)).explain())
    QuadraticForm (2,) over LpBall(p=1.5, radius=1.0)
      Direct(): the minimum of a quadratic of few features can be computed exactly
    """
    instance("objective", f, SmoothFunction, "Objective(Squared(), as_data(X, y))` or `BlackBox(fun, shape)")
    instance("ball", ball, ConstraintSet, "LpBall(2, radius=1.0)")
    ball.check_shape(f.shape)
    solver, why = _choose(f, ball, count("radii", radii))
    rows = "" if f.structure.n is None else f"{f.structure.n:,} rows, "
    return Plan(f"{f.structure.name} {rows}{f.shape} over {ball!r}", solver, why)


def _choose(f: SmoothFunction, ball: ConstraintSet, radii: int) -> tuple[Solver, str]:
    """Return the first solver that applies, and the reason."""
    own, n, structure = f.structure, f.structure.n, ball.structure(f.shape)
    if isinstance(ball, Constrained) and not structure.polytope and own.hessian and f.convex:
        return solvers.ConstrainedNewton(), "quadratic models over a ball and rows are solved exactly"
    lp, flat, fast = structure.plain_lp, structure.group_l1, structure.projection == "fast"
    d, D, working = f.shape[0], math.prod(f.shape), solvers.WorkingSet.smallest
    fits = math.isqrt(memory_limit() // (8 * MATRICES))  # largest number of rows of a square matrix that fits in memory
    if own.own_rows and structure.projection != "none":
        why = "tasks have few rows each, and the set has a projection"
        if f.convex and own.term_size is None:
            return solvers.AcceleratedProjectedGradient(), why
        solver = solvers.AcceleratedProjectedGradient if f.convex else solvers.ProjectedGradient
        return solver(BacktrackingGradient()), why
    second_order = own.hessian and f.convex
    products = second_order and n is not None and own.predictions and lp is not None and LEAST_P <= lp.p <= 2.0
    if own.quadratic_form and f.convex and fast:
        side = d if lp is not None or flat is not None else D  # the columns share one matrix
        most = FEW if products and radii == 1 else MOST_PARAMETERS
        if second_order and n is not None and flat is not None and radii == 1:
            most = working  # most entries of the matrix would be unused
        if d <= most and (lp is not None or D <= MOST_PARAMETERS) and side <= fits:
            return solvers.Direct(), "the minimum of a quadratic of few features can be computed exactly"
    elif own.hessian and not own.quadratic_form and fast:
        most = FEW if products or (n is not None and n < D) else D  # singular models are slow to minimise
        if f.convex and flat is not None:
            most = working if lp is not None else 0
        if d <= most and min(MOST_PARAMETERS, fits) >= D:
            return solvers.ConstrainedNewton(), "with few features a Hessian is cheap, and few steps are needed"
    if second_order and flat is not None and not (own.coupled and working * own.outputs > MOST_PARAMETERS):
        return solvers.WorkingSet(), f"most of the {d:,} features are zero at the minimum over this set"
    if products:
        return solvers.HessianFreeNewton(), f"products with a Hessian of {D:,} parameters are cheaper than the matrix"
    if structure.polytope and not fast:
        rule = ExactLineSearch() if own.predictions else Backtracking()
        return solvers.PairwiseFrankWolfe(rule), "over a polytope, steps among few vertices converge linearly"
    averages = isinstance(f.shape, FactoredShape) and ball.strong_convexity(f.shape) > 0.0
    if f.convex and own.predictions:
        if structure.projection != "none" and not averages:
            return solvers.AcceleratedProjectedGradient(BacktrackingGradient()), "the set has a projection"
        return solvers.CorrectivePrimalAveraging(), "it needs neither a Hessian nor a projection"
    rule = ExactLineSearch() if own.predictions else Backtracking()
    return solvers.FrankWolfe(rule), "it applies to smooth functions"


def memory_limit() -> int:
    """Return ``PROJFREE_MEMORY`` in bytes, by default half of the memory of the machine or of the container."""
    text = os.environ.get("PROJFREE_MEMORY", "").strip()
    if not text:
        return _machine_memory() // 2
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(?:([KMGT])(I?))?B?", text.upper())
    size = int(float(found[1]) * (1024 if found[3] else 1000) ** " KMGT".find(found[2] or " ")) if found else 0
    if size < 1:
        raise ValueError(
            f"the environment variable PROJFREE_MEMORY must be a positive number of bytes such as 4000000000, 4GB or "
            f"4GiB, got {text!r}; correct it or unset it."
        )
    return size


@cache
def _machine_memory() -> int:
    """Return the memory of the machine in bytes, or that of the container if it is smaller."""
    limits = [Path(name).read_text().strip() for name in CGROUP_LIMITS if Path(name).is_file()]
    sizes = [int(limit) for limit in limits if limit.isdigit() and int(limit) > 0]
    if hasattr(os, "sysconf"):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(sizes, default=4 * 10**9)  # if the system does not report it
