"""The convergence rate of Primal Averaging: logistic regression (Figure 5a) and completion (Figures 1a, 5b)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import numpy as np

from projfree import ExactLineSearch, FrankWolfe, Logistic, LpBall, OpenLoop, PrimalAveraging, ShortStep
from reproduction.base import Claim, Experiment, Figure, Finding, Mode, Row, Setting, Task
from reproduction.drawing import label_axes, log_scales, panels, plot_errors, plot_reference
from reproduction.experiments import non_convex, quasi_convex
from reproduction.measure import curve_rows, slope_rows, trace_run
from reproduction.problems import (
    DROPPED,
    EXACT,
    FWPLR,
    ONE_HOT,
    OPTION_B,
    PA,
    SCALED,
    Completion,
    Fit,
    adult,
    certified_minimum,
    least_squares,
    random_point,
    ratings,
)
from reproduction.rules import MINUS_TWO, SLOPE_WORDS, answer, by_group, compare, judge_all, number, select, slope_rule

RADII = (1.0, 3.0, 6.0, 9.0, 12.0)
WINDOWS = ((10, 100), (30, 300), (100, 1000))
MOST, STARTS = 1_000, {"quick": 2, "full": 3}
#: Radii in units of the norm of all ratings; the paper's 12,000 is beyond it.
SHARES, PAPERS_RADIUS = (0.5, 0.9, 1.1), 12_000.0
COMPLETION_WINDOWS, COMPLETION_MOST = ((2, 20), (4, 40), (10, 100), (30, 300)), 300
SQUARES_RHOS, SQUARES_MOST = (0.5, 0.7, 0.9, 1.0), 10_000
SQUARES_WINDOWS = ((10, 100), (100, 1000), (1000, 10_000))


def logistic(mode: Mode, radius: float, encoding: str) -> Task:
    """Adult, l_2, an intercept minimised out: PA from random starts, Frank-Wolfe as long from the first of them."""

    def run() -> Iterator[Row]:
        problem, ball = Fit(Logistic(), adult(mode, encoding)), LpBall(2, radius)
        best = certified_minimum(problem.reference, ball, 1e-11)
        place = {**problem.place, "problem": "logistic", "radius": radius, "encoding": encoding}
        yield {**place, "measure": "minimum", "value": best.value}
        yield {**place, "measure": "gap of the minimum", "value": best.gap}
        runs: list[tuple[str, Any, int]] = [(PA, PrimalAveraging(), seed) for seed in range(STARTS[mode])]
        if encoding == ONE_HOT:
            short = FrankWolfe(ShortStep(problem.reference.smoothness()))
            others = {FWPLR: FrankWolfe(OpenLoop()), EXACT: FrankWolfe(ExactLineSearch()), OPTION_B: short}
            runs += [(name, solver, 0) for name, solver in others.items()]
        floor = max(100 * best.gap, 1e-12 * best.value)
        for name, solver, seed in runs:
            start = random_point(ball, problem.reference.shape, seed)
            t, values, _ = trace_run(
                problem.objective(), ball, solver, MOST, lambda state: problem.value(state.x.w), start, 1.04
            )
            here = {**place, "method": name, "start": seed}
            yield from curve_rows("error", t, values - best.value, **here)
            yield from slope_rows(t, values - best.value, WINDOWS, floor, **here)

    return Task(f"logistic r={radius:g} {encoding}", run)


def completion(mode: Mode, size: Literal["100k", "1m"], share: float) -> Task:
    """Ratings over a Schatten-2 ball; ``share`` is the radius in units of the norm of all ratings, 0 the paper's."""

    def run() -> Iterator[Row]:
        rated, place = ratings(size)
        norm = float(np.linalg.norm(rated.values))
        radius = share * norm if share else PAPERS_RADIUS
        place = {**place, "problem": "completion", "radius": radius, "rho": radius / norm, "method": PA}
        t = np.arange(1, COMPLETION_MOST + 1)
        for seed in range(STARTS[mode]):
            case = Completion(rated, radius, seed)
            values = np.array([case.value(w) for w in islice(case.methods()[PA], COMPLETION_MOST)])
            error = values - case.minimum
            yield from curve_rows("error", t, error, **place, start=seed)
            floor = 1e-13 * float(np.mean(rated.values**2))
            yield from slope_rows(t, error, COMPLETION_WINDOWS, floor, **place, start=seed)

    return Task(f"completion {size} {share or 'r=12000'}", run)


