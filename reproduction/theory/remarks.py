"""Remarks of the paper: strong convexity of Schatten balls, normalised gradient descent, the group oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from projfree.sets import GroupBall, LpBall
from reproduction.base import Claim, Finding, Mode, Origin, Panel, Row, Series, Task, Verdict
from reproduction.checks_drawn import holds_map
from reproduction.counting import OnGram
from reproduction.drawing import bar_panel, noted, state_map
from reproduction.iteration_time import least_squares
from reproduction.judging import UNMEASURED, all_true, select
from reproduction.words import ball_name, number, span

#: The largest norm of a set that stays inside the unit ball, up to rounding.
INSIDE = 1 + 1e-9


def convexity(mode: Mode) -> Task:
    """The set of Definition 1 with alpha = (p-1)/r: by how much its largest norm exceeds the radius."""

    def run() -> Iterator[Row]:
        rng = np.random.default_rng(0)
        for p in (1.1, 1.5, 2.0):
            ball, worst = LpBall(p, 1.0), {"its own norm": 0.0, "the Frobenius norm": 0.0}
            for _ in range(400):  # singular values of matrices that share their vectors: the norm is that of a vector
                u, v = _pair(rng, p)
                u, v = u / ball.norm(u), v / ball.norm(v)
                middle = 0.5 * (u + v)
                slope = np.sign(middle) * np.abs(middle) ** (p - 1)
                for name, apart, z in (
                    ("its own norm", ball.norm(u - v), middle / ball.norm(middle)),
                    ("the Frobenius norm", float(np.linalg.norm(u - v)), slope / np.linalg.norm(slope)),
                ):
                    reached = ball.norm(middle + (p - 1) / 8 * apart**2 * z)
                    worst[name] = max(worst[name], float(reached))
            for name, value in worst.items():
                place = {"problem": "strong convexity", "set": ball_name(p, "Schatten"), "p": p, "variant": name}
                yield {**place, "measure": "largest norm", "value": value}

    return Task("strong convexity", run, 0.5)


def _pair(rng: np.random.Generator, p: float, d: int = 20) -> tuple[Array, Array]:
    """Two points: half of the time at random, else along the flattest direction where one entry is large."""
    if rng.uniform() < 0.5:
        return rng.standard_normal(d), rng.standard_normal(d)
    x = np.full(d, rng.uniform(0.005, 0.3))
    x[0] = 1.0
    normal = x ** (p - 1)
    h = -normal * normal[0] / float(normal[1:] @ normal[1:])
    h[0] = 1.0  # orthogonal to the normal, and almost all of it in the large entry
    size = rng.uniform(0.05, 0.5)
    return x + size * h, x - size * h


def normalised(mode: Mode) -> Task:
    """Frank-Wolfe on an l_2 ball against normalised gradient descent from the same point with the same steps."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        case = OnGram(problem, 0.5)
        w = 0.5 * case.oracle(-np.ones(len(case.zero)))
        g = case.gradient(w)
        direction = float(np.linalg.norm(case.oracle(g) / case.ball.radius + g / np.linalg.norm(g)))
        step = next(paper.frank_wolfe(case.gradient, case.oracle, w, lambda *_: 0.3))
        moved = w - 0.3 * case.ball.radius * g / np.linalg.norm(g)
        apart = float(np.linalg.norm(step - moved) / case.ball.radius)
        shrunk = float(np.linalg.norm(step - (moved - 0.3 * w)) / case.ball.radius)
        here = {**problem.place, "problem": "normalised gradient"}
        yield {
            **here,
            "variant": "the direction, which is the normalised gradient",
            "measure": "same",
            "value": float(direction < 1e-12),
        }
        yield {
            **here,
            "variant": "the iterate, which also shrinks by 1 − γ",
            "measure": "same",
            "value": float(apart < 1e-12),
        }
        yield {**here, "measure": "apart", "value": apart}
        yield {**here, "measure": "apart after shrinking", "value": shrunk}

    return Task("normalised gradient", run, 0.2)


def group_oracle(mode: Mode) -> Task:
    """What the group oracle of the paper's source reaches, in units of the optimum."""

    def run() -> Iterator[Row]:
        rng = np.random.default_rng(0)
        for p, q in ((1.5, 1.5), (1.2, 1.8), (1.8, 1.2)):
            ball, C = GroupBall(p, q, 1.0), rng.standard_normal((6, 4))
            z, s = p / (p - 1), q / (q - 1)
            rows, other = (np.sum(np.abs(C) ** e, axis=1, keepdims=True) ** (1 / e) for e in (z, s))
            whole = float(np.sum(rows**s) ** (1 / s))
            source = -(whole ** (1 - s)) * other ** (s - z) * np.sign(C) * np.abs(C) ** (z - 1)
            for name, V in (("source", source), ("corrected", paper.group_oracle(p, q, 1.0)(C))):
                reached = float(-np.sum(C * V)) / ball.dual_norm(C)
                yield {"problem": "group oracle", "variant": f"p = {p:g}, q = {q:g}", "measure": name, "value": reached}

    return Task("group oracle", run, 0.2)


