"""The rate of stochastic PA, log t / t², beside deterministic PA with option B, which it samples (Theorem 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from reproduction.base import Array, Claim, Experiment, Figure, Finding, Mode, Row, Task
from reproduction.drawing import label_axes, log_scales, panels, plot_curve
from reproduction.experiments.stochastic import Rows
from reproduction.measure import curve_rows, slope, window_name
from reproduction.problems import LeastSquares, Minimum, least_squares
from reproduction.rules import answer, judge_all, number, select

RHOS, MOST, SEEDS = (0.05, 0.1, 0.3, 0.9), 10_000, {"quick": 3, "full": 20}
WINDOWS = ((10, 30), (30, 100), (100, 1000), (1000, 10_000))
STREAM, STREAM_H, TABLE, DETERMINISTIC = "SPA, fresh rows", "SPA on h, fresh rows", "SPA on the table", "PA, option B"
#: The accuracy asked for in runs on h, in units of f*.
EPSILON = 1e-3


class Stream:
    """Fresh rows without end: x Gaussian with the covariance of the table, y its best linear prediction plus noise.

    The mean gradient of m rows is drawn from its exact distribution in time that does not depend on m: the products
    of predictions and noise are Wishart, and given them the rest is a Gaussian vector.
    """

    def __init__(self, problem: LeastSquares) -> None:
        self.S, self.w0 = problem.H / 2, problem.unconstrained
        self.noise = math.sqrt(problem.value(self.w0))
        self.root = problem.vectors * np.sqrt(np.maximum(problem.values, 0.0) / 2)

    def gradient(self, w: Array, m: int, rng: np.random.Generator) -> Array:
        """Return the mean gradient of m new rows."""
        delta = w - self.w0
        a = self.S @ delta
        q = float(delta @ a)
        first, between = math.sqrt(rng.chisquare(m)), rng.standard_normal()
        pp, pe = q * first**2, math.sqrt(q) * self.noise * first * between
        ee = self.noise**2 * (between**2 + (rng.chisquare(m - 1) if m > 1 else 0.0))
        u = self.root @ rng.standard_normal(len(w))
        u -= a * (float(delta @ u) / q)
        return np.asarray(2.0 / m * (a * ((pp - pe) / q) + math.sqrt(max(0.0, pp - 2 * pe + ee)) * u))


class Sizes:
    """The rows of a draw from the stream, of which only their number matters."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def rates(errors: Array, best: Minimum, **place: object) -> Iterator[Row]:
    """The mean error over seeds, and its slope minus that of log t/t² on each window."""
    t = np.arange(1, len(errors) + 1)
    law = np.log(np.maximum(t, 2)) / t**2
    yield {**place, "measure": "minimum", "value": best.value}
    yield from curve_rows("error", t, errors, **place)
    for low, high in WINDOWS:
        high = min(high, len(errors))
        if high >= 1.5 * low:
            window = window_name(low, high)
            found = slope(t, errors, low, high, 1e-13 * best.value)
            yield {**place, "measure": "slope", "window": window, "value": found}
            yield {**place, "measure": "slope of the law", "window": window, "value": slope(t, law, low, high)}


def stream(mode: Mode, rho: float) -> Task:
    """SPA on fresh rows, on f and on h, and the deterministic method, as long as PA elsewhere."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        rows, ball = Stream(problem), problem.ball(2, rho)
        best, oracle = problem.minimum(ball), ball.lmo
        place = {"data": "generated rows", "stand_in": True, "rho": rho}
        theta = paper.largest_theta(EPSILON * best.value, 2 * ball.radius)

        def one(seed: int, on_h: bool) -> Array:
            rng, xi = np.random.default_rng(seed), paper.on_the_sphere((len(best.w),), np.random.default_rng(seed + 99))

            def gradient(z: Array, S: Array) -> Array:
                return rows.gradient(z, len(S), rng) + (theta * xi if on_h else 0.0)

            runs = paper.stochastic_primal_averaging(gradient, 10**18, oracle, problem.zero, lambda t, m: Sizes(m))  # type: ignore[arg-type, return-value]
            return np.array([problem.error(w, best) for w in islice(runs, MOST)])

        for name, on_h in ((STREAM, False), (STREAM_H, True)):
            mean = np.mean([one(seed, on_h) for seed in range(SEEDS[mode])], axis=0)
            yield from rates(mean, best, **place, method=name, epsilon=EPSILON * best.value)
        iterates = paper.primal_averaging(problem.gradient, oracle, problem.zero, paper.last)
        errors = np.array([problem.error(w, best) for w in islice(iterates, MOST)])
        yield from rates(errors, best, **place, method=DETERMINISTIC)

    return Task(f"stream rho={rho:g}", run)


def table(mode: Mode, rho: float) -> Task:
    """SPA on the rows of the table until its sample is all of them; the mean over five seeds."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        rows, ball = Rows(problem), problem.ball(2, rho)
        best, end = problem.minimum(ball), math.ceil(rows.n**0.25) - 1
        errors = [[problem.error(w, best) for w in islice(rows.spa(ball, seed), end)] for seed in range(5)]
        yield from rates(np.mean(errors, axis=0), best, **problem.place, rho=rho, method=TABLE)

    return Task(f"table rho={rho:g}", run)


