"""Experiment 1: how fast the error of Primal Averaging falls with the number of iterations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from projfree.losses import Logistic
from projfree.sets import LpBall, SchattenBall, random_point
from projfree.solvers import FrankWolfe, PrimalAveraging
from projfree.solvers.base import Solver
from projfree.steps import ExactLineSearch, OpenLoop, ShortStep
from reproduction.base import Claim, Experiment, Finding, Mode, Origin, Panel, Row, Task
from reproduction.counting import FWLS, FWPLR, OPTION_B, PA, OnGram, random_entries
from reproduction.drawing import error_panel, map_panel, window_panel
from reproduction.iteration_time import PAPERS_ROWS, least_squares
from reproduction.judging import (
    SLOPE_MARGIN,
    at_most,
    decided,
    judge_attainable,
    judge_rate,
    radius_label,
    rho_label,
    select,
    unless_smaller,
    windows,
)
from reproduction.measure import Curve, follow, slope_rows
from reproduction.problems import Completion, Fit, by_projection, certified
from reproduction.sources import ADULT_ROWS, RATINGS, adult, dense_block, ratings
from reproduction.words import number

#: The theorem says -2; a fitted slope that is at most this counts as -2.
LEVEL = -1.9
RADII = (1.0, 3.0, 6.0, 9.0, 12.0)
#: The runs that the paper's slopes on logistic regression and on completion are compared with.
LOGISTIC, COMPLETION = {"problem": "logistic", "solver": PA}, {"problem": "completion", "p": 2.0}
WINDOWS = {
    "quick": ((3, 30), (10, 100), (30, 300), (10, 600), (60, 600)),
    "full": ((3, 30), (10, 100), (30, 300), (10, 600), (60, 600), (100, 1000)),
}
#: Where the error of the exact search falls faster than any power the slopes end, at rounding.
GRAM_WINDOWS = ((10, 100), (100, 1000), (1000, 10000))
GRAM_RHOS = (0.5, 0.7, 0.9, 1.0)


def repeated(mode: Mode) -> int:
    """Random starts of each run."""
    return 2 if mode == "quick" else 3


@cache
def _logistic(mode: Mode) -> Fit:
    return Fit(Logistic(), adult(mode))


def logistic(mode: Mode, radius: float) -> Task:
    """Adult, l_2, from random starts: PA, and the Frank-Wolfe methods from the first start."""

    def run() -> Iterator[Row]:
        problem, ball = _logistic(mode), LpBall(2, radius)
        best = certified(problem.reference, ball, 1e-11)
        place = {**problem.place, "problem": "logistic", "set": "l₂", "p": 2.0, "radius": radius}
        yield {**place, "measure": "minimum gap", "value": best.gap / best.value}
        short = FrankWolfe(ShortStep(problem.reference.smoothness()))
        others: dict[str, Solver] = {
            FWPLR: FrankWolfe(OpenLoop()),
            FWLS: FrankWolfe(ExactLineSearch()),
            OPTION_B: short,
        }
        runs = [(PA, PrimalAveraging(), seed) for seed in range(repeated(mode))]
        floor = max(100 * best.gap, 1e-12 * best.value)
        for name, solver, seed in [*runs, *((name, solver, 0) for name, solver in others.items())]:
            curve = follow(
                problem.objective(),
                ball,
                solver,
                lambda state: problem.value(state.x.w),
                most=WINDOWS[mode][-1][1] if name == PA else 300,
                start=random_point(ball, problem.reference.shape, np.random.default_rng(seed)),
                growth=1.05,
            )
            here = {**place, "solver": name, "seed": seed}
            yield from curve.rows("error", best.value, **here)
            fitted = [w for w in WINDOWS[mode] if w[1] <= curve.t[-1]]
            yield from slope_rows(curve, curve.value - best.value, fitted, floor, **here)

    return Task(f"logistic l_2 r={radius:g}", run, 6.5 if mode == "quick" else 110)


def completion(mode: Mode, size: Any, share: float) -> Task:
    """Ratings over a Schatten-2 ball, from random starts; ``share`` is the radius in units of the observed norm."""

    def run() -> Iterator[Row]:
        problem = Completion(*ratings(size))
        radius = 12_000.0 if share == math.inf else share * problem.norm
        place = {**problem.place, "problem": "completion", "set": "Schatten-2", "p": 2.0, "radius": radius}
        place |= {"rho": radius / problem.norm, "solver": PA}
        # The paper does not say where it started: at zero, and at random matrices with half of the radius as norm.
        for seed, start in enumerate([0.0, *(repeated(mode) * [0.5])]):
            case = random_entries(problem.y, problem.at.shape, radius, seed, start)
            most = 100 if mode == "quick" else 300
            values = np.array([case.value(w) for _, w in zip(range(most), case.variants()[PA], strict=False)])
            t = np.arange(1, most + 1)
            curve = Curve(t, np.zeros(most), t.astype(float), values)
            yield from curve.rows("error", case.minimum, **place, seed=seed)
            fitted = [(1, 10), (2, 20), (4, 40), (10, 100), *(() if mode == "quick" else ((30, 300),))]
            floor = 1e-13 * float(np.mean(problem.y**2))
            yield from slope_rows(curve, values - case.minimum, fitted, floor, **place, seed=seed)

    label = "r=12000" if share == math.inf else f"rho={share:g}"
    return Task(f"completion {size} Schatten-2 {label}", run, 0.5 if mode == "quick" or size == "100k" else 16)


def schatten(mode: Mode, p: float, share: float) -> Task:
    """Ratings over a Schatten-p ball whose oracle needs the spectrum."""

    def run() -> Iterator[Row]:
        problem = Completion(*(dense_block("100k", 200, 300) if mode == "quick" else ratings("100k")))
        unit = SchattenBall(p, 1.0).norm(problem.observed)
        ball, f = SchattenBall(p, share * unit), problem.objective()
        best = by_projection(f, ball, 120)
        place = {**problem.place, "problem": "completion", "set": f"Schatten-{p:g}", "p": p, "radius": ball.radius}
        most = 100 if mode == "quick" else 300
        curve = follow(
            f,
            ball,
            PrimalAveraging(),
            lambda state: problem.value(state.x.w),
            most=most,
            start=problem.random_start(ball, 0),
        )
        here = {**place, "rho": share, "solver": PA, "seed": 0}
        yield from curve.rows("error", best.value, **here)
        floor = max(100 * best.gap, 1e-12 * float(np.mean(problem.y**2)))
        fitted = [(4, 40), (10, 100), *(() if mode == "quick" else ((30, 300),))]
        yield from slope_rows(curve, curve.value - best.value, fitted, floor, **here)

    return Task(f"completion Schatten-{p:g} rho={share:g}", run, 3 if mode == "quick" else 790)


def searches(mode: Mode, rho: float) -> Task:
    """FWLS in both readings and PA on least squares, where f is strongly convex as the cited rate of FWLS needs."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        case = OnGram(problem, rho)
        place = {**problem.place, "problem": "least squares", "set": "l₂", "p": 2.0, "radius": case.ball.radius}
        most = 1_000 if mode == "quick" else 10_000
        for name, iterates in case.variants().items():
            values = np.array([problem.error(w, case.best) for _, w in zip(range(most), iterates, strict=False)])
            ended = np.flatnonzero(values <= 1e-13 * case.best.value)  # rounding, or the exact minimiser
            end = int(ended[0]) if len(ended) else most
            curve = Curve(np.arange(1, end + 1), np.zeros(end), np.arange(1.0, end + 1), values[:end])
            here = {**place, "rho": rho, "solver": name, "seed": 0}
            yield from curve.rows("error", **here)
            yield {**here, "measure": "iterations to rounding", "value": float(end) if len(ended) else math.inf}
            yield from slope_rows(curve, curve.value, [w for w in GRAM_WINDOWS if w[1] <= most], 0.0, **here)

    return Task(f"searches rho={rho:g}", run, 0.2 if mode == "quick" else 3)


