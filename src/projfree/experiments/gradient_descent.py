"""Experiment 4: Primal Averaging against projected gradient descent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from projfree.experiments.base import Claim, Experiment, Finding, Mode, Panel, Row, Series, Task
from projfree.experiments.judging import judge_factor, number, ratios, select, time_panel
from projfree.experiments.problems import LeastSquares
from projfree.experiments.sources import year
from projfree.experiments.variants import converged_rows
from projfree.solvers import AcceleratedProjectedGradient, PrimalAveraging, ProjectedGradient
from projfree.solvers.base import Solver

#: Raw features are so badly scaled that only small radii are within reach.
RHOS = {"standardised": (0.05, 0.2, 0.5, 0.9, 1.0, 2.0), "raw": (0.003, 0.01, 0.02, 0.05)}
REPEATS = {"standardised": 2, "raw": 1}


def solvers(L: float) -> dict[str, Solver]:
    """PA, and gradient descent with the step 1/L, which is computed beforehand and not charged."""
    from projfree.steps import InverseSmoothness

    step = InverseSmoothness(L)
    return {
        "PA": PrimalAveraging(),
        "GD": ProjectedGradient(step),
        "accelerated GD": AcceleratedProjectedGradient(step),
    }


def compared(mode: Mode, features: str) -> Task:
    """All radii with standardised or raw features."""

    def run(seconds: float) -> Iterator[Row]:
        problem = LeastSquares(year(mode, standardize=features == "standardised"))
        L = problem.objective().smoothness()
        yield {"variant": features, "measure": "condition", "value": _condition(problem), **problem.place}
        for rho in RHOS[features]:
            ball = problem.ball(2, rho)
            best = problem.minimum(ball)
            place = {**problem.place, "problem": "regression", "set": "l_2", "p": 2.0, "radius": ball.radius}
            place |= {"rho": rho, "variant": features}
            for repeat in range(REPEATS[features]):
                for name, solver in solvers(L).items():
                    curve = problem.followed(
                        ball, best, solver, most=6_000, seconds=seconds / len(RHOS[features]) / REPEATS[features] / 2
                    )
                    here = {**place, "solver": name, "seed": repeat}
                    yield from converged_rows(curve, curve.converged(best.value, problem.start), here)
                    if repeat == 0:
                        yield from curve.rows("loss", **here)

    return Task(f"l_2 {features}", run, weight=1.0 if features == "standardised" else 3.0)


def _condition(problem: LeastSquares) -> float:
    values, _ = problem.spectrum
    return float(values[-1] / values[0]) if values[0] > 0 else float("inf")


def factor(features: str, slow: str = "GD") -> Any:
    """The rule for the factor 7.7."""

    def judge(table: Any) -> Finding:
        return judge_factor(ratios(select(table, variant=features), "PA", slow, "time"), 7.7)

    return judge


def panels(table: Any) -> list[Panel]:
    """The factors over the radii, and one figure of loss against time."""
    out = []
    for features, rows in select(table, measure=["time", "time at least"]).groupby("variant", sort=False):
        series = []
        for place, name in enumerate(("GD", "accelerated GD"), start=1):
            found = ratios(rows, "PA", name, "time")
            series.append(Series(f"{name} / PA", list(found), [r for r, _ in found.values()], colour=place))
        title = f"How many times longer than PA, {features} features"
        alt = f"{title}: " + "; ".join(f"{s.name} {number(min(s.y))} to {number(max(s.y))}" for s in series if len(s.y))
        out.append(Panel(f"factors-{features}", title, "ρ = r / ‖w_unc‖", "time / time of PA", series, alt=alt))
    for features, rows in select(table, measure="loss", rho=[0.5, 0.02]).groupby("variant", sort=False):
        rho = rows["rho"].iloc[0]
        times = select(table, variant=features, rho=rho, measure="time")
        title = f"Loss against time, {features} features, ρ = {rho:g}"
        out.append(time_panel(f"loss-{features}", title, rows, times))
    return out


RULE = "time of gradient descent to converge over PA's; holds at radii where it is at least three quarters of 7.7"
EXPERIMENT = Experiment(
    name="gradient-descent",
    title="PA against projected gradient descent",
    question="Does PA converge sooner than projected gradient descent?",
    paper="Figures 2b and 8a",
    method=(
        "As in the comparison of variants, least squares over l₂ balls, with GD's step 1/L, L known beforehand. The "
        "paper "
        "gives neither the step nor the scaling of features: both scalings are measured, and accelerated GD beside the "
        "plain one. ρ is relative to the norm of the unconstrained minimiser for the same features."
    ),
    tasks=lambda mode: [compared(mode, "standardised"), compared(mode, "raw")],
    claims=(
        Claim("standardised", "PA converges 7.7× faster than projected GD (standardised features)", "7.7×", "Figure 2b",
              RULE, factor("standardised")),
        Claim("raw", "PA converges 7.7× faster than projected GD (raw features)", "7.7×", "Figure 2b", RULE,
              factor("raw")),
        Claim("accelerated", "The same against accelerated projected GD (standardised features)", "7.7×", "ours", RULE,
              factor("standardised", "accelerated GD")),
    ),
    panels=panels,
    budget={"quick": 14.0, "full": 900.0},
)  # fmt: skip
