"""Lemmas 1 and 2 on random directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.sets import LpBall
from reproduction.base import Claim, Finding, Mode, Origin, Panel, Row, Series, Task, Verdict
from reproduction.checks_drawn import ratio_bars
from reproduction.judging import UNMEASURED, judge_largest, select
from reproduction.words import ball_name

DELTA = 0.1


def lemma_one(mode: Mode) -> Task:
    """The largest ratio of the left side to the printed right side over random pairs of directions."""

    def run() -> Iterator[Row]:
        rng = np.random.default_rng(0)
        for p in (2.0, 1.5, 1.1):
            ball, worst = LpBall(p, 1.0), 0.0
            for d in (2, 5, 20, 90):
                for size in (1.0, 1e-2, 1e-5):
                    for _ in range(20 if mode == "quick" else 200):
                        a = rng.standard_normal(d)
                        b = a + size * rng.standard_normal(d)
                        worst = max(worst, _lipschitz(ball, a, b), _lipschitz(ball, a, a[::-1].copy()))
            place = {"problem": "lemma 1", "set": ball_name(p), "p": p, "variant": ball_name(p)}
            yield {**place, "measure": "ratio", "value": worst}

    return Task("lemma 1", run, 0.2 if mode == "quick" else 2)


def _lipschitz(ball: LpBall, p: Array, q: Array) -> float:
    apart = float(np.linalg.norm(p - q))
    if apart == 0.0:
        return 0.0
    moved = float(np.linalg.norm(ball.lmo(-p) - ball.lmo(-q)))
    alpha = ball.strong_convexity(p.shape)
    return moved * alpha * float(np.linalg.norm(p) + np.linalg.norm(q)) / apart


def lemma_two(mode: Mode) -> Task:
    """How often the gradient of h is smaller than the bound, as printed and with the factor theta put back."""

    def run() -> Iterator[Row]:
        rng, draws = np.random.default_rng(0), 100_000 if mode == "quick" else 1_000_000
        for d in (2, 3, 10, 90):
            xi = rng.standard_normal((draws, d))
            first = xi[:, 0] / np.linalg.norm(xi, axis=1)
            level = DELTA * np.sqrt(np.pi / (2 * d))
            here = {"problem": "lemma 2", "t": d, "note": f"δ = {DELTA:g}"}
            theta = 1e-3  # at a point where the gradient of f vanishes, the gradient of h has the norm theta
            yield {**here, "measure": "printed", "value": float(theta < level)}
            yield {**here, "measure": "one-sided", "value": float(np.mean(first <= level))}
            # The worst place for |a + xi_1| <= level, over a grid of a.
            worst = max(float(np.mean(np.abs(a + first) <= level)) for a in np.linspace(-1, 1, 41))
            yield {**here, "measure": "two-sided", "value": worst}

    return Task("lemma 2", run, 0.5 if mode == "quick" else 6)


def judge_lemma_one(table: Any) -> Finding:
    """Whether the ratio never exceeds 1 (as printed)."""
    rows = select(table, problem="lemma 1")
    found = judge_largest(1.0, "ratio of the left side to the printed right side", problem="lemma 1")(table)
    if not len(rows):
        return found
    doubled = "holds" if float(rows["value"].max()) <= 2 + 1e-6 else "fails too"
    proof = (
        f"with a factor 2 on the right it {doubled}; the sum of the proof's two inequalities gives "
        "‖x_p − x_q‖ ≤ ‖p/‖p‖ − q/‖q‖‖/α, and the distance of the two directions is at most 2‖p − q‖/(‖p‖ + ‖q‖), "
        "not half of that; on the unit l₂ ball with equal norms the left side is twice the printed right side"
    )
    return Finding(found.verdict, found.ours, f"{proof}; {found.reason}")


def judge_lemma_two(kind: str, why: str) -> Any:
    """Whether the chance of failure is at most delta in every dimension tried."""

    def judge(table: Any) -> Finding:
        rows = select(table, problem="lemma 2", measure=kind)
        if not len(rows):
            return UNMEASURED
        chance = dict(zip(rows["t"].astype(int), rows["value"], strict=True))
        good = [d for d, c in chance.items() if c <= DELTA * 1.05]
        shown = ", ".join(f"{c:.3f} (d = {d})" for d, c in chance.items())
        verdict = Verdict.HOLDS if len(good) == len(chance) else Verdict.CHOICE if good else Verdict.FAILS
        of = f"for d = {', '.join(map(str, good))}" if good else "in no dimension tried"
        return Finding(verdict, shown, f"{why}; chance of failure against δ = {DELTA:g}, at most δ {of}")

    return judge


def panels(table: Any) -> list[Panel | None]:
    """The ratios of Lemma 1 by ball, and the chances of Lemma 2 by dimension."""
    return [ratios(table), chances(table)]


def ratios(table: Any) -> Panel | None:
    """The largest ratio of Lemma 1's sides by ball."""
    rows = select(table, problem="lemma 1").assign(problem="largest ratio found")
    title = "Lemma 1: left side over the printed right side"
    limits = {"as printed: at most 1": 1.0, "with a factor 2: at most 2": 2.0}
    return ratio_bars("lemma-1", title, rows, limits, "ratio")


