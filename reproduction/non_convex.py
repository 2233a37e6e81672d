"""Experiment 8: Frank-Wolfe with line search on the bi-weight loss, which is not convex."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from projfree import paper
from projfree.losses import BiWeight
from projfree.objectives import Perturbed
from projfree.sets import LpBall
from projfree.solvers import FrankWolfe
from projfree.steps import ShortStep
from reproduction.base import Claim, Experiment, Finding, Mode, Panel, Row, Task
from reproduction.counting import FWLS, OPTION_B
from reproduction.drawing import error_panel, noted, state_map, window_panel
from reproduction.judging import (
    UNMEASURED,
    at_most,
    decided,
    judge_attainable,
    select,
    unless_smaller,
    windows,
)
from reproduction.measure import Curve, slope
from reproduction.problems import Fit
from reproduction.sources import ADULT_ROWS, QUICK_ROWS, adult, year
from reproduction.starts import STARTS, best_found, line_search_run
from reproduction.words import listed, number

RADII = (0.5, 2.0)
DELTA, EPSILON, LEVEL = 0.1, 1e-4, -0.9
#: Iterations; one costs many looks along the segment where the residuals are far beyond the scale of the loss.
MOST = {"quick": {"regression": 100, "classification": 300}, "full": {"regression": 400, "classification": 400}}
#: Iterations on as many rows as the paper has.
MOST_AT_SIZE, AT_SIZE = {FWLS: 60, OPTION_B: 100}, "regression at full size"
#: Where windows begin: an early and a late one; they end where the gap is at rounding.
STARTS_AT = (10, 30)
#: Where windows begin for the single slope that the paper prints without one.
MORE_STARTS = (1, 2, 3, 5, 20, 50)
ON_H, PRINTED_ON_H = "FWLS on h", "FWLS, option B as printed, on h"
#: Units of f, of which C' depends because it lacks theta.
SUM, MEAN, SMALL = "f the sum of the losses, as printed", "f their mean", "f in a unit so small that C′ ≥ 1/2"


@cache
def _problem(mode: Mode, task: str) -> Fit:
    return Fit(BiWeight(), year("quick") if task == "regression" else adult(mode))


def robust(mode: Mode, task: str, radius: float) -> Task:
    """Error of the value and the smallest Frank-Wolfe gap so far: the exact search and option B, on f and on h."""

    def run() -> Iterator[Row]:
        problem, ball = _problem(mode, task), LpBall(2, radius)
        f, most = problem.reference, MOST[mode][task]
        best = best_found(problem, ball, most, 1 if mode == "quick" else 2)
        place = {**problem.place, "problem": task, "set": "l₂", "p": 2.0, "radius": radius}
        yield {**place, "measure": "minimum", "value": best.value, "note": best.how}
        xi = paper.on_the_sphere(f.shape, np.random.default_rng(0))
        h = Perturbed(f, paper.largest_theta(EPSILON * best.value, 2.0 * radius), xi)
        printed = as_printed(f)
        runs: list[tuple[str, Any, Any]] = [(FWLS, f, None), (OPTION_B, f, printed), (PRINTED_ON_H, h, printed)]
        if mode == "full" or task == "classification":  # a step of the search takes long on regression
            runs.append((ON_H, h, None))
        for name, of, solver in runs:
            curve, gaps, _ = line_search_run(of, ball, most, None, solver)
            here = {**place, "solver": name, "seed": 0}
            if of is f:
                yield from curve.rows("error", best.value, **here)
                yield from fitted(curve, curve.value - best.value, max(abs(best.gap), 1e-12), "slope", here)
            yield from gap_rows(f, curve, gaps, best.value, 0.0 if of is f else EPSILON * best.value, here)

    return Task(f"bi-weight {task} r={radius:g}", run, (15 if task == "regression" else 11) if mode == "quick" else 80)


def as_printed(f: Any) -> FrankWolfe:
    """Option B with the smoothness of f, which h = f + theta <xi, w> shares."""
    return FrankWolfe(ShortStep(f.smoothness()))


def at_size(radius: float, name: str) -> Task:
    """The gap of one search on as many rows as the paper has; its own last value stands for the minimum.

    Option B has steps of about a thousandth there, and far cheaper ones, so that it takes more of them.
    """

    def run() -> Iterator[Row]:
        problem, ball = Fit(BiWeight(), year("full")), LpBall(2, radius)
        f = problem.reference
        solver = as_printed(f) if name == OPTION_B else None
        curve, gaps, _ = line_search_run(f, ball, MOST_AT_SIZE[name], None, solver)
        place = {**problem.place, "problem": AT_SIZE, "set": "l₂", "p": 2.0, "radius": radius}
        yield from gap_rows(f, curve, gaps, float(curve.value.min()), 0.0, {**place, "solver": name, "seed": 0})

    search = " option B" if name == OPTION_B else ""
    return Task(f"bi-weight {AT_SIZE}{search} r={radius:g}", run, 60 if name == OPTION_B else 210)


def gap_rows(f: Any, curve: Curve, gaps: Any, least: float, epsilon: float, here: dict[str, Any]) -> Iterator[Row]:
    """The smallest gap so far, its slopes, and its share of Theorem 4's bound in three units of f.

    ``epsilon`` is the accuracy asked for in runs on h, below which the theorem is silent, and 0 in runs on f.
    """
    smallest = Curve(curve.t, curve.seconds, curve.passes, np.minimum.accumulate(gaps))
    yield from smallest.rows("smallest gap", **here)
    yield from fitted(curve, smallest.value, epsilon or 1e-13, "gap slope", here)
    gap = smallest.value + epsilon / 4  # the gap of f on h's path is at most that of h plus theta D
    L, d, start = f.smoothness(), f.shape[0], f(f.point(np.zeros(f.shape)))
    C = DELTA * math.sqrt(math.pi) / (8 * L * math.sqrt(2 * d) * here["radius"])
    for unit, constant in ((SUM, C / here["n"]), (MEAN, C), (SMALL, math.inf)):
        bound = (start - least) / (smallest.t * min(0.5, constant))
        yield {**here, "variant": unit, "measure": "share of the bound", "value": float(np.max(gap / bound))}


def fitted(curve: Curve, values: Any, floor: float, measure: str, here: dict[str, Any]) -> Iterator[Row]:
    """Slopes from each start to where the values meet the floor; a window with fewer than five places says so."""
    below = np.flatnonzero(values <= floor)
    end = float(curve.t[below[0]] - 1) if len(below) else float(curve.t[-1])
    for low in STARTS_AT:
        found = slope(curve.t, values, low, end) if end > low else math.nan
        note = "" if len(below) == 0 else f"at the floor after {end:.0f} iterations"
        yield {**here, "variant": f"[{low:g}, {end:g}]", "measure": measure, "value": found, "note": note}


def tasks(mode: Mode) -> list[Task]:
    """Both tasks, because the paper names one in a table and the other in the text."""
    out = [robust(mode, task, radius) for task in ("regression", "classification") for radius in RADII]
    return out if mode == "quick" else [*out, *(at_size(r, name) for name in MOST_AT_SIZE for r in RADII)]


def late_gap(group: Any) -> tuple[float, bool | None]:
    """The slope of one run's gap on the later window, and whether it is -0.9 or steeper, or at rounding before."""
    found = group.dropna(subset="value")["value"]
    if not len(found):
        return math.nan, True if group["note"].iloc[0] else None
    late, state = float(found.iloc[-1]), at_most(float(found.iloc[-1]), LEVEL)
    return late, None if state is False and late < found.iloc[0] - 0.1 else state