def tasks(mode: Mode) -> list[Task]:
    """All problems; MovieLens 1M in full runs only."""
    out = [logistic(mode, radius) for radius in RADII]
    for size in ("100k",) if mode == "quick" else ("100k", "1m"):
        out += [completion(mode, size, share) for share in (math.inf, 0.5, 0.9, 1.1)]
    return [*out, schatten(mode, 1.5, 0.5), *(searches(mode, rho) for rho in GRAM_RHOS)]


def judge_search_rate(table: Any) -> Finding:
    """Whether FWLS reaches a slope of -1.9 or rounding, at each radius and in both readings."""
    states, shown = dict[str, bool | None](), list[str]()
    own = select(table, problem="least squares", solver=[FWLS, OPTION_B])
    for (name, rho), group in own.groupby(["solver", "rho"], sort=False):
        ended = float(select(group, measure="iterations to rounding")["value"].min())
        found = select(group, measure="slope").dropna(subset="value")
        label = f"{name}, ρ = {rho:g}"
        means = {w: float(g["value"].mean()) for w, g in found.groupby("variant")}
        order = sorted(means, key=lambda w: windows(w)[1])
        if math.isfinite(ended):
            states[label] = True
            shown.append(f"at rounding after {ended:.0f} iterations ({label})")
        elif order:
            states[label] = at_most(means[order[-1]], LEVEL)
            if states[label] is False and len(order) > 1 and means[order[-1]] < means[order[-2]] - 0.1:
                states[label] = None
            shown.append(f"{number(means[order[-1]])} on {order[-1]} ({label})")
        else:
            states[label] = None
            shown.append(f"no slope ({label})")
    open_ = "not measured, too near to tell, or still steepening"
    return decided(states, shown, "at least as fast as 1/t²", f"flatter than {LEVEL:g}", open_)