def squares(mode: Mode, rho: float) -> Task:
    """All methods on least squares, where f is strongly convex as the cited rate of FWLS needs."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        ball = problem.ball(2, rho)
        best, t = problem.minimum(ball), np.arange(1, SQUARES_MOST + 1)
        for name in (PA, FWPLR, EXACT, OPTION_B):
            values = np.array([problem.error(w, best) for w in islice(problem.methods(ball)[name], SQUARES_MOST)])
            here = {**problem.place, "problem": "least squares", "rho": rho, "method": name, "start": 0}
            at_rounding = np.flatnonzero(values <= 1e-13 * best.value)
            end = int(at_rounding[0]) + 1 if len(at_rounding) else SQUARES_MOST
            yield {**here, "measure": "iterations to rounding", "value": float(end) if len(at_rounding) else np.inf}
            yield from curve_rows("error", t[:end], np.maximum(values[:end], 1e-300), **here)
            yield from slope_rows(t, values, SQUARES_WINDOWS, 1e-13 * best.value, **here)

    return Task(f"squares rho={rho:g}", run)


def tasks(mode: Mode) -> list[Task]:
    """Return the tasks of all problems; MovieLens 1M in full runs only."""
    out = [logistic(mode, radius, ONE_HOT) for radius in RADII]
    others = (6.0,) if mode == "quick" else (3.0, 6.0)
    out += [logistic(mode, radius, encoding) for encoding in (DROPPED, SCALED) for radius in others]
    sizes: tuple[Literal["100k", "1m"], ...] = ("100k",) if mode == "quick" else ("100k", "1m")
    out += [completion(mode, size, share) for size in sizes for share in (*SHARES, 0.0)]
    return [*out, *(squares(mode, rho) for rho in SQUARES_RHOS)]


def at_logistic(radius: float, encoding: str, window: str = "") -> str:
    """Format the name of a setting of logistic regression."""
    other = "" if encoding == ONE_HOT else f", {encoding}"
    return f"r = {radius:g}{other}" + (f", t in {window}" if window else "")


def judge_logistic(table: Any) -> Finding:
    """Judge the printed slope for each radius, window and encoding."""
    rows = select(table, problem="logistic", method=PA)
    found = by_group(rows, ["radius", "encoding", "window"], slope_rule(-2.34), at_logistic)
    return compare(found, rows)


def at_completion(data: str, radius: float, window: str = "") -> str:
    """Format the name of a setting of completion."""
    return f"{data}, r = {radius:,.0f}" + (f", t in {window}" if window else "")


def judge_completion(table: Any) -> Finding:
    """Judge the printed slope of completion."""
    rows = select(table, problem="completion", method=PA)
    return compare(by_group(rows, ["data", "radius", "window"], slope_rule(-2.41), at_completion), rows)


def minus_two(rows: Any, by: list[str], name: Any) -> list[Setting]:
    """Whether the slope on the last window is -1.9 or steeper, at every setting."""
    out = []
    for key, group in select(rows, measure="slope").groupby(by, sort=False):
        last = max(group["window"], key=lambda w: float(w.strip("[]").split(",")[1]))
        value = float(select(group, window=last)["value"].median())
        holds = None if np.isnan(value) else value <= MINUS_TWO
        out.append(answer(name(*key), value, holds, f"t in {last}"))
    return out


def judge_rate(table: Any) -> Finding:
    """Judge the rate of Theorem 1 on Adult."""
    rows = select(table, problem="logistic", method=PA)
    return judge_all(minus_two(rows, ["radius", "encoding"], at_logistic), rows, "-1.9 or steeper", "flatter")


def judge_completion_rate(table: Any) -> Finding:
    """Judge the rate of Theorem 1 on completion."""
    rows = select(table, problem="completion", method=PA)
    return judge_all(minus_two(rows, ["data", "radius"], at_completion), rows, "-1.9 or steeper", "flatter")


def judge_search_rate(table: Any) -> Finding:
    """Whether Frank-Wolfe with line search is as fast as 1/t², in both readings and on both losses."""
    out, own = [], select(table, method=[EXACT, OPTION_B], problem=["logistic", "least squares"])
    for (problem, name), rows in own.groupby(["problem", "method"], sort=False):
        column, sign = ("radius", "r") if problem == "logistic" else ("rho", "ρ")
        for at, group in rows.groupby(column):
            where = f"{name}, {problem}, {sign} = {at:g}"
            late = select(group, measure="slope").iloc[-1]
            holds = late["value"] <= MINUS_TWO if not np.isnan(late["value"]) else True
            note = f"t in {late['window']}" if not np.isnan(late["value"]) else "at the precision of f* before the end"
            out.append(answer(where, float(late["value"]), bool(holds), note))
    return judge_all(out, own, "as fast as 1/t²", "slower")


def last_errors(table: Any, name: str) -> dict[float, float]:
    """The error of a method at the last iteration by radius, on Adult as the paper would encode it."""
    rows = select(table, problem="logistic", encoding=ONE_HOT, method=name, start=0, measure="error")
    return {float(r): float(g["value"].iloc[-1]) for r, g in rows.groupby("radius")}


def judge_faster(table: Any) -> Finding:
    """The error of plain Frank-Wolfe in units of PA's after the same number of iterations; r = 6 first."""
    ours, theirs = last_errors(table, PA), last_errors(table, FWPLR)
    order = sorted(ours, key=lambda r: (r != 6.0, r))
    out = [answer(f"r = {r:g}", theirs[r] / ours[r], theirs[r] > ours[r]) for r in order if r in theirs]
    first = f"r = 6, t = {MOST:,}: PA {number(ours[6.0])}, FW {number(theirs[6.0])}; " if 6.0 in theirs else ""
    ratios = [s.value for s in out]
    text = first + f"FW's error is {number(min(ratios))} to {number(max(ratios))} times PA's" if out else ""
    return judge_all(
        out, select(table, problem="logistic", encoding=ONE_HOT), "smaller with PA", "not smaller", ours=text
    )


