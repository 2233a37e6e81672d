"""Seconds of one iteration of each method, as one writes it in Matlab: products with the whole table (Figure 7)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from reproduction.base import Array, Claim, Experiment, Figure, Finding, Mode, Row, Setting, Task
from reproduction.drawing import label_axes, panels, plot_bars
from reproduction.measure import timings
from reproduction.problems import (
    EXACT,
    FWPLR,
    OPTION_B,
    PA,
    SEARCHED,
    l2_projection,
    least_squares,
    methods,
    rating_matrix,
    ratings,
)
from reproduction.rules import Rule, compare, select

GD = "GD"
#: Radius of the runs whose steps are timed, for each scaling of the features, and steps of a run.
RHOS, STEPS = {"standardised": 0.5, "raw": 0.2}, {"quick": 30, "full": 4}


class Dense:
    """The sum of squares over a whole table or matrix, with its products counted.

    ``forward`` and ``backward`` are the products with the table and its transpose, or both the mask of observed
    entries.
    """

    def __init__(self, forward: Any, backward: Any, y: Array, L: float, start: Array) -> None:
        self.forward, self.backward, self.y, self.L, self.start, self.products = forward, backward, y, L, start, 0

    def value(self, w: Array) -> float:
        """Return the sum of squares; one product."""
        self.products += 1
        return float(np.sum((self.forward(w) - self.y) ** 2))

    def gradient(self, w: Array) -> Array:
        """Return the gradient; two products."""
        self.products += 2
        return np.asarray(2.0 * self.backward(self.forward(w) - self.y))

    def curvature(self, d: Array) -> float:
        """Return the second derivative along d; one product."""
        self.products += 1
        return 2.0 * float(np.sum(self.forward(d) ** 2))


def of_table(X: Array, y: Array, L: float) -> Dense:
    """Least squares."""
    return Dense(lambda w: X @ w, lambda r: X.T @ r, y, L, np.zeros(X.shape[1]))


def of_matrix(M: Array) -> Dense:
    """The observed quadratic loss on a whole matrix, from a random one."""
    mask = (M != 0).astype(float)
    return Dense(lambda W: mask * W, lambda R: R, M, 2.0, np.asarray(np.random.default_rng(0).standard_normal(M.shape)))


def time_steps(f: Dense, radius: float, mode: Mode, start: Array, **place: Any) -> Iterator[Row]:
    """Measure the seconds and products of the first steps of each method; the methods alternate."""

    def advance(name: str) -> None:
        runs = methods(f, radius, start)
        runs[GD] = paper.gradient_descent(f.gradient, l2_projection(radius), start, 1.0 / f.L)
        next(islice(runs[name], STEPS[mode] - 1, None))

    names = [PA, FWPLR, EXACT, SEARCHED, OPTION_B] + ([GD] if start.ndim == 1 else [])
    for name in names:
        f.products = 0
        advance(name)
        yield {**place, "method": name, "measure": "products a step", "value": f.products / STEPS[mode]}
    spent = timings({name: partial(advance, name) for name in names}, 1, 3)
    for name, seconds in spent.items():
        for k, each in enumerate(seconds / STEPS[mode]):
            yield {**place, "method": name, "measure": "seconds a step", "round": k, "value": float(each)}


def regression(mode: Mode, features: str) -> Task:
    """Return the task of least squares on the whole table."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode, features == "standardised")
        X, y = problem.table.X, problem.table.y
        f = of_table(X - X.mean(axis=0), y - y.mean(), problem.L * len(y))
        radius = problem.ball(2, RHOS[features]).radius
        place = {**problem.place, "problem": "regression", "features": features}
        yield from time_steps(f, radius, mode, f.start, **place)

    return Task(f"regression {features}", run, timed=True)


def completion(mode: Mode) -> Task:
    """Return the task of completion with dense matrices."""

    def run() -> Iterator[Row]:
        rated, place = ratings("100k" if mode == "quick" else "1m")
        f = of_matrix(rating_matrix(rated))
        radius = 0.9 * float(np.linalg.norm(rated.values))
        start = np.asarray(f.start * (0.5 * radius / float(np.linalg.norm(f.start))))
        yield from time_steps(f, radius, mode, start, **place, problem="completion", features="")

    return Task("completion", run, timed=True)