def rate_rule(rows: int, **wanted: Any) -> Callable[[Any], Finding]:
    """Whether PA's slope is -2 at each radius, on data as large as the paper's."""
    return unless_smaller(rows, judge_rate(LEVEL, "radius", radius_label, **wanted), **wanted)


def number_rule(paper: float, rows: int, **wanted: Any) -> Callable[[Any], Finding]:
    """Whether a single slope is attainable on data as large as the paper's."""
    return unless_smaller(rows, judge_attainable(paper, "radius", radius_label, **wanted), **wanted)


def judge_own_rate(table: Any) -> Finding:
    """Whether FWPLR reaches the slope of PA too, which the paper does not deny."""
    return judge_rate(LEVEL, "rho", rho_label, problem="least squares", solver=FWPLR)(table)


def panels(table: Any) -> list[Panel | None]:
    """The paper's rate plots with its slopes drawn in, the slope against the window, and the map of where it holds."""
    out: list[Panel | None] = []
    errors = select(table, measure="error")
    for radius, rows in select(errors, problem="logistic").groupby("radius"):
        title = f"Figure 5a: logistic loss, {rows['data'].iloc[0]}, l₂, r = {radius:g}"
        slopes = {"Theorem 1: −2": -2.0, "paper: −2.34": -2.34}
        out.append(error_panel(rows, f"logistic-{radius:g}", title, slopes=slopes))
    title = "Slope of PA against the window's start, logistic, l₂ (the paper names neither radius nor window)"
    out.append(window_panel(select(table, measure="slope", **LOGISTIC), "window-logistic", title, -2.0, -2.34))
    rows = select(errors, problem="completion", p=2.0)
    rows = rows[rows["seed"] > 0].copy()  # from zero the first vertex is the minimiser of a radius below the norm
    if len(rows):
        rows["solver"] = "r = " + rows["radius"].map("{:,.0f}".format) + ", " + rows["data"]
        title = "Figures 1a and 5b: PA on matrix completion, Schatten-2, from random starts"
        out.append(error_panel(rows, "completion-2", title, slopes={"Theorem 1: −2": -2.0, "paper: −2.41": -2.41}))
    title = "Slope of PA against the window's start, completion, Schatten-2"
    out.append(window_panel(select(table, measure="slope", **COMPLETION), "window-completion", title, -2.0, -2.41))
    rows = select(errors, problem="completion", p=1.5)
    if len(rows):
        title = f"PA on matrix completion, Schatten-1.5, {rows['data'].iloc[0]}"
        out.append(error_panel(rows, "completion-1.5", title, slopes={"Theorem 1: −2": -2.0}))
    for rho, rows in select(errors, problem="least squares").groupby("rho"):
        title = f"PA and the Frank-Wolfe methods, least squares, {rows['data'].iloc[0]}, l₂, ρ = {rho:g}"
        out.append(error_panel(rows, f"searches-{rho:g}", title, slopes={"−2": -2.0, "−1": -1.0}))
    if bool((select(table, problem="logistic")["n"] > 10_000).any()):
        rows = select(table, measure="slope", **LOGISTIC).dropna(subset="value")
        axes: dict[str, Any] = {"at_most": True, "margin": SLOPE_MARGIN}
        axes |= {"xlabel": "window (the paper states none)", "ylabel": "radius (the paper states none)"}
        more = select(table, measure="slope", **COMPLETION).dropna(subset="value")
        more = more.sort_values(["data", "radius"], kind="stable")  # one radius on two data sets is two places
        size = " (" + more["data"].str.removeprefix("MovieLens ") + ")"
        more = more.assign(place=more["radius"].map("{:,.0f}".format) + size)
        title = "Where PA's slope, the median over starts, is at most "
        out.append(map_panel("map-completion", f"{title}−2.41", more, "variant", "place", -2.41, **axes))
        out.append(map_panel("map-logistic", f"{title}−2.34", rows, "variant", "radius", -2.34, **axes))
    return out