def judge_gap(*solvers: str) -> Any:
    """Whether the smallest Frank-Wolfe gap falls with slope -0.9 or steeper on the later window."""

    def judge(table: Any) -> Finding:
        states, shown = dict[str, bool | None](), list[str]()
        rows = select(table, measure="gap slope", solver=list(solvers))
        for (task, radius, name), group in rows.groupby(["problem", "radius", "solver"], sort=False):
            label = f"{task}, r = {radius:g}, {name}"
            late, states[label] = late_gap(group)
            window = group.dropna(subset="value")["variant"]
            measured = f"{number(late)} on {window.iloc[-1]}" if len(window) else group["note"].iloc[0] or "no slope"
            shown.append(f"{measured} ({label})")
        return decided(
            states,
            shown,
            f"slope at most {LEVEL:g}",
            f"flatter than {LEVEL:g}",
            "not measured, too near to tell or still steepening",
        )

    return judge


def with_windows(table: Any, slopes: str = "slope", of: str = "error") -> Any:
    """The table with slopes on more windows: from each of several t to the end of the one that was fitted."""
    import pandas as pd

    out = []
    fitted_ones = select(table, measure=slopes).dropna(subset="value")
    for keys, group in fitted_ones.groupby(["problem", "radius", "solver"], sort=False):
        wanted = dict(zip(("problem", "radius", "solver"), keys, strict=True))
        curve = select(table, measure=of, **wanted).sort_values("t")
        end = max(windows(name)[1] for name in group["variant"])
        for low in MORE_STARTS:
            found = slope(curve["t"].to_numpy(), curve["value"].to_numpy(), low, end) if end >= 3 * low else math.nan
            out.append({**group.iloc[0].to_dict(), "variant": f"[{low:g}, {end:g}]", "value": found})
    more = pd.DataFrame(out, columns=list(table.columns)).dropna(subset="value").astype(table.dtypes)
    return pd.concat([table, more], ignore_index=True) if len(more) else table


