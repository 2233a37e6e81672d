"""Frank-Wolfe with line search on the bi-weight loss, which is not convex: error and gap (Figures 1c and 10)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from projfree import BiWeight, ExactLineSearch, FrankWolfe, LpBall, Perturbed, ShortStep, paper
from reproduction.base import Claim, Experiment, Figure, Finding, Mode, Row, Task
from reproduction.drawing import label_axes, log_scales, panels, plot_errors, plot_reference
from reproduction.experiments.quasi_convex import best_of_starts
from reproduction.measure import curve_rows, slope_rows, trace_run
from reproduction.problems import EXACT, OPTION_B, Fit, Table, adult, random_point, year
from reproduction.rules import SLOPE_WORDS, answer, bounded, by_group, compare, judge_all, select, slope_rule

RADII, DELTA, EPSILON = (0.5, 2.0), 0.1, 1e-4
MOST, WINDOWS = {"quick": 150, "full": 400}, ((3, 30), (10, 100), (30, 300))
INTERCEPT = {True: "minimised out", False: "left out"}
#: Units of f, on which C' depends because it lacks theta.
UNITS = ("sum", "mean")


def biweight(mode: Mode, task: str, radius: float, intercept: bool) -> Task:
    """The exact search and option B, on f and (option B) on h: values, and the smallest Frank-Wolfe gap so far."""

    def run() -> Iterator[Row]:
        table, ball = year("quick") if task == "regression" else adult(mode), LpBall(2, radius)
        if not intercept and task == "regression":
            table = Table(table.X, table.y - table.y.mean(), table.name)
        problem = Fit(BiWeight(), table, intercept)
        f, most, n = problem.reference, MOST[mode], len(table.y)
        least, gap = best_of_starts(problem, ball, 2 * most)
        place = {**problem.place, "problem": task, "radius": radius, "intercept": INTERCEPT[intercept]}
        yield {**place, "measure": "minimum", "value": least}
        xi = paper.on_the_sphere(f.shape, np.random.default_rng(0))
        h = Perturbed(f, paper.largest_theta(EPSILON * least, 2.0 * radius), xi)
        printed = FrankWolfe(ShortStep(f.smoothness()))
        runs = [(EXACT, f, FrankWolfe(ExactLineSearch()), seed) for seed in range(2 if mode == "quick" else 3)]
        runs += [(OPTION_B, f, printed, 0), (f"{OPTION_B}, on h", h, printed, 0)]
        for name, of, solver, seed in runs:
            gaps: list[float] = []

            def store_gap(state: object, of: object = of, gaps: list[float] = gaps) -> float:
                gaps.append(float(state.gap))  # type: ignore[attr-defined]
                return float(of(state.x))  # type: ignore[operator, attr-defined]

            start = random_point(ball, f.shape, seed) if seed else None
            t, values, _ = trace_run(of, ball, solver, most, store_gap, start, 1.0)
            here = {**place, "method": name, "start": seed}
            if of is f:
                error = values - least
                floor = max(abs(gap), 1e-10 * least)
                yield from curve_rows("error", t, np.maximum(error, 1e-300), **here)
                yield from slope_rows(t, error, WINDOWS, floor, **here)
            smallest = np.minimum.accumulate(gaps)
            yield from curve_rows("smallest gap", t, np.maximum(smallest, 1e-300), **here)
            silent = EPSILON * least if of is h else 1e-13  # on h the theorem is silent below epsilon
            for row in slope_rows(t, smallest, WINDOWS, silent, **here):
                yield {**row, "measure": "gap slope"}
            yield {**here, "measure": "last gap", "value": float(smallest[-1])}
            constant = DELTA * math.sqrt(math.pi) / (8 * f.smoothness() * math.sqrt(2 * f.shape[0]) * radius)
            first = f(f.point(start if start is not None else np.zeros(f.shape)))
            for unit, c in zip(UNITS, (constant / n, constant), strict=True):
                bound = (first - least) / (t * min(0.5, c))
                share = float(np.max((smallest + (silent / 4 if of is h else 0.0)) / bound))
                yield {**here, "measure": "share of the bound", "unit": unit, "value": share}

    return Task(f"{task} r={radius:g} intercept {INTERCEPT[intercept]}", run)


def tasks(mode: Mode) -> list[Task]:
    """Both tasks, because the paper names one in a table and the other in the text, with and without an intercept."""
    grid = [(task, r, i) for task in ("classification", "regression") for r in RADII for i in INTERCEPT]
    return [biweight(mode, *at) for at in grid]


AT = {"problem": "", "radius": "r = ", "intercept": "intercept ", "method": "", "start": "start "}
#: A slope of the gap from which on -1 counts as reached.
LEVEL = -0.9


def at_setting(task: str, radius: float, intercept: str, method: str, window: str = "") -> str:
    """Format the name of a setting."""
    name = f"{task}, r = {radius:g}, intercept {intercept}, {method.removeprefix('FWLS, ')}"
    return name + (f", t in {window}" if window else "")


def judge_slope(table: Any) -> Finding:
    """Judge the printed slope for each task, radius, intercept, search and window."""
    rows = select(table, method=[EXACT, OPTION_B])
    by = ["problem", "radius", "intercept", "method", "window"]
    return compare(by_group(rows, by, slope_rule(-1.46), at_setting), rows)


def judge_gap(*methods: str) -> Any:
    """Whether the smallest gap falls with slope -0.9 or steeper on the last window, or meets rounding (or ε) before."""

    def judge(table: Any) -> Finding:
        own, out = select(table, method=list(methods)), []
        for key, rows in own.groupby(["problem", "radius", "intercept", "method"], sort=False):
            found = select(rows, measure="gap slope").groupby("window", sort=False)["value"].median()
            found = found.dropna()
            ends = {w: float(w.strip("[]").split(",")[1]) for w in found.index}
            reached = float(rows["t"].max()) > 0 and len(found) < len(select(rows, measure="gap slope", start=0))
            if not len(found):
                out.append(answer(at_setting(*key), math.nan, True, "at rounding, or at ε on h, before the windows"))
                continue
            late = max(ends, key=lambda w: ends[w])
            note = f"t in {late}" + ("; at rounding or ε after" if reached else "")
            out.append(answer(at_setting(*key), float(found[late]), bool(found[late] <= LEVEL), note))
        return judge_all(out, own, "-0.9 or steeper", "flatter")

    return judge


def panel(axis: Any, table: Any, title: str) -> None:
    """The error of the exact search on the bi-weight loss against the iteration, with the printed slope."""
    rows = select(table, experiment="non_convex", method=EXACT, problem="classification", start=0)
    if len(rows):
        rows = rows.assign(line="r = " + rows["radius"].map("{:g}".format) + ", intercept " + rows["intercept"])
        plot_errors(axis, rows, "line")
        some = select(rows, radius=2.0, intercept=INTERCEPT[True])
        plot_reference(axis, some, {"paper: -1.46": -1.46, "Theorem 4: -1": -1.0})
        axis.set_ylim(bottom=max(axis.get_ylim()[0], 1e-8))
    log_scales(axis)
    label_axes(axis, title, "iteration t", "f(w) - best found")


def draw_10(table: Any) -> Any:
    """Plot Figure 10: classification."""
    figure, (axis,) = panels(1, 3.8, 6.0)
    panel(axis, table, "bi-weight, Adult, l₂")
    return figure


def draw_gaps(table: Any) -> Any:
    """Plot the smallest Frank-Wolfe gap, the subject of Theorem 4."""
    figure, axes = panels(4, 3.2, 3.9)
    for axis, (task, radius) in zip(axes, product(("classification", "regression"), RADII), strict=True):
        rows = select(table, measure="smallest gap", problem=task, radius=radius, method=[EXACT, OPTION_B])
        if len(rows):
            rows = rows.assign(measure="error", line=rows["method"] + ", " + rows["intercept"])
            plot_errors(axis, rows, "line")
        log_scales(axis)
        label_axes(axis, f"{task}, r = {radius:g}", "iteration t", "smallest gap so far")
    return figure


EXPERIMENT = Experiment(
    name="non_convex",
    title="Smooth losses that are not convex",
    method=(
        "The bi-weight loss over l₂ balls. The paper's text says classification (Adult), its tables robust regression: "
        "both, the latter on the 7,000 real rows of YearPredictionMSD. f* is the best found from 20 random starts. The "
        "paper plots f(w) - f*, the theorem bounds the smallest Frank-Wolfe gap. Whether the intercept is minimised "
        "out decides at r = 0.5; it is varied with the start, the radius, the window and the reading of FWLS."
    ),
    tasks=tasks,
    claims=(
        Claim("slope", "Figures 1c, 10", "Slope of f - f* on the bi-weight loss", "-1.46", SLOPE_WORDS, judge_slope,
              True, "figure-10", full=True),
        Claim("gap", "Theorem 4", "The smallest Frank-Wolfe gap falls like 1/t", "≤ -1",
              "holds where the slope on the last window is -0.9 or steeper, or the gap meets rounding",
              judge_gap(EXACT, OPTION_B), False, "non-convex-gaps", full=True),
        Claim("gap-h", "Theorem 4", "The same on h = f + θ⟨ξ, w⟩, down to ε", "≤ -1",
              "holds where the slope on the last window above ε is -0.9 or steeper", judge_gap(f"{OPTION_B}, on h"),
              full=True),
        Claim("bound", "Theorem 4", "The smallest gap is at most ℓ₁/(t min(1/2, C′)), f the sum", "≤ 1",
              "holds if no gap exceeds the bound (δ = 0.1)", bounded("share of the bound", AT, 1.0, unit="sum")),
        Claim("bound-mean", "Theorem 4", "The same with f the mean of the losses", "≤ 1",
              "holds if no gap exceeds the bound (δ = 0.1); C′ lacks θ, so that it changes with the unit of f",
              bounded("share of the bound", AT, 1.0, unit="mean")),
    ),
    figures=(
        Figure("figure-10", 10, "FWLS with the bi-weight loss. Dashed: the printed slope.", draw_10),
        Figure("non-convex-gaps", 0, "The smallest Frank-Wolfe gap so far.", draw_gaps),
    ),
)  # fmt: skip
