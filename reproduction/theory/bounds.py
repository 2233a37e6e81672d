"""The bounds (1), (2) and (3) on the error, against real runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from reproduction.base import Claim, Mode, Panel, Row, Task
from reproduction.checks_drawn import ratio_bars
from reproduction.counting import OnGram
from reproduction.iteration_time import least_squares
from reproduction.judging import judge_largest, rho_label, select

RHOS = (0.5, 0.9, 2.0)
#: Iterations of each run.
MOST = 500


def bounds(mode: Mode) -> Task:
    """The largest share of bounds (1), (2) and (3) that the error uses, over all t of real runs."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        for rho in RHOS:
            case = OnGram(problem, rho)
            seen: list[Array] = []

            def oracle(c: Array, case: OnGram = case, seen: list[Array] = seen) -> Array:
                seen.append(case.oracle(c))
                return seen[-1]

            D, shares = 2.0 * case.ball.radius, {"bound (1)": 0.0, "bound (2)": 0.0, "bound (3)": 0.0}
            w, total = case.zero, 0.0
            for t, new in enumerate(islice(paper.frank_wolfe(case.gradient, oracle, w, paper.option_a), MOST), start=1):
                total += float(np.sum((seen[-1] - w) ** 2))
                error, w = problem.error(new, case.best), new
                shares["bound (1)"] = max(shares["bound (1)"], error * t * (t + 1) / (2 * case.L * total))
                shares["bound (2)"] = max(shares["bound (2)"], error * (t + 1) / (2 * case.L * D**2))
            seen[:], total = [case.zero], 0.0
            pa = paper.primal_averaging(case.gradient, oracle, case.zero, paper.Averaged())
            for t, new in enumerate(islice(pa, MOST), start=1):
                total += float(np.sum((seen[-1] - seen[-2]) ** 2))
                share = problem.error(new, case.best) * t * (t + 1) / (2 * case.L * total)
                shares["bound (3)"] = max(shares["bound (3)"], share)
            for name, worst in shares.items():
                place = {**problem.place, "problem": name, "rho": rho, "variant": rho_label(rho)}
                yield {**place, "measure": "share", "value": worst}

    return Task("bounds", run, 0.2)


def panels(table: Any) -> list[Panel | None]:
    """The largest share of each bound that an error uses, by radius."""
    title = f"Bounds (1) to (3): the largest error over the bound in {MOST} iterations"
    rows = select(table, problem=["bound (1)", "bound (2)", "bound (3)"])
    return [ratio_bars("bounds", title, rows, {"claimed: at most 1": 1.0}, "error over the bound")]


RULE = f"holds if the error over the bound never exceeds 1 in {MOST} iterations, at three radii"
CLAIMS = tuple(
    Claim(
        f"bound-{k}",
        text,
        "ratio ≤ 1",
        where,
        RULE,
        judge_largest(1.0, "error over the bound", problem=f"bound ({k})"),
        "bounds",
    )
    for k, text, where in (
        (1, "FW: f(w_t) − f* ≤ 2L/(t(t+1)) Σ ‖v_i − w_i₋₁‖²", "Equation (1), Section 4.1"),
        (2, "FW: f(w_t) − f* ≤ 2LD²/(t+1)", "Equation (2), Section 4.1"),
        (3, "PA: f(w_t) − f* ≤ 2L/(t(t+1)) Σ ‖v_i − v_i₋₁‖²", "Equation (3), Section 4.1"),
    )
)
