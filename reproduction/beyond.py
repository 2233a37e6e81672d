"""Experiment 11: beyond the paper, what the library adds, on the same axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from projfree.losses import Logistic
from projfree.run import minimize
from projfree.run.result import raise_if_interrupted
from projfree.runtime import single_blas
from projfree.sets import LpBall, SchattenBall
from projfree.solvers import (
    AcceleratedProjectedGradient,
    ConstrainedNewton,
    CorrectivePrimalAveraging,
    FrankWolfe,
    PrimalAveraging,
    plan,
)
from projfree.solvers.base import Solver, State
from projfree.steps import ExactLineSearch, ShortStep
from reproduction.base import Claim, Experiment, Finding, Mode, Origin, Panel, Row, Series, Task, Verdict
from reproduction.counting import OPTION_B
from reproduction.drawing import error_panel, noted
from reproduction.iteration_time import repeats
from reproduction.judging import UNMEASURED, decided, interval, select
from reproduction.measure import follow
from reproduction.problems import Completion, Fit, LeastSquares, certified
from reproduction.sources import adult, dense_block, year
from reproduction.words import ball_name, number, span

#: Relative error at which methods are compared, and the one at which a run ends.
LEVEL, END = 1e-6, 1e-9
#: Errors below this part of the largest, which may be negative, are drawn there.
ROUNDING = 1e-16
SOLVERS: dict[str, Solver] = {
    "PA": PrimalAveraging(),
    "FW exact": FrankWolfe(ExactLineSearch()),
    "corrective PA": CorrectivePrimalAveraging(),
    "accelerated GD": AcceleratedProjectedGradient(),
}
#: Solvers whose runs are repeated; the others are slow, and once is enough to be the best or not.
REPEATED = ("Newton", "auto")
MOST = {"quick": 1_500, "full": 500}
COLOURS = {name: place for place, name in enumerate([*SOLVERS, "Newton", "auto", OPTION_B])}


@cache
def _problem(mode: Mode, kind: str) -> Any:
    return LeastSquares(year(mode)) if kind == "least squares" else Fit(Logistic(), adult(mode))


def raced(mode: Mode, kind: str, p: float, rho: float) -> Task:
    """Every solver on one problem until its error is tiny; ``rho`` is the radius itself for the logistic loss."""

    def run() -> Iterator[Row]:
        problem = _problem(mode, kind)
        if kind == "least squares":
            ball = problem.ball(p, rho)
            best = problem.minimum(ball)
        else:
            ball = LpBall(p, rho)
            best = certified(problem.reference, ball, 1e-12)

        def error(state: State) -> float:
            w = state.x.w
            return float(problem.error(w, best) if kind == "least squares" else problem.value(w) - best.value)

        place = {**problem.place, "problem": kind, "set": ball_name(p), "p": p, "radius": ball.radius, "rho": rho}
        auto = plan(problem.objective(), ball).solver
        printed = {OPTION_B: FrankWolfe(ShortStep(problem.reference.smoothness()))}
        newton = {"Newton": ConstrainedNewton()} if kind == "logistic" else {}
        solvers: dict[str, Solver] = {**SOLVERS, **printed, **newton, "auto": auto}
        for name, solver in solvers.items():
            for seed in range(repeats(mode) if name in REPEATED else 1):
                curve = follow(
                    problem.objective(),
                    ball,
                    solver,
                    error,
                    most=MOST[mode],
                    growth=1.02,
                    until=lambda old, new: new <= END * best.value,
                )
                here = {**place, "solver": name, "note": repr(solver), "seed": seed}
                at = curve.first(curve.value <= LEVEL * best.value)
                end, suffix = (at, "") if at is not None else (-1, " at least")
                yield {**here, "measure": f"time{suffix}", "value": float(curve.seconds[end])}
                if seed == 0:
                    yield from curve.rows("error", **here)
                    yield {**here, "measure": f"passes{suffix}", "value": float(curve.passes[end])}

    return Task(f"race {kind} l_{p:g} {rho:g}", run, (10 if kind == "logistic" else 5) if mode == "quick" else 75)


def certificates(mode: Mode, p: float, rho: float) -> Task:
    """The certified gap and the true error at every iteration."""

    def run() -> Iterator[Row]:
        problem = _problem(mode, "least squares")
        ball = problem.ball(p, rho)
        best = problem.minimum(ball)
        for name in ("PA", "corrective PA"):
            most = 200 if mode == "quick" else 500
            result = minimize(problem.objective(), ball, SOLVERS[name], tol=1e-9, max_iter=most, record=1)
            trace = raise_if_interrupted(result).trace
            known = np.isfinite(trace["value"])
            bound, value = trace["bound"][known], np.minimum.accumulate(trace["value"][known])
            place = {**problem.place, "problem": "certificate", "set": ball_name(p), "p": p, "rho": rho, "solver": name}
            for t, b, v in zip(trace["iteration"][known], bound, value, strict=True):
                if math.isfinite(b):
                    yield {**place, "t": int(t), "measure": "certified gap", "value": float(v - b)}
                    yield {**place, "t": int(t), "measure": "true error", "value": float(v - best.value)}
            rounding = 1e-12 * best.value
            crossed = float(np.max(bound[np.isfinite(bound)] - best.value))
            yield {**place, "measure": "bound above minimum", "value": max(0.0, crossed - rounding)}

    return Task(f"certificates l_{p:g} rho={rho:g}", run, 1 if mode == "quick" else 38)


def vertices(mode: Mode) -> Task:
    """How many vertices the solution is made of: entries on the l_1 ball, the rank on the nuclear ball."""

    def run() -> Iterator[Row]:
        squares = _problem(mode, "least squares")
        ratings = Completion(*dense_block("100k", 120, 160))
        ball = SchattenBall(1, 0.3 * SchattenBall(1, 1.0).norm(ratings.observed))
        cases: list[tuple[Any, ...]] = [
            (squares.form, squares.ball(1.0, 0.5), "l₁", squares.place, np.count_nonzero, 300),
            (ratings.objective(), ball, "Schatten-1", ratings.place, _rank, 40),
        ]
        for f, C, kind, place, count, most in cases:
            for name in ("PA", "FW exact", "corrective PA"):
                with single_blas():
                    curve = follow(f, C, SOLVERS[name], partial(_counted, count), most=most, growth=1.1)
                here = {**place, "problem": "vertices", "set": kind, "solver": name}
                yield from curve.rows("vertices", **here)

    return Task("vertices", run, 1)


def _counted(count: Any, state: Any) -> float:
    return float(count(np.asarray(state.x.w)))


def _rank(W: Any) -> int:
    return int(np.linalg.matrix_rank(W, tol=1e-10 * np.linalg.norm(W)))


def tasks(mode: Mode) -> list[Task]:
    """Races, certificates, vertices."""
    races = [raced(mode, "least squares", p, 0.9) for p in (2.0, 1.1)] + [raced(mode, "logistic", 2.0, 6.0)]
    return [*races, certificates(mode, 2.0, 0.9), certificates(mode, 1.1, 0.9), vertices(mode)]


def _cost(rows: Any, name: str, measure: str) -> tuple[float, bool]:
    found = select(rows, solver=name, measure=[measure, f"{measure} at least"])
    if not len(found):
        return math.nan, False
    return float(found["value"].median()), bool((found["measure"] == measure).all())


def judge_corrective(table: Any) -> Finding:
    """Whether corrective PA needs fewer passes than PA to 1e-6."""
    states, shown = dict[str, bool | None](), list[str]()
    for (kind, ball), rows in select(table, problem=["least squares", "logistic"]).groupby(
        ["problem", "set"], sort=False
    ):
        (slow, slow_done), (fast, fast_done) = (_cost(rows, name, "passes") for name in ("PA", "corrective PA"))
        if fast_done and not math.isnan(slow):
            states[f"{kind}, {ball}"] = True if slow > fast else False if slow_done else None
            shown.append(f"{'' if slow_done else '≥ '}{number(slow / fast, 1)}× on {kind}, {ball}")
        elif not math.isnan(fast):
            states[f"{kind}, {ball}"] = None
            shown.append(f"corrective PA did not get there on {kind}, {ball}")
    return decided(
        states, shown, f"fewer passes to a relative error of {LEVEL:g}", "no fewer", "not known, as runs ended before,"
    )


def judge_auto(table: Any) -> Finding:
    """Whether the automatic choice is at most twice as slow as the best solver that was run by hand."""
    states, shown = dict[str, bool | None](), list[str]()
    for (kind, ball), rows in select(table, problem=["least squares", "logistic"]).groupby(
        ["problem", "set"], sort=False
    ):
        auto, done = _cost(rows, "auto", "time")
        others = [t for name in COLOURS if name != "auto" for t, ok in [_cost(rows, name, "time")] if ok]
        if not others or math.isnan(auto):
            states[f"{kind}, {ball}"] = None
            shown.append(f"no run got to {LEVEL:g} on {kind}, {ball}")
            continue
        each = select(rows, solver="auto", measure=["time", "time at least"])["value"].to_numpy() / min(others)
        ratio, chosen = auto / min(others), select(rows, solver="auto")["note"].iloc[0]
        states[f"{kind}, {ball}"] = None if abs(ratio / 2 - 1) < 0.1 else bool(done and ratio <= 2)
        shown.append(f"{chosen} {'' if done else '≥ '}{interval(each, 2.0)} of the best on {kind}, {ball}")
    return decided(states, shown, "within twice the best time", "slower than that")


def judge_certificates(table: Any) -> Finding:
    """Whether no bound lies above the minimum; and how loose the gap is."""
    rows = select(table, measure="bound above minimum")
    if not len(rows):
        return UNMEASURED
    worst = float(rows["value"].max())
    loose = []
    for _, group in select(table, problem="certificate").groupby(["set", "solver"]):
        gap, error = (select(group, measure=m).set_index("t")["value"] for m in ("certified gap", "true error"))
        ratio = (gap / error)[error > 1e-9]
        loose += [float(ratio.median())] if len(ratio) else []
    looseness = f"the certified gap is {span(loose, digits=1)} times the error (medians)" if loose else "no gaps"
    verdict = Verdict.HOLDS if worst <= 0 else Verdict.FAILS
    return Finding(verdict, "no crossing" if worst <= 0 else f"crossed by {number(worst)}", looseness)


def judge_vertices(table: Any) -> Finding:
    """Whether the iterate after t steps is made of at most t + 1 vertices."""
    rows = select(table, measure="vertices")
    if not len(rows):
        return UNMEASURED
    ends = rows[rows["t"] == rows.groupby(["set", "solver"])["t"].transform("max")]
    shown = "; ".join(
        f"{v:.0f} at t = {t:.0f} ({s}, {c})"
        for v, t, s, c in zip(ends["value"], ends["t"], ends["solver"], ends["set"], strict=True)
    )
    fine = bool((rows["value"] <= rows["t"] + 1).all())
    return Finding(
        Verdict.HOLDS if fine else Verdict.FAILS, shown, "never more than t + 1" if fine else "more than t + 1"
    )


def panels(table: Any) -> list[Panel | None]:
    """Races against passes and time, certificates against true errors, vertices against t."""
    out: list[Panel | None] = []
    for (kind, ball), rows in select(table, measure="error").groupby(["problem", "set"], sort=False):
        rows = rows.assign(value=rows["value"].clip(lower=ROUNDING * rows["value"].max()))  # a logarithm needs it
        where = f"{kind}, {ball}, {'ρ' if kind == 'least squares' else 'r'} = {rows['rho'].iloc[0]:g}"
        for x in ("passes", "seconds"):
            key = f"race-{kind.replace(' ', '-')}-{ball}-{x}"
            slopes = {"−2": -2.0} if x == "passes" else None
            out.append(error_panel(rows, key, f"Error against {x}: {where}", x, slopes, colours=COLOURS))
    for ball, rows in select(table, problem="certificate", measure=["certified gap", "true error"]).groupby("set"):
        named = rows.copy()
        named["solver"] = rows["solver"] + ", " + rows["measure"]
        title = f"Certified gap and true error, {ball}, ρ = 0.9"
        out.append(error_panel(named, f"certificate-{ball}", title, slopes={"−2": -2.0}, ylabel="certified gap, error"))
    for ball, rows in select(table, measure="vertices").groupby("set"):
        series = [
            Series(str(n), g["t"].to_numpy(), g["value"].to_numpy()) for n, g in rows.groupby("solver", sort=False)
        ]
        ends = ", ".join(f"{s.name} {s.y[-1]:.0f}" for s in series)
        t = np.unique(rows["t"])
        series.append(Series("t + 1", t, t + 1.0, style="reference", colour=6))
        title = f"Vertices in the solution, {ball} ball"
        alt = f"{title}, against t; in the end {ends}."
        out.append(Panel(f"vertices-{ball}", title, "iteration t", "vertices", series, alt=alt, note=noted(rows)))
    return out


EXPERIMENT = Experiment(
    name="beyond",
    title="Beyond the paper",
    question="How far do corrective steps, exact and Newton solvers and the automatic choice go?",
    paper="Section 1; else not in the paper",
    method=(
        "The same problems and clock as above. Errors are measured apart from the run; the race ends at a relative "
        f"error of {END:g} and is judged at {LEVEL:g}; errors at rounding are drawn at {ROUNDING:g} of "
        "the first. Certificates are those of minimize, at every iteration. "
        "Vertices are counted where they can be: entries on the l₁ ball, rank on the nuclear ball."
    ),
    tasks=tasks,
    claims=(
        Claim("vertices", "After t iterations the solution is made of at most t + 1 vertices", "≤ t + 1", "Section 1",
              "holds if the count never exceeds t + 1 (the start included)", judge_vertices, "vertices"),
        Claim("corrective", "Corrective PA needs fewer passes than PA", "fewer", "not in the paper",
              f"holds on problems where its passes to a relative error of {LEVEL:g} are fewer", judge_corrective,
              "race",
              Origin.OURS),
        Claim("auto", "The automatic choice is near the best", "≤ 2×", "not in the paper",
              "holds on problems where its median time is at most twice that of the best solver run by hand; within "
              "10 % of "
              "that it is open", judge_auto, "race", Origin.OURS, True),
        Claim("certificates", "No certified bound exceeds the minimum", "never", "not in the paper",
              "holds if no bound of any iteration exceeds the exact minimum by more than rounding (1e-12 relative)",
              judge_certificates, "certificate", Origin.OURS),
    ),
    panels=panels,
)  # fmt: skip
