"""Stochastic PA against stochastic gradient descent, with a cheap and a costly projection (Figures 2c, 8b and 8c)."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from projfree import LpBall, paper
from reproduction.base import Array, Claim, Experiment, Finding, Mode, Row, Setting, Task
from reproduction.drawing import CLOCK, PALETTE, label_axes, log_scales, mark_convergence, plot_curve
from reproduction.experiments import gradient_descent
from reproduction.measure import count, curve_rows, timings
from reproduction.problems import LeastSquares, l2_projection, least_squares
from reproduction.rules import FACTOR_WORDS, Rule, answer, compare, factor_rule, judge_all, select

SPA, SGD = "SPA", "SGD"
#: Constant steps of SGD in units of 1 / (2 mean ||x||^2), and radii; the paper states neither.
CONSTANTS, RHOS, BALLS = (0.003, 0.01, 0.03), (0.3, 0.9), {"l₂": 2.0, "l₁.₁": 1.1}
MOST_SGD, MOST_SPA, SEEDS, ROUNDS = 100_000, 4_000, 3, 3
#: The panels of the figure.
SHOWN_RHO, SHOWN_CONSTANT = 0.9, 0.01


@cache
def general_projection(p: float, radius: float, d: int) -> Any:
    """The projection onto an l_p ball by a general-purpose convex solver, posed once; None if it is not installed."""
    if find_spec("cvxpy") is None:
        return None
    cvxpy: Any = import_module("cvxpy")
    w, target = cvxpy.Variable(d), cvxpy.Parameter(d)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(w - target)), [cvxpy.pnorm(w, p) <= radius])

    def project(point: Array) -> Array:
        target.value = point
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the solution may be inaccurate
            problem.solve(solver="CLARABEL")
        return np.asarray(w.value)

    return project


class Rows:
    """Centred rows, and the gradients of some of them."""

    def __init__(self, problem: LeastSquares) -> None:
        X, y = problem.table.X, problem.table.y
        self.problem, self.X, self.y = problem, np.ascontiguousarray(X - X.mean(axis=0)), y - y.mean()
        self.n = len(y)
        self.unit = 1.0 / (2.0 * float(np.mean(np.einsum("ij,ij->i", self.X, self.X))))

    def sum_gradient(self, w: Array, S: Array) -> Array:
        """Return the sum of the gradients of the rows S."""
        X = self.X[S]
        return np.asarray(2.0 * (X.T @ (X @ w - self.y[S])))

    def full_gradient(self, w: Array, S: Array) -> Array:
        """Return the sum of gradients, from the Gram matrix if S contains all rows."""
        return self.sum_gradient(w, S) if len(S) < self.n else self.n * self.problem.gradient(w)

    def one(self, w: Array, i: int) -> Array:
        """Return the gradient of one row."""
        x = self.X[i]
        return np.asarray((2.0 * (float(x @ w) - self.y[i])) * x)

    def spa(self, ball: LpBall, seed: int) -> Iterator[Array]:
        """Yield the iterates of stochastic PA as printed."""
        whole = np.arange(self.n)

        def draw(t: int, size: int) -> Array:
            if size == self.n:
                return whole
            return np.random.default_rng((seed, t)).choice(self.n, size, replace=False)

        return paper.stochastic_primal_averaging(
            self.full_gradient, self.n, LpBall(ball.p, ball.radius).lmo, self.problem.zero, draw
        )

    def sgd(self, ball: LpBall, c: float, seed: int, calls: list[int] | None = None) -> Iterator[Array]:
        """SGD as printed; a point inside the ball is its own projection, and ``calls`` counts the others."""
        order = np.random.default_rng(seed).integers(0, self.n, MOST_SGD).tolist()
        short = l2_projection(ball.radius) if ball.p == 2 else ball.project
        edge, power = ball.radius**ball.p, ball.p

        def project(w: Array) -> Array:
            if float(np.sum(np.abs(w) ** power)) <= edge:
                return w
            if calls is not None:
                calls[0] += 1
            return short(w)

        return paper.stochastic_gradient_descent(
            self.one, project, self.problem.zero, c * self.unit, lambda t: order[t - 1]
        )


def counts(mode: Mode, name: str, rho: float) -> Task:
    """Iterations of both methods by the paper's rule, for several seeds; the losses of SGD at places 2 % apart."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        rows, ball = Rows(problem), problem.ball(BALLS[name], rho)
        best = problem.minimum(ball)
        place = {**problem.place, "set": name, "rho": rho}
        yield {**place, "measure": "minimum", "value": best.value}
        for seed in range(SEEDS):
            here = {**place, "method": SPA, "start": seed}
            values = (best.value + problem.error(w, best) for w in rows.spa(ball, seed))
            found = count(values, best.value, problem.start, MOST_SPA)
            yield found.row(**here)
            if seed == 0:
                yield from curve_rows("loss", found.t, found.values, **here)
            places = np.unique(np.geomspace(1, MOST_SGD, 600).astype(int))
            for c in CONSTANTS:
                yield from sgd(rows, ball, best, places, c, **{**here, "method": SGD, "constant": c})

    return Task(f"counts {name} rho={rho:g}", run)