def chances(table: Any) -> Panel | None:
    """The chances of Lemma 2 by dimension."""
    rows = select(table, problem="lemma 2", measure=["one-sided", "two-sided"])
    if not len(rows):
        return None
    series = [
        Series(str(kind), part["t"].to_list(), part["value"].to_list(), style="points")
        for kind, part in rows.groupby("measure", sort=False)
    ]
    series.append(Series("δ", [2, 90], [DELTA, DELTA], style="reference", colour=6))
    alt = "Chance that the first coordinate is below the level of Lemma 2, by dimension: one-sided above one half."
    title = f"Lemma 2: chance of failure for δ = {DELTA:g}"
    return Panel("lemma-2", title, "dimension d", "probability", series, logy=False, alt=alt)


CHANCE = f"holds if the measured chance is at most 1.05 δ, δ = {DELTA:g}, in every dimension; for those where it is"
CLAIMS = (
    Claim("lemma-1", "‖x_p − x_q‖ ≤ ‖p − q‖ / (α(‖p‖ + ‖q‖))", "ratio ≤ 1", "Lemma 1, Appendix A.1",
          "holds if the largest ratio of the two sides is at most 1", judge_lemma_one, "lemma-1"),
    Claim("lemma-2", "‖∇h(w)‖ ≥ δ√(π/2d) with probability 1 − δ, without θ", "failure ≤ δ", "Lemma 2, Appendix A.1",
          "holds if the chance of failure, at a point with ∇f = 0 and θ = 10⁻³, is at most δ",
          judge_lemma_two("printed", "where ∇f = 0, ‖∇h‖ = θ whatever ξ is: the bound needs a θ, with which it "
                          "holds for d ≥ 3 by the corrected step"), "lemma-2"),
    Claim("lemma-2-one", "Pr(ξ₁ ≤ δ√(π/2d)) ≤ δ, the step of the proof", "≤ δ", "proof of Lemma 2, Appendix A.1",
          CHANCE, judge_lemma_two("one-sided", "ξ₁ is symmetric, so the chance is at least one half; with |ξ₁|, as the "
                                  "proof begins, it holds for d ≥ 3: see the corrected step"), "lemma-2"),
    Claim("lemma-2-two", "Pr(|a + ξ₁| ≤ δ√(π/2d)) ≤ δ for every a, the corrected step", "≤ δ", "after Lemma 2",
          CHANCE, judge_lemma_two("two-sided", "it needs d ≥ 3"), "lemma-2", Origin.OURS),
)  # fmt: skip