RULE = (
    "holds where the mean slope over seeds on the last window is at most −1.9, judged at each radius; within 0.02 "
    "of it, or "
    "where the slope is flatter but still steepens from window to window, the radius is open"
)
NUMBER = (
    "attainable if the number lies between the slopes that windows and seeds give at one radius on one data set; a "
    "single run is enough, as the paper shows one, and the places that the median over runs reaches are counted "
    "beside it"
)
EXPERIMENT = Experiment(
    name="rates",
    title="Convergence rate of Primal Averaging",
    question="Does the error of PA fall like 1/t² on strongly convex sets?",
    paper="Section 7.1, Figure 1a; Appendix B.3, Figure 5; Theorem 1",
    method=(
        "f(w_t) − f* from random starts, f* from a certified solve (closed form for Schatten-2), for a fixed number of "
        "iterations. Slopes are least-squares fits of log error against log t on the windows named, at places thinned "
        "to equal weight, above 100 times the uncertainty of f*; mean and standard deviation over seeds. The paper "
        "names neither radii nor windows; ours were settled with results in view, so a number that is attainable is "
        "one "
        "that some radius and window gives, no prediction. Option B as printed and the exact search run beside PA."
    ),
    tasks=tasks,
    claims=(
        Claim("logistic-theorem", "PA's error falls with slope −2 or steeper on a log-log plot (logistic, l₂, Adult)",
              "≤ −2", "Theorem 1; Appendix B.3", RULE,
              rate_rule(ADULT_ROWS, **LOGISTIC), "window-logistic logistic"),
        Claim("logistic-number", "The slope is −2.34 (logistic, l₂, Adult)", "−2.34", "Appendix B.3, Figure 5a", NUMBER,
              number_rule(-2.34, ADULT_ROWS, **LOGISTIC),
              "window-logistic map-logistic"),
        Claim("completion-theorem", "PA's error falls with slope −2 or steeper (completion, Schatten-2)", "≤ −2",
              "Theorem 1; Section 7.1", RULE,
              rate_rule(RATINGS, **COMPLETION, solver=PA),
              "completion-2 window-completion"),
        Claim("completion-number", "The slope is −2.41 (matrix completion, Schatten-2)", "−2.41",
              "Section 7.1, Figure 1a; Appendix B.3, Figure 5b", NUMBER,
              number_rule(-2.41, RATINGS, **COMPLETION),
              "window-completion map-completion"),
        Claim("schatten-1.5", "The same rate holds on Schatten-p balls, 1 < p ≤ 2 (here 1.5, which is not degenerate)",
              "≤ −2", "Theorem 1; Section 3.1", RULE,
              rate_rule(RATINGS, problem="completion", p=1.5), "completion-1.5"),
        Claim("fwls-rate", "FWLS offers the same convergence rate as PA", "1/t²", "Appendix B.4",
              "holds at radii and in readings of FWLS (the exact search, option B as printed) where the slope on "
              "the last "
              "window is at most −1.9 or the error is at rounding before it; within 0.02, or still steepening, it is "
              "open", unless_smaller(PAPERS_ROWS, judge_search_rate, problem="least squares"), "searches"),
        Claim("fwplr-rate", "Plain Frank-Wolfe with step 2/(t+1) reaches the slope −2 too: 1/t is only its upper bound",
              "≤ −1.9", "after Table 1", RULE, judge_own_rate, "searches", Origin.OURS),
    ),
    panels=panels,
)  # fmt: skip
