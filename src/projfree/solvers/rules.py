"""The rules of the plan: each looks at the costs of a problem and offers a solver, or none."""

from __future__ import annotations

from dataclasses import dataclass

from projfree import solvers
from projfree import steps as step_rules
from projfree.algebra import FactoredShape
from projfree.solvers import memory as held
from projfree.solvers.base import Solver
from projfree.solvers.costs import FLOPS_A_READ, HESSIAN, MODEL_FLOPS, Costs
from projfree.solvers.model import MOST_PARAMETERS

# Fitted by `python benchmarks/plan_fit.py` on one half of its problems and judged on the other. All costs are in reads
# of X, and all counts of iterations are those to a relative gap of about 1e-6: a looser tolerance is met earlier on the
# same way, never on another one, so that nothing here depends on the tolerance.
#: Hessians and tangents of Newton's method.
NEWTON_HESSIANS, NEWTON_TANGENTS = 4.1, 10.0
#: Iterations of corrective averages over round sets, over l_p balls nearly as sharp as that of l_1, and over others.
CORRECTIVE, SHARP_CORRECTIVE, FLAT_CORRECTIVE = 145.0, 255.0, 1_450.0
#: Iterations of other first-order methods on problems that are not easy.
ACCELERATED, FRANK_WOLFE = 218.0, 14_400.0
#: Reads of Krylov spaces for squares.
LANCZOS = 19.0
#: Iterations of pairwise steps with corrections, and of those without.
CORRECTED, PAIRWISE = 72.0, 720.0
#: Products of Newton's method with a Hessian that is not formed and its tangents, and the factor where p is not 2.
PRODUCTS, PRODUCT_TANGENTS, MIRRORED = 17.0, 6.35, 1.5
#: Iterations of working sets, and the features that one has, about.
WORKING_STEPS, WORKING = 8.8, 87.0
#: Model solves that an exact solution takes the time of, and the part of it that is left on a path of radii, where the
#: last solution or a decomposition serves the next one, unless p is between (`python benchmarks/plan_paths.py`).
EXACT_SOLVE, NEXT_SOLVE = 3.0, 0.1
#: Iterations on tasks with rows of their own, set by hand: the problems of the fit have none.
TASKS = 36.0
# What solvers do, which a fit of prices leaves as it is.
#: From this many parameters on a first-order method gets a chance before any Hessian is formed, for so many of the
#: reads that one would cost: easy problems (small radii) are then done, and others start better. Unless that is few.
RELAY_FROM, RELAY_SHARE, FEW = 200, 1.0, 8
#: Closer to l_1 than with this exponent Newton from products takes many more reads.
LEAST_P = 1.2
#: Iterations of averages before accelerated gradients take over, and those after which a look at the norm decides.
AVERAGES, LOOK = 100, 8
#: The same where a projection takes the time of many vertices, so that only minima inside, where there is nothing to
#: project, are worth it: by then averages have come close to the boundary if the minimum is there.
LONG_AVERAGES, LATE_LOOK = 10_000, 300
#: Iterations after which a working set has not found a minimum with few features.
WORKING_TURNS = 50
#: The share for Krylov spaces before a Gram matrix is formed.
KRYLOV_SHARE = 0.08