def remarks(table: Any) -> list[str]:
    """Plain Frank-Wolfe reaches -2 as well, where it was tried that long."""
    rows = select(table, problem="least squares", method=FWPLR)
    found = minus_two(rows, ["rho", "method"], lambda rho, _: f"ρ = {rho:g}")
    if not found:
        return []
    each = "; ".join(f"{number(s.value)} at {s.name}" for s in found)
    note = f"Plain Frank-Wolfe has the slope -2 too on squares over l₂ balls, late: {each}, {found[0].note}."
    return [f"{note} This is limited to the sizes tried here; on Adult it does not show within {MOST:,} iterations."]


def draw_1(table: Any) -> Any:
    """Figure 1: PA on completion, and Frank-Wolfe with line search on the two losses that are not convex."""
    figure, (a, b, c) = panels(3)
    completion_panel(a, table, "(a) completion, Schatten-2")
    quasi_convex.panel(b, table, "(b) squared sigmoid, l₂", 0.0)
    non_convex.panel(c, table, "(c) bi-weight, l₂")
    return figure


def completion_panel(axis: Any, table: Any, title: str) -> None:
    """PA on completion from a random start."""
    rows = select(table, experiment="pa_rate", problem="completion", method=PA)
    rows = rows[rows["rho"] < 1.2]
    if len(rows):
        rows = select(rows, data=rows["data"].iloc[-1])
        rows = rows.assign(line="PA, ρ = " + rows["rho"].map("{:.2g}".format))
        plot_errors(axis, rows, "line")
        top = select(rows, line=rows["line"].iloc[-1], start=0)
        plot_reference(axis, top, {"paper: -2.41": -2.41, "Theorem 1: -2": -2.0}, 4.0)
    log_scales(axis)
    label_axes(axis, title, "iteration t", "f(w) - f*")