def judge_number(table: Any) -> Finding:
    """Whether windows of one task, radius and search attain the paper's slope."""
    return judge_attainable(-1.46, "problem", str)(with_windows(table))


def judge_bound(table: Any) -> Finding:
    """Whether the smallest gap is at most the explicit bound of Theorem 4 at every iteration, in three units of f."""
    worst = select(table, measure="share of the bound").groupby("variant", sort=False)["value"].max()
    states: dict[str, bool | None] = {str(unit): bool(share <= 1) for unit, share in worst.items()}
    shown = [f"{number(float(share))} of the bound ({unit})" for unit, share in worst.items()]
    found = decided(states, shown, "never above the bound", "above the bound")
    note = "the two sides scale differently with the unit of f, because C′ lacks θ"
    return (
        found if found is UNMEASURED else Finding(found.verdict, found.ours, f"{found.reason}; {note}", found.numbers)
    )


def panels(table: Any) -> list[Panel | None]:
    """Figures 1c and 10, and the gap that the theorem bounds."""
    out: list[Panel | None] = []
    drawn = {
        "error": (
            "Figures 1c and 10: bi-weight loss, l₂",
            "f(w) − f* (best found)",
            {"−1": -1.0, "paper: −1.46": -1.46},
        ),
        "smallest gap": ("Theorem 4: bi-weight loss, l₂", "smallest gap so far", {"Theorem 4: −1": -1.0}),
    }
    for measure, (title, ylabel, slopes) in drawn.items():
        rows = select(table, measure=measure)
        for task, part in rows.groupby("problem", sort=False):
            named = part.assign(solver=part["solver"] + ", r = " + part["radius"].map("{:g}".format))
            key = f"{'error' if measure == 'error' else 'gap'}-{task.replace(' ', '-')}"
            out.append(
                error_panel(named, key, f"{title}, {task}, {part['data'].iloc[0]}", slopes=slopes, ylabel=ylabel)
            )
    out += window_panels(table)
    rows = select(table, measure="gap slope")
    if bool((rows["n"] > QUICK_ROWS).any()):
        runs = rows.groupby(["problem", "radius", "solver"], sort=False)
        places = {(f"{task}, r = {r:g}", str(name)): late_gap(group) for (task, r, name), group in runs}
        title = f"Where the gap falls with slope {LEVEL:g} or steeper on the later window"
        axes = {"xlabel": "search", "ylabel": "task and radius (the paper states none)", "note": noted(rows)}
        out.append(state_map("map-gap", title, places, f"At most {LEVEL:g}, and not still steepening", **axes))
        out.append(bound_map(table))
    return out