@dataclass(frozen=True)
class Choice:
    """A solver for a problem and what it is expected to cost.

    Attributes
    ----------
    solver : Solver
        With its settings.
    reads : float
        Reads of the data to a relative gap of about 1e-6.
    work : float
        All work until then, in the time of so many reads.
    memory : int
        Bytes besides the data.
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
            f"{self.solver!r}: {self.why}; about {self.reads:,.0f} reads of the data to 1e-6, the work of "
            f"{self.work:,.0f}, and {self.memory / 1e6:,.1f} MB besides it"
        )


def direct(costs: Costs) -> Choice | None:
    """Solve a quadratic, after one pass where it is given by rows."""
    f, d = costs.f, costs.f.shape[0]
    if not (f.has_quadratic_form and f.convex and costs.ball.projects_quickly) or costs.load.form == "data":
        return None
    asked = costs.load.form == "gram"
    if (costs.ball.as_lp(f.shape) is None and costs.parameters > MOST_PARAMETERS) or (
        d > MOST_PARAMETERS and not asked
    ):
        return None
    gram = 0.0 if f.rows is None else (HESSIAN * d + 1.0) / costs.radii
    memory = held.gram(costs)
    why = "one pass for the Gram matrix, then an exact solve" if gram else "the minimum of a quadratic, solved for"
    work = 4.0 + gram + EXACT_SOLVE * costs.model_work * (NEXT_SOLVE if costs.radii > 1 and not costs.powers else 1.0)
    after = round(KRYLOV_SHARE * work / costs.tangent)
    if gram and not asked and costs.radii == 1 and d >= RELAY_FROM and after >= FEW and lanczos(costs) is not None:
        why = (
            f"a Gram matrix of {d:,} features and its spectrum take the time of {work:,.0f} reads, perhaps for nothing"
        )
        krylov = solvers.TrustRegionLanczos()
        memory = max(memory, held.krylov(costs, min(after, krylov.memory)))
        return Choice(solvers.Relay(krylov, solvers.Direct(), after), 4.0 + after, work, memory, why)
    return Choice(solvers.Direct(), 3.0 + (gram > 0.0), 0.0 if asked else work, memory, why)


def newton(costs: Costs) -> Choice | None:
    """A handful of Hessians, after some cheap iterations where a Hessian is not cheap."""
    f, D = costs.f, costs.parameters
    if f.has_quadratic_form or not costs.has_model:
        return None
    pairs = 0.5 * (D / f.shape[0] + 1.0) if costs.load.coupled else 1.0
    one = HESSIAN * D * pairs + costs.model_work
    reads, memory = NEWTON_HESSIANS + 2.0 * NEWTON_TANGENTS, held.hessian(costs)
    work = NEWTON_TANGENTS * (costs.tangent + costs.oracle) + NEWTON_HESSIANS * one
    why = f"few parameters ({D:,}), so that a Hessian is cheap"
    if D < RELAY_FROM or not f.convex:
        return Choice(solvers.ConstrainedNewton(), reads, work, memory, why)
    first: Solver = solvers.CorrectivePrimalAveraging() if costs.ball.is_round else _accelerating()
    after = round(RELAY_SHARE * one / (2.0 * costs.tangent + costs.search))
    if after < FEW:
        return Choice(solvers.ConstrainedNewton(), reads, work, memory, why)
    why = f"a Hessian of {D:,} parameters takes the time of {one:,.0f} reads, which may be enough without one"
    memory = max(memory, held.hulls(costs, 3))
    return Choice(solvers.Relay(first, solvers.ConstrainedNewton(), after), reads + 2.0 * after, work, memory, why)


def hessian_free(costs: Costs) -> Choice | None:
    """Newton's method from products with a Hessian, where forming one is not cheap."""
    f, lp = costs.f, costs.ball.as_lp(costs.f.shape)
    if not (f.convex and f.has_hessian and f.rows is not None and f.has_images) or costs.parameters < RELAY_FROM:
        return None
    if lp is None or not LEAST_P <= lp.p <= 2.0 or costs.load.form == "gram":
        return None
    times = (1.0 if lp.p == 2.0 else MIRRORED) * (2.0 if costs.load.coupled and costs.load.searches else 1.0)
    reads = times * (PRODUCTS + PRODUCT_TANGENTS)
    # Outputs that share a loss take many more products where scales differ: each counts as a tangent.
    one = costs.tangent if costs.load.coupled else costs.product
    work = times * (PRODUCTS * one + PRODUCT_TANGENTS * (costs.tangent + costs.oracle))
    why = f"{costs.parameters:,} parameters: products with the Hessian, a read each, instead of the matrix"
    return Choice(solvers.HessianFreeNewton(), reads, work, held.products(costs), why)


def working_set(costs: Costs) -> Choice | None:
    """A few features at a time, where the set makes most of them zero."""
    f, d, flat = costs.f, costs.f.shape[0], costs.ball.as_flat(costs.f.shape)
    if not (f.convex and f.has_hessian and flat is not None) or costs.load.form == "gram":
        return None
    m = min(d, round(WORKING))
    if m * costs.load.outputs > MOST_PARAMETERS and costs.load.coupled:
        return None
    one = 1.0 + HESSIAN * m * (m / d) + EXACT_SOLVE * MODEL_FLOPS * float(m) ** 3 / (FLOPS_A_READ * costs.span)
    why = f"most of the {d:,} features are zero at the minimum, so that it is looked for among a few at a time"
    work = WORKING_STEPS * (one + costs.tangent + costs.oracle)
    memory = held.working_set(costs, m, 1)
    return Choice(solvers.WorkingSet(), 2.0 + 2.0 * WORKING_STEPS, work, memory, why)


def lanczos(costs: Costs) -> Choice | None:
    """Krylov spaces for squares over a Euclidean ball."""
    f, lp = costs.f, costs.ball.as_lp(costs.f.shape)
    if not (f.rows is not None and f.has_quadratic_form and lp is not None and lp.p == 2.0):
        return None
    why = "squares over a Euclidean ball, where Krylov spaces need the fewest reads"
    solver = solvers.TrustRegionLanczos()
    memory = held.krylov(costs, solver.memory)
    return Choice(solver, LANCZOS, LANCZOS * costs.tangent, memory, why)


