"""Lemma 3: the progress of option B at every iteration, on convex and on other losses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np

from projfree import paper
from projfree.sets import LpBall, random_point
from reproduction.base import Claim, Finding, Mode, Panel, Row, Task
from reproduction.checks_drawn import holds_map
from reproduction.counting import OnGram
from reproduction.definition import SigmoidMean
from reproduction.iteration_time import least_squares
from reproduction.judging import all_true, select


def lemma_three(mode: Mode) -> Task:
    """Whether option B makes the progress of Lemma 3 at every iteration, on the squared sigmoid and on squares."""

    def run() -> Iterator[Row]:
        sigmoid, squares = SigmoidMean(), least_squares(mode)
        of = squares.form
        for r in (1.0, 10.0):
            fine = progresses(sigmoid.value, sigmoid.gradient, sigmoid.L, LpBall(2, r), sigmoid.d)
            yield _row(f"squared sigmoid, r = {r:g}", fine)
        for rho in (0.5, 2.0):
            case = OnGram(squares, rho)
            fine = progresses(lambda w: of(of.point(w)), case.gradient, case.L, case.ball, len(case.zero))
            yield _row(f"squares, ρ = {rho:g}", fine)

    return Task("lemma 3", run, 0.5)


def _row(name: str, fine: bool) -> Row:
    return {"problem": "lemma 3", "variant": name, "measure": "holds", "value": float(fine)}


def progresses(f: Any, gradient: paper.Map, L: float, ball: LpBall, d: int, most: int = 100) -> bool:
    """The inequality at the iterates of option B, with the last one in the place of the minimiser."""
    oracle, alpha = paper.lp_oracle(2, ball.radius), 1.0 / ball.radius
    start = random_point(ball, (d,), np.random.default_rng(0))
    path = [start, *islice(paper.frank_wolfe(gradient, oracle, start, paper.option_b(L)), most)]
    star, ok = path[-1], True
    for w, new in pairwise(path):
        g = gradient(w)
        gamma = min(1.0, alpha * float(np.linalg.norm(g)) / (4 * L))
        ok = ok and f(new) <= f(w) + gamma / 2 * float(g @ (star - w)) + 1e-13 * abs(f(w))
    return ok


def judge_lemma_three(table: Any) -> Finding:
    """Whether the inequality holds at all iterations of all runs."""
    rows = select(table, problem="lemma 3")
    return all_true(
        rows, [f"{int(rows['value'].sum())} of {len(rows)} runs"], "at every iteration", "not at every iteration"
    )


def panels(table: Any) -> list[Panel | None]:
    """The runs in which the inequality holds at every iteration."""
    title = "Lemma 3: runs of option B in which the inequality holds throughout"
    return [holds_map("lemma-3", title, select(table, problem="lemma 3"), "at every iteration", "run")]


CLAIMS = (
    Claim("lemma-3", "Option B: f(w_t₊₁) ≤ f(w_t) + (γ_t/2)⟨w* − w_t, ∇f(w_t)⟩ with γ_t = min(1, α‖∇f(w_t)‖/4L)",
          "every t", "Lemma 3, Appendix A.3", "holds if the inequality holds at all of 100 iterations of every run",
          judge_lemma_three, "lemma-3"),
)  # fmt: skip