def sgd(rows: Rows, ball: LpBall, best: Any, places: Array, c: float, **place: Any) -> Iterator[Row]:
    """Yield the steps and projections of one run until convergence, which is tested at ``places``."""
    calls, due, losses = [0], set(places.tolist()), list[float]()

    def values() -> Iterator[float]:
        for t, w in enumerate(rows.sgd(ball, c, place["start"], calls), start=1):
            if t in due:
                losses.append(best.value + rows.problem.error(w, best))
                yield losses[-1]

    found = count(values(), best.value, rows.problem.start, len(places))
    end = float(places[len(found.values) - 1])
    yield {**place, "measure": "iterations" if found.at else "iterations at least", "value": end}
    yield {**place, "measure": "projections", "value": float(calls[0])}
    if place["start"] == 0:
        yield from curve_rows("loss", places[: len(losses)], np.array(losses), **place)


def seconds(mode: Mode, name: str, rho: float) -> Task:
    """Seconds of SPA while its sample grows, of one of its later steps, of a step of SGD, and of its projection."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        rows, ball = Rows(problem), problem.ball(BALLS[name], rho)
        place = {**problem.place, "set": name, "rho": rho}
        w, rng = problem.minimum(ball).w, np.random.default_rng(0)
        for k in range(ROUNDS):
            iterates, begun = rows.spa(ball, k), time.process_time()
            for t in range(1, math.ceil(rows.n**0.25)):
                next(iterates)
                spent = time.process_time() - begun
                yield {**place, "measure": "seconds while sampling", "t": t, "round": k, "value": spent}
        draws = rng.integers(0, rows.n, 1_000).tolist()
        general = general_projection(ball.p, ball.radius, len(w)) if ball.p != 2 else l2_projection(ball.radius)
        actions: dict[str, Any] = {
            "seconds a full step": lambda: rows.X.T @ (rows.X @ w - rows.y),
            "seconds of 1,000 SGD steps": lambda: [w - 1e-9 * rows.one(w, i) for i in draws],
        }
        if general is not None:
            actions["seconds a projection"] = partial(general, 1.2 * w)
        for measure, each in timings(actions, 4, ROUNDS).items():
            for k, value in enumerate(each):
                yield {**place, "measure": measure, "round": k, "value": float(value)}

    return Task(f"seconds {name} rho={rho:g}", run, timed=True)


def tasks(mode: Mode) -> list[Task]:
    """The l_2 ball, whose projection is cheap, and the l_1.1 ball, whose is costly."""
    grid = [(name, rho) for name in BALLS for rho in RHOS]
    return [*(counts(mode, *at) for at in grid), *(seconds(mode, *at) for at in grid)]


#: How often SGD projects: at every step as printed, or only where a step leaves the ball.
OFTEN = {"a projection at every step": "iterations", "a projection where a step leaves the ball": "projections"}


def spa_seconds(rows: Any, at: float) -> Any:
    """Seconds of SPA up to an iteration, in each round: those with samples as measured, later ones by a full step."""
    sampling, full = (
        select(rows, measure=m).sort_values("round") for m in ("seconds while sampling", "seconds a full step")
    )
    if not len(sampling) or not len(full):
        return np.array([])
    last = float(sampling["t"].max())
    until = select(sampling, t=min(at, last))["value"].to_numpy()
    return until + max(0.0, at - last) * full["value"].to_numpy()[: len(until)]


def sgd_seconds(rows: Any, steps: float, calls: float) -> Any:
    """Return the seconds of SGD for given numbers of steps and projections, in each round."""
    names = ("seconds of 1,000 SGD steps", "seconds a projection")
    step, projection = (select(rows, measure=m).sort_values("round")["value"].to_numpy() for m in names)
    n = min(len(step), len(projection))
    return steps * step[:n] / 1e3 + calls * projection[:n]


def time_factors(table: Any, ball: str, rule: Rule, sgd_first: bool) -> list[Setting]:
    """SPA's time over SGD's (``sgd_first``) or the inverse, over radii, steps and how often SGD projects.

    The range is over seeds and rounds; a run that ended before it converged makes the factor a bound.
    """
    out, own = [], select(table, experiment="stochastic", set=ball)
    for (rho, c), group in select(own, method=SGD).groupby(["rho", "constant"], sort=False):
        rows = select(own, rho=rho)
        spa, _ = gradient_descent.iterations(select(rows, method=SPA))
        steps, bound = gradient_descent.iterations(group)
        outside = select(group, measure="projections")["value"].to_numpy()
        for reading in OFTEN if ball == "l₁.₁" else ("",):
            calls = outside if OFTEN.get(reading) == "projections" else steps
            pairs = [(spa_seconds(rows, a), sgd_seconds(rows, s, p)) for a, s, p in zip(spa, steps, calls, strict=True)]
            ratios = [x for a, b in pairs for x in ((a / b) if sgd_first else (b / a)) if len(a) and len(b)]
            name = ", ".join(filter(None, [f"ρ = {rho:g}", f"c = {c:g}", reading]))
            if ratios:
                out.append(rule.at(name, ratios, bound=bound and ("at most" if sgd_first else "at least")))
    return out


def judge_factor(ball: str, paper_says: float, sgd_first: bool) -> Any:
    """A printed factor on one ball; a larger one favours the paper where it is SPA that is faster."""
    rule = replace(factor_rule(paper_says), more=not sgd_first)

    def judge(table: Any) -> Finding:
        found = time_factors(table, ball, rule, sgd_first)
        return compare(found, select(table, experiment="stochastic", set=ball), "×")

    return judge


def judge_range(table: Any) -> Finding:
    """The conclusion's range over projected gradient descent, of both kinds."""
    rule = Rule(7.7, 25.1, digits=1)
    found = gradient_descent.time_factors(table, rule) + time_factors(table, "l₁.₁", rule, False)
    words = {"within": "in the range", "beyond": "more than stated", "short": "less than stated"}
    return compare(found, select(table, experiment=["stochastic", "gradient_descent"]), "×", words)