def _beyond(largest: float) -> float:
    """By how much a largest norm exceeds that of the unit ball, up to rounding."""
    return float(largest) - 1 if largest > INSIDE else 0.0


def judge_convexity(table: Any) -> Finding:
    """Whether the balls of Definition 1 stay inside, in the ball's own norm and in the Frobenius norm."""
    rows = select(table, problem="strong convexity")
    fine = rows.assign(value=(rows["value"] <= INSIDE).astype(float))
    shown = [
        f"{name}: exceeds r by up to {number(_beyond(g['value'].max()))} r"
        for name, g in rows.groupby("variant", sort=False)
    ]
    found = all_true(fine, shown, "inside", "not inside")
    return Finding(
        found.verdict, found.ours, f"{found.reason}; Lemma 1 and its users need the Frobenius (Euclidean) norm"
    )


def panels(table: Any) -> list[Panel | None]:
    """Where Schatten balls are strongly convex, one step against normalised gradient descent, and group oracles."""
    return [strong_map(table), *steps(table), oracles(table)]


def strong_map(table: Any) -> Panel | None:
    """Where the balls of Definition 1 stay inside, by norm and exponent."""
    rows = select(table, problem="strong convexity")
    places = {
        (str(norm), str(ball)): (_beyond(largest), bool(largest <= INSIDE))
        for norm, ball, largest in zip(rows["variant"], rows["set"], rows["value"], strict=True)
    }
    title = "Strong convexity with α = (p − 1)/r: how far the sets of Definition 1 leave the ball, in units of r"
    return state_map("map-alpha", title, places, "Nowhere beyond it", "ball", "norm of Definition 1 (not stated)")


def steps(table: Any) -> list[Panel | None]:
    """What agrees in one step of Frank-Wolfe and of normalised gradient descent, and how far the iterates are apart."""
    rows = select(table, problem="normalised gradient")
    title = "One step of FW on an l₂ ball and of normalised gradient descent: what is the same"
    same = holds_map("map-normalised", title, select(rows, measure="same"), "the same to rounding", "")
    apart = select(rows, measure=["apart", "apart after shrinking"])
    if not len(apart):
        return [same]
    names = ["as it is" if kind == "apart" else "after shrinking by 1 − γ" for kind in apart["measure"]]
    title = "One step of FW on an l₂ ball and of normalised gradient descent: distance of the iterates"
    bars = Series("distance", names, apart["value"].to_list(), style="bar")
    return [same, bar_panel("normalised", title, "distance / r", [bars], noted(rows), logy=False)]


def oracles(table: Any) -> Panel | None:
    """What the group oracle reaches, as in the source and corrected."""
    rows = select(table, problem="group oracle")
    bars = [
        Series(f"{kind} formula", part["variant"].to_list(), part["value"].to_list(), style="bar")
        for kind, part in rows.groupby("measure", sort=False)
    ]
    title = "The group ball's oracle: what it reaches of the optimum"
    return bar_panel("group", title, "share of the optimum", bars, logy=False) if bars else None


def judge_normalised(table: Any) -> Finding:
    """Whether Frank-Wolfe's step is the normalised gradient step, in direction and in iterate."""
    rows = select(table, problem="normalised gradient")
    apart = select(rows, measure="apart")["value"]
    shown = [f"one step apart by {number(float(apart.iloc[0]))} r"] if len(apart) else []
    return all_true(select(rows, measure="same"), shown, "the same", "not the same")


def judge_group(table: Any) -> Finding:
    """Whether the formula in the source reaches the dual norm."""
    rows = select(table, problem="group oracle")
    if not len(rows):
        return UNMEASURED
    source, corrected = (select(rows, measure=m)["value"] for m in ("source", "corrected"))
    verdict = Verdict.HOLDS if bool(np.allclose(source, 1.0)) else Verdict.FAILS
    reason = f"with the row norm of exponent z in place of s: {span(corrected)}; the formula is not printed"
    return Finding(verdict, f"{span(source)} of the optimum", reason)


CLAIMS = (
    Claim("alpha-schatten", "The Schatten-p ball of radius r is α-strongly convex with α = (p − 1)/r", "(p − 1)/r",
          "Appendix B.4", "holds for a norm in Definition 1 if the balls it asks for stay inside (400 pairs)",
          judge_convexity, "map-alpha"),
    Claim("normalised", "On an l₂ ball FW is equivalent to normalised gradient descent", "equal", "Section 2",
          "holds for what agrees to rounding in one step from the same point", judge_normalised,
          "normalised map-normalised"),
    Claim("group", "The group ball's oracle in the paper's source minimises over the ball", "optimum",
          "source of Section 3.2, not printed", "holds if the formula reaches the dual norm", judge_group,
          "group", Origin.OURS),
)  # fmt: skip
