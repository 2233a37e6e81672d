"""Every solver with every step rule and sampling that applies to a problem."""

from __future__ import annotations

import numpy as np
from agreement.problems import Problem

from projfree import (
    AcceleratedProjectedGradient,
    Backtracking,
    BacktrackingGradient,
    BlackBox,
    ConstrainedNewton,
    ConstraintSet,
    CorrectivePrimalAveraging,
    Direct,
    ExactLineSearch,
    FrankWolfe,
    Growing,
    HessianFreeNewton,
    InverseSqrt,
    LastGradient,
    LogAdaptive,
    Minibatch,
    OpenLoop,
    PairwiseFrankWolfe,
    Perturbed,
    PrimalAveraging,
    ProjectedGradient,
    QuadraticForm,
    ShortStep,
    WorkingSet,
)
from projfree.objectives import SmoothFunction
from projfree.solvers import Solver

SEARCHES = (ExactLineSearch(), Backtracking())
FREE: tuple[Solver, ...] = (
    *(FrankWolfe(rule) for rule in (*SEARCHES, OpenLoop(2), OpenLoop(4), LogAdaptive(), ShortStep())),
    *(PrimalAveraging(schedule) for schedule in (OpenLoop(2), OpenLoop(6), LogAdaptive())),
    PrimalAveraging(average=LastGradient()),
    PrimalAveraging(search=ExactLineSearch()),
    PrimalAveraging(average=OpenLoop(4), search=ExactLineSearch()),
    *(PairwiseFrankWolfe(corrections=every, lazy=every > 0) for every in (0, 1, 2)),
)
CORRECTIVE: tuple[Solver, ...] = (CorrectivePrimalAveraging(), CorrectivePrimalAveraging(OpenLoop(4)))
SAMPLED: tuple[Solver, ...] = (
    PrimalAveraging(sampling=Growing(2)),
    PrimalAveraging(average=LastGradient(), sampling=Growing(4)),
    PrimalAveraging(sampling=Minibatch(3)),
    FrankWolfe(OpenLoop(2), sampling=Growing(2)),
    FrankWolfe(OpenLoop(2), sampling=Minibatch(2)),
)
PROJECTING: tuple[Solver, ...] = (
    ProjectedGradient(),
    ProjectedGradient(BacktrackingGradient()),
    ProjectedGradient(InverseSqrt()),
    AcceleratedProjectedGradient(),
    AcceleratedProjectedGradient(BacktrackingGradient()),
)
PROJECTING_SAMPLED: tuple[Solver, ...] = (ProjectedGradient(InverseSqrt(), sampling=Minibatch(1)),)
#: These refuse an objective without a largest curvature.
NEED_CURVATURE: tuple[Solver, ...] = (
    FrankWolfe(ShortStep()),
    ProjectedGradient(),
    ProjectedGradient(InverseSqrt()),
    AcceleratedProjectedGradient(),
    *PROJECTING_SAMPLED,
)
SECOND_ORDER: tuple[Solver, ...] = (ConstrainedNewton(),)


def methods(problem: Problem) -> list[Solver]:
    """The solvers that apply."""
    f, ball = problem.f, problem.ball
    inner: SmoothFunction = f.f if isinstance(f, Perturbed) else f
    sampled = not isinstance(inner, BlackBox | QuadraticForm)
    smooth = np.isfinite(problem.loss.smoothness)
    out = [*FREE, FrankWolfe(ShortStep(L=max(inner.smoothness(), 1e-300)))] if smooth else [*FREE]
    out += CORRECTIVE if f.convex and f.structure.predictions else ()
    out += SAMPLED if sampled else ()
    structure = ball.structure(f.shape)
    if structure.projection != "none":
        out += PROJECTING
        if f.structure.hessian and f.convex and structure.group_l1 is not None:
            out += [WorkingSet(), WorkingSet(smallest=1)]
        if f.structure.hessian and structure.projection == "fast":
            out += SECOND_ORDER if f.convex else SECOND_ORDER[:1]
            out += exact(f, ball) if f.convex else ()
            lp = structure.plain_lp
            out += [HessianFreeNewton()] if lp is not None and 1.2 < lp.p < np.inf else []
        out += PROJECTING_SAMPLED if sampled else ()
    return out if smooth else [solver for solver in out if solver not in NEED_CURVATURE]


def exact(f: SmoothFunction, ball: ConstraintSet) -> list[Solver]:
    """The solvers for quadratics."""
    return [Direct()] if f.structure.quadratic_form else []


def draw_method(problem: Problem) -> Solver:
    """One of them, determined by the problem's number."""
    choices = methods(problem)
    return choices[int(np.random.default_rng((3, problem.seed)).integers(len(choices)))]
