"""Experiment 5, second part: the rate of stochastic Primal Averaging, judged by log t / t² while its sample grows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from reproduction.base import Claim, Experiment, Finding, Mode, Origin, Panel, Row, Series, Task, Verdict
from reproduction.drawing import curves, described, noted, state_map, window_panel
from reproduction.iteration_time import least_squares
from reproduction.judging import at_most, decided, select
from reproduction.measure import Curve, slope
from reproduction.problems import LeastSquares
from reproduction.sources import QUICK_ROWS
from reproduction.stochastic import SampledRows, sampled
from reproduction.words import listed

RHOS = (0.05, 0.1, 0.3, 0.9)
#: t of the last iteration on the stream: it takes 30^4 = 810,000 fresh rows.
LAST = 30
PUBLISHED, SQUARES = "SPA as published (B, t⁴ rows)", "SPA, averaged gradients (A, t² rows)"
#: A window from t = 10 that ends before this decides nothing.
SHORTEST = 16
#: Where windows begin in the figure of slopes.
STARTS = (2, 3, 4, 5, 7, 10, 14, 20)
#: The accuracy asked for in runs on h, in units of f*.
EPSILON = 1e-3


class Stream:
    """Fresh rows without end: x Gaussian with the covariance of the sample, y its best linear prediction plus noise.

    The sum of the gradients of m fresh rows is drawn from its exact distribution, given by 2 m numbers and one Gaussian
    vector: with r the residuals, it is a multiple of the covariance times w - w0, plus ||r|| times a Gaussian vector
    that is independent of the predictions.
    """

    def __init__(self, problem: LeastSquares) -> None:
        self.S, self.w0 = problem.form.H / 2, problem.unconstrained
        self.noise = math.sqrt(problem.form(problem.form.point(self.w0)))
        values, vectors = problem.spectrum
        self.root = vectors * np.sqrt(np.maximum(values, 0.0) / 2)

    def gradient(self, w: Array, m: int, rng: np.random.Generator) -> Array:
        """The mean gradient of m rows that nobody has seen before."""
        delta = w - self.w0
        a = self.S @ delta
        q = float(delta @ a)
        predicted = math.sqrt(q) * rng.standard_normal(m)
        r = predicted - self.noise * rng.standard_normal(m)
        u = self.root @ rng.standard_normal(len(w))
        u -= a * (float(delta @ u) / q)
        return np.asarray(2.0 / m * (a * (float(r @ predicted) / q) + math.sqrt(float(r @ r)) * u))


def averaged(gradient: Callable[[int, Array], Array], oracle: paper.Map, v: Array) -> Iterator[Array]:
    """PA with averaged gradients (option A), where ``gradient(t, z)`` draws the rows of iteration t."""
    t = iter(range(1, 1_000_000))
    return paper.primal_averaging(lambda z: gradient(next(t), z), oracle, v, paper.Averaged())


def stream(mode: Mode, rho: float) -> Task:
    """Many seeds of both methods, on f and (the published one) on h."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        rows, ball = Stream(problem), problem.ball(2, rho)
        best, oracle = problem.minimum(ball), paper.lp_oracle(2, ball.radius)
        place = {"problem": "stream", "data": "generated stream", "stand_in": True, "rho": rho, "radius": ball.radius}
        zero, theta = np.zeros(len(best.w)), paper.largest_theta(EPSILON * best.value, ball.diameter(best.w.shape))
        for seed in range(6 if mode == "quick" else 40):
            rng, xi = (
                np.random.default_rng(seed),
                paper.on_the_sphere(best.w.shape, np.random.default_rng(10_000 + seed)),
            )

            def fourth(z: Array, S: Array, rng: np.random.Generator = rng) -> Array:
                return rows.gradient(z, len(S), rng)

            def tilted(z: Array, S: Array, rng: np.random.Generator = rng, xi: Array = xi) -> Array:
                return rows.gradient(z, len(S), rng) + theta * xi

            def square(t: int, z: Array, rng: np.random.Generator = rng) -> Array:
                return rows.gradient(z, t * t, rng)

            sizes = lambda t, size: np.empty(size, dtype=np.int8)  # noqa: E731 - only its length counts
            methods = {
                (PUBLISHED, "f"): paper.stochastic_primal_averaging(fourth, 10**9, oracle, zero, sizes),
                (PUBLISHED, "h"): paper.stochastic_primal_averaging(tilted, 10**9, oracle, zero, sizes),
                (SQUARES, "f"): averaged(square, oracle, zero),
            }
            for (name, what), iterates in methods.items():
                errors = np.array([problem.error(w, best) for w in islice(iterates, LAST)])
                yield from _rows(errors, best.value, {**place, "solver": name, "note": what, "seed": seed})

    return Task(f"stream rho={rho:g}", run, 2 if mode == "quick" else 12)