def judge_sides(table: Any) -> Finding:
    """Whether SGD is faster where projecting is cheap and SPA where it is costly."""
    out, rule = [], Rule(1.0, math.inf)
    for ball, sgd_first in (("l₂", True), ("l₁.₁", False)):
        for s in time_factors(table, ball, rule, sgd_first):
            holds = None if s.state == "open" else s.value > 1
            out.append(answer(f"{ball}, {s.name}", s.value, holds, s.note))
    return judge_all(out, select(table, experiment="stochastic"), "as stated", "the other way round", "×")


def loss_panel(axis: Any, table: Any, ball: str, title: str) -> None:
    """Losses against seconds of SPA and of SGD, which projects at every step."""
    rows = select(table, experiment="stochastic", set=ball, rho=SHOWN_RHO)
    spa = select(rows, method=SPA, measure="loss")
    sgd = select(rows, method=SGD, constant=SHOWN_CONSTANT, measure="loss")
    at = {}
    for k, (name, losses) in enumerate(((SPA, spa), (SGD, sgd))):
        seconds = [spa_seconds(rows, t) if name == SPA else sgd_seconds(rows, t, t) for t in losses["t"]]
        if len(losses) and len(seconds[0]):
            x = np.array([float(np.median(s)) for s in seconds])
            plot_curve(axis, x, losses["value"], name, PALETTE[k])
            at[name] = float(x[-1])
    mark_convergence(axis, at)
    log_scales(axis, "x", CLOCK)
    label_axes(axis, title, "seconds", "loss")


EXPERIMENT = Experiment(
    name="stochastic",
    title="Stochastic PA against stochastic gradient descent",
    method=(
        "Least squares; SPA as printed (option B, min(t⁴, N) rows; its printed gradient is a sum, and option B's "
        "oracle does not see the factor), SGD as printed (one row, a constant step c/(2 mean ‖x‖²)). Iterations by the "
        "paper's rule, for SGD at places 2 % apart, times measured seconds. The projection onto l₁.₁ is that of a "
        "general-purpose convex solver, as in the paper. Step, radius, seed and how often SGD projects are varied."
    ),
    tasks=tasks,
    claims=(
        Claim("l2", "Figures 2c, 8b", "SGD converges so many times faster than SPA (l₂)", "4.6×",
              FACTOR_WORDS.replace("larger", "smaller, which favours SPA"),
              judge_factor("l₂", 4.6, True), True, "figure-8", True, True),
        Claim("l11", "Figure 8c", "SPA converges so many times faster than SGD (l₁.₁)", "25.1×", FACTOR_WORDS,
              judge_factor("l₁.₁", 25.1, False), True, "figure-8", True, True),
        Claim("range", "Section 8", "PA reduces the time against projected gradient descent", "7.7-25.1×",
              "reproduced within the printed range; more is exceeded; over GD and, on l₁.₁, SGD", judge_range, True,
              "figure-8", True, True),
        Claim("sides", "Appendix B.5", "SGD is faster where projecting is cheap, SPA where it is costly", "l₂, l₁.₁",
              "holds for radii, steps and readings where it is so", judge_sides, False, "figure-8", True, True),
    ),
    reads=("gradient_descent", "iteration_time"),
)  # fmt: skip
