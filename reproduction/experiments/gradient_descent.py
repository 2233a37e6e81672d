"""PA against projected gradient descent: iterations by the paper's rule, times seconds of a step (Figures 2b, 8a)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from projfree import paper
from reproduction.base import Claim, Experiment, Finding, Mode, Row, Setting, Task
from reproduction.drawing import CLOCK, PALETTE, label_axes, log_scales, mark_convergence, plot_curve
from reproduction.experiments.iteration_time import GD, step_ratio, step_seconds
from reproduction.measure import count, curve_rows
from reproduction.problems import PA, l2_projection, least_squares
from reproduction.rules import FACTOR_WORDS, Rule, compare, factor_rule, select

RHOS = {"standardised": (0.1, 0.2, 0.5, 0.9, 1.0, 2.0), "raw": (0.003, 0.01, 0.02, 0.05, 0.1, 0.2)}
#: Steps of gradient descent in units of 1/L, below 2, where it converges; the paper does not say which it took.
ETAS, MOST = (1.9, 1.0, 0.5, 0.1), 200_000
SHOWN = {"standardised": 0.5, "raw": 0.05}


def label_gd(eta: float) -> str:
    """Return the name of gradient descent with a step size."""
    return f"GD, step {eta:g}/L" if eta != 1.0 else "GD, step 1/L"


def comparison(mode: Mode, features: str) -> Task:
    """Return the task that counts iterations from the centre, for all radii and step sizes."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode, features == "standardised")
        for rho in RHOS[features]:
            ball = problem.ball(2, rho)
            best, project = problem.minimum(ball), l2_projection(ball.radius)
            place = {**problem.place, "problem": "regression", "features": features, "rho": rho, "start": "centre"}
            yield {**place, "measure": "minimum", "value": best.value}
            runs = {PA: problem.methods(ball)[PA]}
            for eta in ETAS:
                runs[label_gd(eta)] = paper.gradient_descent(problem.gradient, project, problem.zero, eta / problem.L)
            for name, iterates in runs.items():
                values = (best.value + problem.error(w, best) for w in iterates)
                found = count(values, best.value, problem.start, MOST)
                yield found.row(**place, method=name)
                if rho == SHOWN[features] and name in (PA, label_gd(1.0)):
                    yield from curve_rows("loss", found.t, found.values, **place, method=name)

    return Task(features, run)


def tasks(mode: Mode) -> list[Task]:
    """Return the tasks: standardised and raw features."""
    return [comparison(mode, features) for features in RHOS]


def iterations(rows: Any) -> tuple[Any, str]:
    """Return the iteration counts over starts, and "at least" if a run ended before convergence."""
    found = select(rows, measure=["iterations", "iterations at least"])
    return found["value"].to_numpy(), "at least" if (found["measure"] == "iterations at least").any() else ""


def time_factors(table: Any, rule: Rule) -> list[Setting]:
    """Return the ratio of the times of gradient descent and PA for each scaling, step size and radius."""
    out, own = [], select(table, experiment="gradient_descent")
    for features, rhos in RHOS.items():
        ratio = step_ratio(table, GD, PA, "regression", features)
        for rho in rhos:
            rows = select(own, features=features, rho=rho)
            (pa, _), runs = iterations(select(rows, method=PA)), {e: select(rows, method=label_gd(e)) for e in ETAS}
            for eta, run in runs.items():
                (gd, bound), where = iterations(run), f"{label_gd(eta)[4:]}, {features}, ρ = {rho:g}"
                if len(pa) and len(gd) and len(ratio):
                    out.append(rule.at(where, gd[0] / pa[0] * ratio, bound=bound))
    return out


def judge(table: Any) -> Finding:
    """Judge the printed ratio of times."""
    return compare(time_factors(table, factor_rule(7.7)), select(table, experiment="gradient_descent"), "×")


def loss_panel(axis: Any, table: Any, features: str, title: str) -> None:
    """Plot losses against seconds, and mark convergence by the criterion of the paper."""
    rho, at = SHOWN[features], {}
    rows = select(table, experiment="gradient_descent", features=features, rho=rho)
    for k, (name, timed) in enumerate(((PA, PA), (label_gd(1.0), GD))):
        seconds = step_seconds(table, timed, "regression", features)
        losses = select(rows, method=name, measure="loss")
        if len(seconds) and len(losses):
            each = float(np.median(seconds))
            plot_curve(axis, losses["t"] * each, losses["value"], name, PALETTE[k])
            at[name] = each * float(losses["t"].max())
    mark_convergence(axis, at)
    log_scales(axis, "x", CLOCK)
    label_axes(axis, title, "seconds", "loss")


EXPERIMENT = Experiment(
    name="gradient_descent",
    title="PA against projected gradient descent",
    method=(
        "Least squares over l₂ balls. Iterations by the paper's rule (within 2 % of the previous loss and of the "
        "minimum, which is exact here) times measured seconds of a step. The paper states neither the step η, the "
        "radius nor the scaling of the features: all are varied."
    ),
    tasks=tasks,
    claims=(
        Claim("factor", "Figures 2b, 8a", "PA converges so many times faster than GD", "7.7×", FACTOR_WORDS, judge,
              True, "figure-8", True, True),
    ),
    reads=("iteration_time",),
)  # fmt: skip