def corrective(costs: Costs) -> Choice | None:
    """Corrective Primal Averaging; with accelerated gradients behind it for minima inside, where there is a choice."""
    f = costs.f
    if not (f.convex and f.has_images):
        return None
    # Over sets with flat pieces vertices repeat, and averages of them converge slowly.
    lp = costs.ball.as_lp(f.shape)
    sharp = lp is not None and lp.p > 1.0 and not lp.is_polytope
    steps = CORRECTIVE if costs.ball.is_round else SHARP_CORRECTIVE if sharp else FLAT_CORRECTIVE
    work = steps * _vertex_step(costs)
    solver: Solver = solvers.CorrectivePrimalAveraging()
    why = f"{'a round set, ' if costs.ball.is_round else ''}no projection and no Hessian needed"
    if costs.ball.is_round and costs.ball.projects_quickly:
        solver = solvers.Relay(solver, _accelerating(), AVERAGES, LOOK)
        why = "averages of vertices suit a round set, accelerated gradients a minimum inside it; no Hessian needed"
    elif costs.ball.projectable and not costs.ball.projects_quickly:
        solver = solvers.Relay(solver, _accelerating(), LONG_AVERAGES, LATE_LOOK)
        why = "averages of vertices, as projections are slow, and accelerated gradients for a minimum inside the set"
    return Choice(solver, 2.0 * steps, work, held.hulls(costs, 3), why)


def pairwise(costs: Costs) -> Choice | None:
    """Pairwise steps over an active set, for polytopes without a quick projection."""
    f, ball = costs.f, costs.ball
    if not ball.is_polytope or ball.projects_quickly or isinstance(f.shape, FactoredShape):
        return None
    steps = CORRECTED if f.has_curvature else PAIRWISE
    work = steps * _vertex_step(costs)
    solver = solvers.PairwiseFrankWolfe() if f.has_images else solvers.PairwiseFrankWolfe(step_rules.Backtracking())
    why = "a polytope, where moving weight among few vertices converges quickly"
    return Choice(solver, 2.0 * steps, work, held.active(costs), why)


def accelerated(costs: Costs) -> Choice | None:
    """Accelerated projected gradients."""
    f = costs.f
    if not (f.convex and costs.ball.projects_quickly and f.has_images):
        return None
    work = ACCELERATED * (2.2 * costs.tangent + 1.1 * costs.projection + costs.oracle)
    why = "a quick projection and no Hessian needed"
    return Choice(_accelerating(), 2.2 * ACCELERATED, work, held.tangents(costs), why)


def projected(costs: Costs) -> Choice | None:
    """Projected gradients for tasks with rows of their own.

    Tasks have many parameters and few rows each; balls of matrices, and free coordinates far from their bounds, are
    where projections beat vertices by far.
    """
    f = costs.f
    if not (costs.load.own_rows and costs.ball.projectable):
        return None
    solver: Solver = solvers.AcceleratedProjectedGradient()
    if not f.convex:
        solver = solvers.ProjectedGradient(step_rules.BacktrackingGradient())
    work = 2.0 * TASKS * (costs.tangent + costs.projection)
    return Choice(solver, 2.0 * TASKS, work, held.tangents(costs), "tasks of few rows each, and a projection")


def frank_wolfe(costs: Costs) -> Choice | None:
    """Frank-Wolfe, where nothing else applies."""
    f, work = costs.f, FRANK_WOLFE * _vertex_step(costs)
    why = "it descends on every smooth function"
    rule = step_rules.ExactLineSearch() if f.has_images else step_rules.Backtracking()
    solver = solvers.FrankWolfe(rule)
    return Choice(solver, 2.0 * FRANK_WOLFE, work, held.hulls(costs, 2), why)


def _accelerating() -> Solver:
    return solvers.AcceleratedProjectedGradient(step_rules.BacktrackingGradient())


def _vertex_step(costs: Costs) -> float:
    """Reads that a step towards a vertex takes the time of: the tangent, the vertex and its image, and a search."""
    return 2.0 * costs.tangent + costs.search + costs.oracle


#: The rules, each with the tangents that its solver takes at least: what it costs on any problem.
RULES = {
    direct: 0.0,
    newton: NEWTON_TANGENTS,
    hessian_free: PRODUCT_TANGENTS,
    working_set: WORKING_STEPS,
    lanczos: LANCZOS,
    corrective: 2.0 * CORRECTIVE,
    pairwise: 2.0 * CORRECTED,
    accelerated: 2.2 * ACCELERATED,
    projected: 2.0 * TASKS,
    frank_wolfe: 2.0 * FRANK_WOLFE,
}