def tasks(mode: Mode) -> list[Task]:
    """Return both tasks of the paper."""
    return [*(regression(mode, features) for features in RHOS), completion(mode)]


#: What is timed: the problem and the scaling of its features.
TIMED = (("regression", "standardised"), ("regression", "raw"), ("completion", ""))
READINGS = (EXACT, SEARCHED, OPTION_B)


def step_seconds(table: Any, method: str, problem: str, features: str) -> Any:
    """Return the seconds of a step in each round."""
    wanted = {"problem": problem, "features": features, "method": method, "measure": "seconds a step"}
    return select(table, experiment="iteration_time", **wanted)["value"].to_numpy()


def step_ratio(table: Any, slow: str, fast: str, problem: str, features: str) -> Any:
    """Return the ratio of the seconds of a step of two methods, in each round."""
    a, b = (step_seconds(table, name, problem, features) for name in (slow, fast))
    n = min(len(a), len(b))
    return a[:n] / b[:n]


def task_name(problem: str, features: str) -> str:
    """Format the name of a task."""
    return f"{problem}, {features} features" if features else problem


def judge_pa(table: Any) -> Finding:
    """Judge the time of a step of PA relative to FWPLR; smaller ratios favour the paper."""
    rule = Rule(1.2, 1.3, more=False, digits=1)
    found = [rule.at(task_name(*at), step_ratio(table, PA, FWPLR, *at)) for at in TIMED]
    return compare(found, select(table, method=PA), "×", {"within": "in the range", "beyond": "cheaper than stated",
                                                         "short": "dearer"})  # fmt: skip


def search_steps(table: Any) -> list[Setting]:
    """Return settings with the time of a step of FWLS, for each reading of its line search, relative to PA."""
    rule = Rule(3.2, 7.1, digits=1)
    return [
        rule.at(f"{name.removeprefix('FWLS, ')}, {task_name(*at)}", step_ratio(table, name, PA, *at))
        for name in READINGS
        for at in TIMED
    ]


def judge_search(table: Any) -> Finding:
    """Judge the range of the ratio of FWLS to PA over all readings."""
    words = {"within": "in the range", "beyond": "dearer than stated", "short": "cheaper than stated"}
    return compare(search_steps(table), select(table, method=PA), "×", words)


def draw(table: Any) -> Any:
    """Plot Figure 7: milliseconds per step."""
    figure, axes = panels(2, 3.4, 5.0)
    for axis, (problem, features) in zip(axes, (TIMED[0], TIMED[2]), strict=True):
        names = (FWPLR, PA, *READINGS)
        found = {n: step_seconds(table, n, problem, features) for n in names}
        groups = {n: {problem: 1e3 * float(np.median(s))} for n, s in found.items() if len(s)}
        plot_bars(axis, groups, [problem])
        label_axes(axis, task_name(problem, features), "", "milliseconds a step")
    return figure


EXPERIMENT = Experiment(
    name="iteration_time",
    title="Time of one iteration",
    method=(
        "Processor seconds of the first steps of `projfree.paper` on the whole table, in rounds in which the methods "
        "take turns. The paper does not say what its line search is. Three readings: the exact search (one more "
        "product with the table), a search on values of f with a relative tolerance (about ten evaluations), and "
        "option B of Algorithm 1, which needs no search. Each reading has the same search here and where its "
        "iterations are counted."
    ),
    tasks=tasks,
    claims=(
        Claim("pa", "Figure 7", "A step of PA costs so many of FWPLR's", "1.2-1.3×",
              "reproduced within the printed range; cheaper is exceeded", judge_pa, True, "figure-7", True, True),
        Claim("search", "Figure 7", "A step of FWLS costs so many of PA's", "3.2-7.1×",
              "reproduced within the printed range; dearer is exceeded; in three readings of FWLS", judge_search, True,
              "figure-7", True, True),
    ),
    figures=(Figure("figure-7", 7, "Average time of an iteration of PA, FWPLR and FWLS (in three readings).", draw),),
)  # fmt: skip