def sample(mode: Mode, rho: float) -> Task:
    """The published method on the rows themselves, until the sample is all of them."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        rows, ball = SampledRows(problem), problem.ball(2, rho)
        best, end = problem.minimum(ball), math.ceil(rows.n**0.25) - 1
        place = {**problem.place, "problem": "sample", "rho": rho, "radius": ball.radius, "note": "f"}
        for seed in range(5):
            errors = np.array([problem.error(w, best) for w in islice(sampled(rows, problem, ball, seed), end)])
            yield from _rows(errors, best.value, {**place, "solver": PUBLISHED, "seed": seed})

    return Task(f"sample rho={rho:g}", run, 0.1 if mode == "quick" else 8)


def _rows(errors: Array, unit: float, place: dict[str, Any]) -> Iterator[Row]:
    t = np.arange(1, len(errors) + 1)
    yield from Curve(t, np.zeros(len(t)), t.astype(float), errors).rows("error", **place)
    yield {**place, "measure": "unit", "value": unit}


def tasks(mode: Mode) -> list[Task]:
    """The stream and the sample at four radii."""
    return [make(mode, rho) for make in (stream, sample) for rho in RHOS]


def excess(rows: Any, low: float, high: float) -> float:
    """The slope of the mean error over seeds on a window, minus that of log t / t² there."""
    mean = rows.groupby("t")["value"].mean()
    t = mean.index.to_numpy(dtype=float)
    return slope(t, mean.to_numpy(), low, high) - slope(t, np.log(t) / t**2, low, high)


def last_judged(table: Any, rows: Any, problem: str, what: str, rho: float) -> float:
    """The last t of a run; on h the last before the mean error falls below epsilon, where the theorem is silent."""
    if what != "h":
        return float(rows["t"].max())
    unit = float(select(table, measure="unit", rho=rho, problem=problem)["value"].iloc[0])
    mean = rows.groupby("t")["value"].mean()
    return float(max([0, *mean.index[(mean > EPSILON * unit).cummin()]]))


def against_the_law(rows: Any, last: float) -> tuple[float, bool | None]:
    """The slope minus that of log t / t² on the late window, and whether it is no flatter; None while it steepens."""
    late = excess(rows, 10, last) if last >= SHORTEST else math.nan
    state = at_most(late, 0.0)
    return late, None if state is False and late < excess(rows, 3, 10) - 0.1 else state


def judge_stream(problem: str, solver: str, what: str = "f") -> Any:
    """Whether the mean error falls at least as fast as log t / t² on the last window, at each radius."""

    def judge(table: Any) -> Finding:
        states, shown = dict[str, bool | None](), list[str]()
        rows = select(table, measure="error", problem=problem, solver=solver, note=what)
        for rho, group in rows.groupby("rho"):
            label, last = f"ρ = {rho:g}", last_judged(table, group, problem, what, float(rho))
            late, states[label] = against_the_law(group, last)
            if not math.isnan(late):
                shown.append(f"{late:+.2f} on [10, {last:.0f}] at {label} ({group['seed'].nunique()} seeds)")
        tooshort = "the window [10, N^(1/4)) is too short, or the slope is too near or still steepening,"
        found = decided(states, shown, "no flatter than log t/t²", "flatter than log t/t²", tooshort)
        if problem == "sample" and not shown and len(rows):
            n = int(rows["n"].max())
            reason = f"at {n:,} rows the sample stops growing at t = {math.ceil(n**0.25)}, before a slope can be fitted"
            return Finding(Verdict.OPEN, f"no slope at {n:,} rows", f"{reason}; {listed(states)} are not decided")
        return found

    return judge


def panels(table: Any) -> list[Panel | None]:
    """Mean errors with their band over seeds, and log t / t² beside them."""
    out: list[Panel | None] = []
    for (problem, rho), rows in select(table, measure="error").groupby(["problem", "rho"], sort=False):
        named = rows.assign(solver=rows["solver"] + np.where(rows["note"] == "h", ", on h", ""))
        lines = curves(named)
        t = np.arange(3.0, float(rows["t"].max()) + 1)
        first = lines[0].y[2] if len(lines[0].y) > 2 else 1.0
        law = np.log(t) / t**2
        lines.append(Series("log t / t² (Theorem 2)", t, 1.5 * first * law / law[0], style="reference", colour=6))
        title = f"Theorem 2: stochastic PA on the {problem}, {rows['data'].iloc[0]}, l₂, ρ = {rho:g}"
        alt = f"{title}. Error against t on logarithmic scales: {described(lines)}."
        out.append(Panel(f"{problem}-{rho:g}", title, "iteration t", "f(w) − f*", lines, alt=alt, note=noted(rows)))
    out += [window_slopes(table, "stream"), window_slopes(table, "sample")]
    if bool((table["n"] > QUICK_ROWS).any()):
        title = "Where stochastic PA is no flatter than log t/t² from t = 10 on (slope minus that of log t/t²)"
        axes = {"xlabel": "ρ (the paper states none)", "ylabel": "rows and function", "note": noted(table)}
        out.append(state_map("map", title, _excesses(table), "At most 0, and not still steepening", **axes))
    return out


def window_slopes(table: Any, problem: str) -> Panel | None:
    """Slopes of the mean error against the start of the window, and those of log t / t² on the same windows."""
    import pandas as pd

    rows = select(table, measure="error", problem=problem, solver=PUBLISHED, note="f")
    if not len(rows):
        return None
    end, out = float(rows["t"].max()), []
    t = np.arange(2.0, end + 1)
    starts = [s for s in STARTS if s + 4 <= end]
    for rho, group in rows.groupby("rho"):
        mean = group.groupby("t")["value"].mean()
        for start in starts:
            value = slope(mean.index.to_numpy(dtype=float), mean.to_numpy(), start, end)
            out.append(
                {**group.iloc[0].to_dict(), "task": f"ρ = {rho:g}", "variant": f"[{start}, {end:g}]", "value": value}
            )
    law = [slope(t, np.log(t) / t**2, start, end) for start in starts]
    beside = Series("log t / t² itself", np.array(starts, dtype=float), law, style="reference", colour=6)
    title = f"Slope of stochastic PA on the {problem} against the window's start, to t = {end:g}"
    return window_panel(
        pd.DataFrame(out, columns=list(table.columns)), f"window-{problem}", title, beside, None, "task"
    )


def _excesses(table: Any) -> dict[tuple[str, float], tuple[float, bool | None]]:
    """The slope minus that of log t / t² on the late window, and what the rule says, by kind of run and radius."""
    out = {}
    for (problem, solver, what, rho), rows in select(table, measure="error").groupby(
        ["problem", "solver", "note", "rho"], sort=False
    ):
        task = f"{problem}, t⁴ rows, on {what}" if solver == PUBLISHED else f"{problem}, A, t² rows, on {what}"
        out[task, float(rho)] = against_the_law(rows, last_judged(table, rows, problem, what, rho))
    return out


RULE = (
    "the slope of the mean error over seeds minus that of log t/t² on the same window, from t = 10 to the last t at "
    "which "
    "the sample still grows; holds at radii where it is negative; within 0.02, or where it is positive but falls by "
    "more than 0.1 from the window before, the radius is open"
)
EXPERIMENT = Experiment(
    name="stochastic-rate",
    title="Rate of stochastic PA",
    question="Does the error of stochastic PA fall like log t/t² while its sample grows?",
    paper="Theorem 2, Section 4.2",
    method=(
        "Least squares over l₂ balls. The stream draws t⁴ fresh rows at iteration t ≤ 30, Gaussian with the "
        "covariance of "
        "the sample, so that errors are those of the expected loss; means over seeds, because the theorem bounds an "
        "expectation. The sample is the table itself, t below N^(1/4), where the published method uses all rows. On h, "
        f"ε is {EPSILON:g} f*, and only errors above ε are judged, for the theorem is silent below. (log t/t² "
        f"itself has "
        "slope −1.65 on [10, 30].)"
    ),
    tasks=tasks,
    claims=(
        Claim("stream", "Stochastic PA's error falls like log t/t² (a stream with t⁴ fresh rows)", "log t/t²",
              "Theorem 2", RULE, judge_stream("stream", PUBLISHED), "stream window-stream map"),
        Claim("sample", "Stochastic PA's error falls like log t/t² (on the table, t < N^(1/4))", "log t/t²",
              "Theorem 2; Section 4.2", RULE, judge_stream("sample", PUBLISHED), "sample window-sample map"),
        Claim("stream-h", "The same for f when it runs on h = f + θ⟨ξ, w⟩, down to ε", "log t/t²", "Theorem 2", RULE,
              judge_stream("stream", PUBLISHED, "h"), "stream map"),
        Claim("squares", "With averaged gradients t² rows suffice for the same rate", "log t/t²", "after Theorem 2",
              RULE,
              judge_stream("stream", SQUARES), "stream", Origin.OURS),
    ),
    panels=panels,
)  # fmt: skip