def window_panels(table: Any) -> list[Panel | None]:
    """Slopes of f - f* and of the smallest gap against the start of the window, to the end of the run or the floor."""
    out: list[Panel | None] = []
    for slopes, of, what, printed in (
        ("slope", "error", "f − f*", -1.46),
        ("gap slope", "smallest gap", "the gap", None),
    ):
        rows = select(with_windows(table, slopes, of), measure=slopes)
        rows = rows.assign(run=rows["solver"] + ", r = " + rows["radius"].map("{:g}".format))
        for task, part in rows.groupby("problem", sort=False):
            key = f"window-{'error' if printed else 'gap'}-{task.replace(' ', '-')}"
            title = f"Slope of {what} against the window's start, bi-weight loss, {task}"
            out.append(window_panel(part, key, title, -1.0, printed, "run"))
    return out


def bound_map(table: Any) -> Panel | None:
    """Where the smallest gap stays below Theorem 4's explicit bound: units of f, tasks and radii."""
    rows = select(table, measure="share of the bound")
    rows = rows.assign(task=rows["problem"] + ", r = " + rows["radius"].map("{:g}".format))
    worst = rows.groupby(["task", "variant"], sort=False)["value"].max()
    places = {(str(task), str(unit)): (float(share), bool(share <= 1)) for (task, unit), share in worst.items()}
    title = "Theorem 4: the largest part of its explicit bound that the smallest gap reaches"
    axes = {"xlabel": "unit of f", "ylabel": "task and radius (the paper states none)", "note": noted(rows)}
    return state_map("map-bound", title, places, "At most 1", **axes)


RATE = (
    "holds where the slope of the smallest gap so far on the later window, from t = 30, is at most −0.9, or where "
    "the gap is at "
    "rounding before; judged for each task, radius and search; within 0.02, or still steepening from t = 10 on, it "
    "is open"
)
EXPERIMENT = Experiment(
    name="non-convex",
    title="Smooth non-convex losses",
    question="How fast does Frank-Wolfe with line search become stationary?",
    paper="Theorem 4, Section 6; Section 7.1, Figure 1c; Appendix B.7, Figure 10",
    method=(
        "Bi-weight loss with scale 1 from the centre, on regression (Figure 1c and the tables) and classification "
        "(Appendix "
        "B.7): the exact search and option B as printed, on f and on h. Regression uses the 7,000 real rows; "
        f"full runs add {MOST_AT_SIZE[FWLS]} iterations of the exact search and {MOST_AT_SIZE[OPTION_B]} of option B "
        "on as many rows as the paper has. The theorem bounds the smallest Frank-Wolfe gap; "
        "the paper plots f − f*. Both are shown, with windows from t = 10 and t = 30 to the end of the run or to "
        "rounding; f* "
        f"is the best found from {STARTS} random starts. On h, ε is {EPSILON:g} f*, and gaps below ε are not judged."
    ),
    tasks=tasks,
    claims=(
        Claim("gap", "The smallest Frank-Wolfe gap falls like 1/t", "≤ −1", "Theorem 4, Section 6", RATE,
              unless_smaller(ADULT_ROWS, judge_gap(FWLS, OPTION_B)), "gap window-gap map-gap"),
        Claim("gap-h", "The same when FWLS runs on h = f + θ⟨ξ, w⟩, down to ε", "≤ −1", "Theorem 4, Section 6", RATE,
              unless_smaller(ADULT_ROWS, judge_gap(ON_H, PRINTED_ON_H)), "gap window-gap map-gap"),
        Claim("bound", "The smallest gap is at most ℓ₁/(t min(1/2, C′)), C′ = αδ√π/(8L√(2d))", "ratio ≤ 1", "Theorem 4",
              f"holds in units of f in which the ratio never exceeds 1, with δ = {DELTA:g}, on f and on h", judge_bound,
              "gap map-bound"),
        Claim("number", "The slope of f − f* is −1.46", "−1.46", "Section 7.1, Figure 1c; Appendix B.7, Figure 10",
              "attainable if the number lies between the slopes of two windows for one task, radius and search; they "
              f"begin at t = {listed(map(str, sorted((*STARTS_AT, *MORE_STARTS))))}, and end with the run or the floor",
              unless_smaller(ADULT_ROWS, judge_number), "error window-error"),
    ),
    panels=panels,
)  # fmt: skip
