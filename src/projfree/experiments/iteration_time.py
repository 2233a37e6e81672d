"""Experiment 3: the time of one iteration of each Frank-Wolfe variant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from projfree.experiments.base import Claim, Experiment, Finding, Mode, Panel, Row, Series, Task, Verdict
from projfree.experiments.judging import NOTHING, noted, number, select
from projfree.experiments.measure import follow
from projfree.experiments.problems import Completion
from projfree.experiments.sources import ratings
from projfree.experiments.variants import SOLVERS, least_squares
from projfree.sets import SchattenBall

ROUNDS = 5


def measured(objective: Any, ball: Any, start: Any, steps: int, place: dict[str, Any], seconds: float) -> Iterator[Row]:
    """The median seconds of a step, in rounds that take turns; the first iterations of a run are not counted."""
    for seed in range(ROUNDS):
        for name, solver in SOLVERS.items():
            allowed = seconds / ROUNDS / len(SOLVERS)
            curve = follow(objective(), ball, solver, lambda state: 0.0, most=steps, seconds=allowed, start=start)
            each = np.diff(curve.seconds)[1:]
            if len(each):
                yield {**place, "solver": name, "seed": seed, "measure": "step", "value": float(np.median(each))}


def regression(mode: Mode) -> Task:
    """Least squares, l_2, rho = 0.9."""

    def run(seconds: float) -> Iterator[Row]:
        problem = least_squares(mode)
        place = {**problem.place, "problem": "regression", "set": "l_2", "p": 2.0, "rho": 0.9}
        yield from measured(problem.objective, problem.ball(2, 0.9), None, 40, place, seconds)

    return Task("regression", run)


def completion(mode: Mode) -> Task:
    """Completion, Schatten-2, on the boundary, from a random start."""

    def run(seconds: float) -> Iterator[Row]:
        problem = Completion(*ratings("100k" if mode == "quick" else "1m"))
        ball = SchattenBall(2, 0.9 * problem.norm)
        place = {**problem.place, "problem": "completion", "set": "Schatten-2", "p": 2.0, "rho": 0.9}
        yield from measured(problem.objective, ball, problem.random_start(ball, 0), 10, place, seconds)

    return Task("completion", run)


def judge_range(slow: str, fast: str, low: float, high: float) -> Any:
    """Whether the ratio of step times lies in the claimed range, widened by a tenth on both sides."""

    def judge(table: Any) -> Finding:
        shown, inside = [], []
        for problem, rows in select(table, measure="step").groupby("problem"):
            times = {name: select(rows, solver=name)["value"].to_numpy() for name in (slow, fast)}
            if not all(len(t) for t in times.values()):
                continue
            each = times[slow][: len(times[fast])] / times[fast][: len(times[slow])]
            ratio = float(np.median(each))
            shown.append(f"{number(ratio)} ({number(each.min())} to {number(each.max())}) on {problem}")
            inside.append(0.9 * low <= ratio <= 1.1 * high)
        if not inside:
            return NOTHING
        verdict = Verdict.HOLDS if all(inside) else Verdict.PARTLY if any(inside) else Verdict.FAILS
        return Finding(verdict, "; ".join(shown), f"{sum(inside)} of {len(inside)} problems lie in the claimed range")

    return judge


def panels(table: Any) -> list[Panel]:
    """Bars of the step times."""
    rows = select(table, measure="step")
    series = []
    for problem, part in rows.groupby("problem"):
        medians = part.groupby("solver", sort=False)["value"].median() * 1e3
        series.append(Series(str(problem), list(medians.index), medians.to_list(), style="bar"))
    alt = "Milliseconds of one iteration: " + "; ".join(
        f"{s.name}: " + ", ".join(f"{x} {number(y)}" for x, y in zip(s.x, s.y, strict=True)) for s in series
    )
    title = "Time of one iteration"
    return [Panel("step", title, "", "milliseconds", series, logx=False, alt=alt, note=noted(rows))] if series else []


RULE = "median over rounds of the ratio of median step times; holds where it lies in the claimed range, ± 10 %"
EXPERIMENT = Experiment(
    name="iteration-time",
    title="Time of one iteration",
    question="What does an iteration of PA, FWPLR and FWLS cost?",
    paper="Figure 7",
    method="Median time of solver steps (the first is left out) in five rounds in which the solvers take turns.",
    tasks=lambda mode: [regression(mode), completion(mode)],
    claims=(
        Claim("pa-fwplr", "An iteration of PA takes 1.2 to 1.3 times one of FWPLR", "1.2–1.3×", "Figure 7", RULE,
              judge_range("PA", "FWPLR", 1.2, 1.3)),
        Claim("fwls-pa", "An iteration of FWLS takes 3.2 to 7.1 times one of PA", "3.2–7.1×", "Figure 7", RULE,
              judge_range("FWLS", "PA", 3.2, 7.1)),
        Claim("cached-pa", "The same with a line search on cached images", "3.2–7.1×", "ours", RULE,
              judge_range("FWLS, cached images", "PA", 3.2, 7.1)),
    ),
    panels=panels,
    budget={"quick": 9.0, "full": 300.0},
)  # fmt: skip