def logistic_panel(axis: Any, table: Any, radius: float, title: str) -> None:
    """PA and the Frank-Wolfe methods on Adult."""
    rows = select(table, experiment="pa_rate", problem="logistic", encoding=ONE_HOT, radius=radius)
    if len(rows):
        plot_errors(axis, rows, first=(PA,))
        plot_reference(axis, select(rows, method=PA, start=0), {"paper: -2.34": -2.34, "Theorem 1: -2": -2.0})
    log_scales(axis)
    label_axes(axis, title, "iteration t", "f(w) - f*")


def draw_5(table: Any) -> Any:
    """Figure 5: PA on classification and on completion."""
    figure, (a, b) = panels(2, 3.8, 5.2)
    logistic_panel(a, table, 6.0, "(a) classification, Adult, l₂, r = 6")
    completion_panel(b, table, "(b) completion, Schatten-2")
    return figure


def draw_radii(table: Any) -> Any:
    """The same as Figure 5a at the other radii."""
    figure, axes = panels(4, 3.2, 3.9)
    for axis, radius in zip(axes, (1.0, 3.0, 9.0, 12.0), strict=True):
        logistic_panel(axis, table, radius, f"r = {radius:g}")
    return figure


RULE = "holds if the median slope over starts on the last window is -1.9 or steeper at every setting"
EXPERIMENT = Experiment(
    name="pa_rate",
    title="Rate of Primal Averaging",
    method=(
        "f(w_t) - f* from random starts, f* certified (closed form for Schatten-2), 1,000 iterations on Adult and 300 "
        "on completion. A slope is the least-squares fit of log error against log t on a window; there is none where "
        "the error meets the precision of f*. The paper states neither radius, window, start nor encoding: radii, "
        "windows of one decade, starts and three encodings of Adult are varied, and every one of them counts."
    ),
    tasks=tasks,
    claims=(
        Claim("logistic", "Figure 5a", "PA's slope on classification, l₂", "-2.34", SLOPE_WORDS, judge_logistic,
              True, "figure-5", full=True),
        Claim("completion", "Figures 1a, 5b", "PA's slope on completion, Schatten-2", "-2.41", SLOPE_WORDS,
              judge_completion, True, "figure-5", full=True),
        Claim("faster", "Abstract", "PA is faster than Frank-Wolfe with the predefined step", "O(1/t²) against O(1/t)",
              "holds where PA's error after 1,000 iterations on Adult is the smaller one", judge_faster, False,
              "figure-5", full=True),
        Claim("rate", "Theorem 1", "PA's error falls like 1/t² or faster (classification)", "≤ -2", RULE, judge_rate,
              False, "figure-5", full=True),
        Claim("completion-rate", "Theorem 1", "PA's error falls like 1/t² or faster (completion)", "≤ -2", RULE,
              judge_completion_rate, False, "figure-5", full=True),
        Claim("search", "Appendix B.4", "FWLS offers the same convergence rate as PA", "1/t²",
              "holds where the slope on the last window is -1.9 or steeper, or the error meets the precision of f*",
              judge_search_rate, False, "pa-rate-radii", full=True),
    ),
    figures=(
        Figure("figure-1", 1, "Convergence rates: PA on completion, and FW with line search on losses that are not "
               "convex. Dashed: the slopes that the paper prints.", draw_1),
        Figure("figure-5", 5, "PA's convergence rate on classification (with the Frank-Wolfe methods beside it) and on "
               "completion. Dashed: the slopes that the paper prints.", draw_5),
        Figure("pa-rate-radii", 0, "Classification on Adult at the other radii.", draw_radii),
    ),
    reads=("quasi_convex", "non_convex"),
    remarks=remarks,
)  # fmt: skip
