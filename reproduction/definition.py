"""Theorem 3's definition and count on the squared sigmoid loss: along runs of option B, and at random points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from projfree.losses import SquaredSigmoid
from projfree.sets import LpBall, random_point
from reproduction.base import Claim, Finding, Mode, Panel, Row, Task
from reproduction.checks_drawn import limit_panel
from reproduction.counting import OPTION_B
from reproduction.drawing import state_map
from reproduction.judging import decided, judge_largest, radius_label, select
from reproduction.sources import adult
from reproduction.words import number, span

#: The share of points at which a step against the gradient leads towards the minimiser.
MEASURE, RANDOM = "towards the minimum", "random w"
#: The parts of the way from the minimiser to a random point of the ball, and the points of each.
PARTS, POINTS = (1.0, 0.3, 0.1, 0.03, 0.01), 300


class SigmoidMean:
    """The mean squared sigmoid loss on the first rows of Adult without an intercept, with its smoothness."""

    def __init__(self) -> None:
        table = adult("quick")
        self.X, self.y, self.name, self.d = table.X, table.y, table.name, table.X.shape[1]
        self.loss = SquaredSigmoid()
        self.L = self.loss.smoothness * float(np.linalg.eigvalsh(self.X.T @ self.X)[-1]) / len(self.y)

    def value(self, w: Array) -> float:
        """The mean of the losses."""
        return float(np.mean(self.loss.value(self.X @ w, self.y)))

    def gradient(self, w: Array) -> Array:
        """Its gradient."""
        return np.asarray(self.X.T @ self.loss.derivative(self.X @ w, self.y)) / len(self.y)


def counts(mode: Mode, radius: float) -> Task:
    """Option B without an intercept: iterations to each ε against Theorem 3, with κ and θ measured along the run."""

    def run() -> Iterator[Row]:
        f, ball = SigmoidMean(), LpBall(2, radius)
        L, gradient = f.L, f.gradient
        oracle, start = paper.lp_oracle(2, radius), random_point(ball, (f.d,), np.random.default_rng(0))
        path = [start, *islice(paper.frank_wolfe(gradient, oracle, start, paper.option_b(L)), 400)]
        slopes, values = [gradient(w) for w in path], np.array([f.value(w) for w in path])
        star, minimum = path[-1], float(values.min())
        place = {"data": f.name, "n": len(f.y), "problem": "count", "radius": radius, "solver": OPTION_B}
        far = values - minimum > 1e-6 * (values[0] - minimum)  # nearer the last iterate is no longer the minimiser
        share = np.mean([float(g @ (w - star)) > 0 for w, g, ok in zip(path, slopes, far, strict=True) if ok])
        yield {**place, "measure": MEASURE, "variant": radius_label(radius), "value": float(share)}
        for epsilon in (values[0] - minimum) * np.array([0.5, 0.2, 0.1, 0.05, 0.02]):
            t = int(np.flatnonzero(values - minimum <= epsilon)[0])
            kappa, theta = measured(path[:t], slopes[:t], star, epsilon)
            printed, right = theorem_three(values[0] - minimum, epsilon, kappa, theta, L, 1.0 / radius)
            for name, bound in (("share of the count", printed), ("share of the corrected count", right)):
                note = {"variant": f"{radius_label(radius)}, ε = {epsilon:.2g}", "measure": name}
                yield {**place, **note, "t": t, "value": t / bound if t else 0.0}

    return Task(f"count r={radius:g}", run, 0.5)


def random_points(mode: Mode, radius: float) -> Task:
    """Random points of the ball, drawn towards the minimiser: how often and how far the gradient points away from it.

    The minimiser is the best point that sequential quadratic programming finds from three starts.
    """

    def run() -> Iterator[Row]:
        f, ball, rng = SigmoidMean(), LpBall(2, radius), np.random.default_rng(1)
        star = min((minimiser(f, ball, seed) for seed in range(3)), key=f.value)
        place = {"data": f.name, "n": len(f.y), "problem": "random points", "radius": radius, "solver": RANDOM}
        cosines = []
        for part in PARTS:
            for _ in range(POINTS):
                w = star + part * (random_point(ball, (f.d,), rng) - star)
                g = f.gradient(w)
                cosines.append(float(g @ (w - star)) / float(np.linalg.norm(g) * np.linalg.norm(w - star)))
            yield {**place, "measure": "smallest cosine", "rho": part, "value": min(cosines[-POINTS:])}
        share = float(np.mean(np.array(cosines) > 0))
        yield {**place, "measure": MEASURE, "variant": f"{radius_label(radius)}, {RANDOM}", "value": share}

    return Task(f"random points r={radius:g}", run, 1)


def minimiser(f: SigmoidMean, ball: LpBall, seed: int) -> Array:
    """A minimiser over an l_2 ball, found from a random start."""
    from scipy.optimize import minimize

    start, r = random_point(ball, (f.d,), np.random.default_rng(seed)), ball.radius
    inside = {"type": "ineq", "fun": lambda w: 1 - w @ w / r**2, "jac": lambda w: -2 * w / r**2}
    options = {"maxiter": 2_000, "ftol": 1e-14}
    found = minimize(f.value, start, jac=f.gradient, method="SLSQP", constraints=inside, options=options).x
    return np.asarray(found * min(1.0, r / float(np.linalg.norm(found))))


def measured(path: list[Array], slopes: list[Array], star: Array, epsilon: float) -> tuple[float, float]:
    """The smallest κ and the largest θ with which the conditions of Theorem 3 hold along a run."""
    kappa, theta = 0.0, math.inf
    for w, g in zip(path, slopes, strict=True):
        size, towards = float(np.linalg.norm(g)), float(g @ (w - star))
        kappa = max(kappa, epsilon * size / towards if towards > 0 else math.inf)
        theta = min(theta, size / epsilon)
    return kappa, theta


def theorem_three(
    start: float, epsilon: float, kappa: float, theta: float, L: float, alpha: float
) -> tuple[float, float]:
    """The count as printed, times f(w_1) - f*, and with the factors that its proof loses (alpha, and theta squared)."""
    if not theta < math.inf:
        return math.inf, math.inf
    first = 2 * kappa / (theta * epsilon**2)
    printed = max(first, 8 * L * kappa / (theta * epsilon**3))
    return start * printed, start * max(first, 8 * L * kappa / (alpha * theta**2 * epsilon**3))


def judge_count(table: Any) -> Finding:
    """Whether the iterations to each ε are at most those of the theorem, and of its corrected form."""
    found = judge_largest(1.0, "iterations over the count", measure="share of the count")(table)
    right = select(table, measure="share of the corrected count")["value"]
    if not len(right):
        return found
    note = "κ and θ are the best that hold along the run; the printed count lacks α and a θ, with them at most "
    return Finding(found.verdict, found.ours, f"{found.reason}; {note}{number(float(right.max()))}", found.numbers)


def judge_definition(table: Any) -> Finding:
    """Whether the gradient points away from the minimiser at all points tried, as the definition asks."""
    rows = select(table, measure=MEASURE)
    states = {str(v): bool(x == 1) for v, x in zip(rows["variant"], rows["value"], strict=True)}
    shown = [f"{x:.1%} of the points at {v}" for v, x in zip(rows["variant"], rows["value"], strict=True)]
    brief = f"{span(100 * rows['value'], ' %', 1)} of the points at {len(rows)} settings"
    return decided(states, shown, "at every point", "not at every point", brief=brief)


def panels(table: Any) -> list[Panel | None]:
    """Iterations over Theorem 3's count, as printed and corrected, and where the gradient points as is defined."""
    out = list[Panel | None]()
    for key, name in (("printed", "share of the count"), ("corrected", "share of the corrected count")):
        rows = select(table, measure=name)
        rows = rows.assign(setting=[radius_label(r) for r in rows["radius"]])
        title = f"Theorem 3: iterations of option B to each ε over the count, {SAID[key]}"
        out.append(limit_panel(f"count-{key}", title, rows, {"claimed: at most 1": 1.0}, "iterations to ε",
                               "iterations over the count", "setting", "t"))  # fmt: skip
    rows = select(table, measure=MEASURE)
    places = {
        (RANDOM if name == RANDOM else f"iterates of {name}", float(r)): (float(share), bool(share == 1))
        for name, r, share in zip(rows["solver"], rows["radius"], rows["value"], strict=True)
    }
    title = "Squared sigmoid: share of the points at which the gradient points away from the minimiser"
    out.append(state_map("map-definition", title, places, "All of them", "radius", "points"))
    rows = select(table, measure="smallest cosine")
    rows = rows.assign(setting=[radius_label(r) for r in rows["radius"]])
    title = "Squared sigmoid: the smallest cosine between the gradient and the way from the minimiser, at random w"
    xlabel = "part of the way from the minimiser to a random point of the ball"
    out.append(limit_panel("definition", title, rows, {"the definition: more than 0": 0.0}, xlabel, "cosine",
                           "setting", "rho", logy=False))  # fmt: skip
    return out


SAID = {"printed": "as printed", "corrected": "with the α and the θ that it lacks"}
CLAIMS = (
    Claim("count", "Within ε after at most max(2κ/(θε²), 8Lκ/(θε³)) iterations, times f(w₁) − f*", "ratio ≤ 1",
          "Theorem 3, Section 5", "holds if the iterations of option B to each of five ε at three radii are at most "
          "the count", judge_count, "count"),
    Claim("definition", "The squared sigmoid loss is strictly-locally-quasi-convex", "every w", "Appendix B.1",
          "holds at radii where ⟨∇f(w), w − w*⟩ > 0 at every iterate of option B whose error is above 1e-6 of the "
          f"first, and at {POINTS * len(PARTS):,} random w: {POINTS} points of the ball at each of {len(PARTS)} parts "
          "of the way to them from w*", judge_definition, "definition map-definition"),
)  # fmt: skip