def tasks(mode: Mode) -> list[Task]:
    """The stream and the table at four radii."""
    return [make(mode, rho) for make in (stream, table) for rho in RHOS]


def judge(method: str) -> Any:
    """Whether the slope of the mean error is at most that of log t/t² on the last window, at every radius.

    On h a window counts only as far as the error is above epsilon, for the theorem is silent below.
    """

    def rule(table: Any) -> Finding:
        out, own = [], select(table, method=method)
        for rho, rows in own.groupby("rho", sort=False):
            windows = select(rows, measure="slope")
            if method == STREAM_H:
                above = rows[(rows["measure"] == "error") & (rows["value"] > rows["epsilon"].max())]["t"].max()
                ends = windows["window"].map(lambda w: float(w.strip("[]").split(",")[1]))
                windows = windows[ends <= above]
            if not len(windows):
                out.append(answer(f"ρ = {rho:g}", math.nan, None, "the error is below ε, or the window too short"))
                continue
            late = windows.iloc[-1]
            law = float(select(rows, measure="slope of the law", window=late["window"])["value"].iloc[0])
            value = float(late["value"])
            note = f"log t/t² has {number(law)}; t in {late['window']}"
            steepening = len(windows) > 1 and value < float(windows.iloc[-2]["value"]) - 0.1
            holds = True if value <= law + 0.02 else None if steepening else False
            out.append(answer(f"ρ = {rho:g}", value, holds, note + ("; still steepening" if holds is None else "")))
        return judge_all(out, own, "as steep as log t/t²", "flatter")

    return rule


def remarks(table: Any) -> list[str]:
    """The slopes of SPA beside those of the deterministic method that it samples, window by window."""
    out = []
    for rho in RHOS[-1:]:
        each = []
        for low, high in WINDOWS:
            rows = select(table, rho=rho, window=window_name(low, high), measure="slope")
            a, b = (select(rows, method=m)["value"] for m in (STREAM, DETERMINISTIC))
            if len(a) and len(b):
                each.append(f"{number(float(a.iloc[0]))} and {number(float(b.iloc[0]))} on {window_name(low, high)}")
        if each:
            out.append(
                f"At ρ = {rho:g} the slopes of SPA and of deterministic PA with option B are {', '.join(each)}: where "
                "SPA is flat early, so is option B without any noise. This is its transient, not the sampling."
            )
    return out


def draw(table: Any) -> Any:
    """SPA beside the deterministic method and log t/t², at each radius."""
    figure, axes = panels(4, 3.2, 3.9)
    for axis, rho in zip(axes, RHOS, strict=True):
        rows = select(table, rho=rho, measure="error")
        for name in (STREAM, TABLE, DETERMINISTIC):
            some = select(rows, method=name)
            plot_curve(axis, some["t"], some["value"], name)
        start = select(rows, method=STREAM, t=10)["value"]
        if len(start):
            t = np.geomspace(10, MOST, 50)
            law = np.log(t) / t**2
            label_, style = "log t/t² (Theorem 2)", {"linestyle": "--", "linewidth": 1.0}
            plot_curve(axis, t, 3 * float(start.iloc[0]) * law / law[0], label_, "#222222", **style)
        log_scales(axis)
        label_axes(axis, f"ρ = {rho:g}", "iteration t", "mean of f(w) - f*")
    return figure


RULE = (
    "holds at radii where the slope of the mean error on the last window is at most that of log t/t² plus 0.02; open "
    "where it is flatter but still steepens from window to window"
)
EXPERIMENT = Experiment(
    name="stochastic_rate",
    title="Rate of stochastic PA",
    method=(
        "Least squares over l₂ balls, means over seeds. Fresh rows are Gaussian with the covariance of the table, and "
        "the gradient of t⁴ of them is drawn from its exact distribution, so that 10,000 iterations can be run; on "
        "the table the sample is all rows from t = N^(1/4) on, and the window ends there. SPA's gradient is printed "
        "as a sum over the sample; with the perturbation θξ of a mean this matters, and ours is the mean."
    ),
    tasks=tasks,
    claims=(
        Claim("stream", "Theorem 2", "SPA's error falls like log t/t²", "log t/t²", RULE, judge(STREAM), False,
              "stochastic-rate"),
        Claim("table", "Section 4.2", "SPA's error falls like log t/t² (rows of the table, t < N^(1/4))", "log t/t²",
              RULE, judge(TABLE), False, "stochastic-rate", full=True),
        Claim("perturbed", "Theorem 2", "SPA on h: the error of f falls like log t/t² down to ε", "log t/t²", RULE,
              judge(STREAM_H), False, "stochastic-rate"),
    ),
    figures=(Figure("stochastic-rate", 0, "SPA beside deterministic PA with option B.", draw),),
    remarks=remarks,
)  # fmt: skip
