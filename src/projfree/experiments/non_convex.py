"""Experiment 8: Frank-Wolfe with line search on the bi-weight loss, which is not convex."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from projfree.experiments.base import Claim, Experiment, Finding, Mode, Panel, Row, Task, Verdict
from projfree.experiments.judging import NOTHING, error_panel, select, span, spread, verdict_over
from projfree.experiments.measure import Curve, slope
from projfree.experiments.problems import Fit
from projfree.experiments.sources import adult, year
from projfree.experiments.starts import STARTS, best_found, line_search_run
from projfree.losses import BiWeight
from projfree.sets import LpBall

RADII = (0.5, 2.0)


@cache
def _problem(mode: Mode, task: str) -> Fit:
    return Fit(BiWeight(), year(mode) if task == "regression" else adult(mode))


def robust(mode: Mode, task: str, radius: float) -> Task:
    """Error of the value and the smallest Frank-Wolfe gap so far, against t."""

    def run(seconds: float) -> Iterator[Row]:
        problem, ball = _problem(mode, task), LpBall(2, radius)
        most = (60 if task == "regression" else 100) if mode == "quick" else 1_000
        best = best_found(problem, ball, most, seconds * 0.6)
        place = {**problem.place, "problem": task, "set": "l_2", "p": 2.0, "radius": radius}
        yield {**place, "measure": "minimum", "value": best.value, "note": best.how}
        curve, gaps, _ = line_search_run(problem.reference, ball, most, seconds * 0.4)
        here = {**place, "solver": "FWLS", "seed": 0}
        smallest = Curve(curve.t, curve.seconds, curve.passes, np.minimum.accumulate(gaps))
        yield from curve.rows("error", best.value, **here)
        yield from smallest.rows("smallest gap", **here)
        error = curve.value - best.value
        for measure, values, floor in (
            ("slope", error, max(abs(best.gap), 1e-12)),
            ("gap slope", smallest.value, 1e-14),
        ):
            above = curve.t[values > floor]  # the window ends where the minimum, or rounding, is met
            low, end = (5.0 if curve.t[-1] < 100 else 10.0), float(above[-1]) if len(above) else 0.0
            window = {"variant": f"[{low:g}, {end:g}]", "measure": measure}
            yield {**here, **window, "value": slope(curve.t, values, low, end, 0.0)}

    return Task(f"bi-weight {task} r={radius:g}", run)


def tasks(mode: Mode) -> list[Task]:
    """Both tasks, because the paper names one in a table and the other in the text."""
    return [robust(mode, task, radius) for task in ("regression", "classification") for radius in RADII]


def judge_gap(table: Any) -> Finding:
    """Whether the smallest Frank-Wolfe gap falls with slope -0.9 or steeper."""
    good, bad, shown = list[str](), list[str](), list[str]()
    for (task, radius), rows in (
        select(table, measure="gap slope").dropna(subset="value").groupby(["problem", "radius"])
    ):
        where = f"{task} r = {radius:g}"
        shown.append(f"{spread(list(rows['value']))} on {rows['variant'].iloc[0]} ({where})")
        (good if rows["value"].mean() <= -0.9 else bad).append(where)
    return verdict_over(good, bad, "; ".join(shown), "slope at most −0.9", "flatter than −0.9")


def judge_number(table: Any) -> Finding:
    """Whether -1.46 lies in the range of our slopes of f - f*, widened by 0.1."""
    rows = select(table, measure="slope").dropna(subset="value")
    if not len(rows):
        return NOTHING
    inside = rows["value"].min() - 0.1 <= -1.46 <= rows["value"].max() + 0.1
    each = "; ".join(
        f"{v:.2f} ({t} r = {r:g})" for v, t, r in zip(rows["value"], rows["problem"], rows["radius"], strict=True)
    )
    reason = f"−1.46 lies {'within' if inside else 'outside'} the range over tasks and radii ({each}), f* best found"
    return Finding(Verdict.HOLDS if inside else Verdict.FAILS, span(rows["value"]), reason)


def panels(table: Any) -> list[Panel]:
    """The error and the smallest gap against t."""
    out = []
    titles = {"error": "f(w_t) − f* (best found)", "smallest gap": "smallest Frank-Wolfe gap so far"}
    for measure, label in titles.items():
        rows = select(table, measure=measure).copy()
        if not len(rows):
            continue
        rows["solver"] = rows["problem"] + ", r = " + rows["radius"].map("{:g}".format)
        panel = error_panel(rows, measure.replace(" ", "-"), f"FWLS on the bi-weight loss, l₂: {label}")
        out.append(Panel(panel.key, panel.title, panel.xlabel, label, panel.series, alt=panel.alt, note=panel.note))
    return out


EXPERIMENT = Experiment(
    name="non-convex",
    title="Smooth non-convex losses",
    question="How fast does Frank-Wolfe with line search become stationary?",
    paper="Figures 1c and 10; Theorem 4",
    method=(
        "Bi-weight loss with scale 1, FWLS from the centre, on regression (the paper's table) and classification "
        "(its text). "
        "The theorem bounds the smallest Frank-Wolfe gap; the paper plots f − f*. Both are shown; f* is the best "
        "found from "
        f"{STARTS} random starts."
    ),
    tasks=tasks,
    claims=(
        Claim("gap", "The smallest Frank-Wolfe gap falls like 1/t", "≤ −1", "Theorem 4",
              "holds where the slope of the smallest gap so far is at most −0.9; judged for each task and "
              "radius", judge_gap),
        Claim("number", "The slope of f − f* is −1.46", "−1.46", "Figures 1c, 10",
              "holds if the number lies within the range of our slopes over tasks and radii, widened by "
              "0.1", judge_number),
    ),
    panels=panels,
    budget={"quick": 18.0, "full": 1100.0},
)  # fmt: skip
