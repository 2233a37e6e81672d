"""Theorem 1's constant: how it grows with the dimension, with 1/alpha and with 1/delta."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from reproduction.base import Claim, Finding, Mode, Panel, Row, Series, Task, Verdict
from reproduction.judging import UNMEASURED, select
from reproduction.words import listed, number

#: The power of each in the bound.
POWERS = {"d": 1.0, "1/α": 2.0, "1/δ": 2.0}
#: A fitted power counts as the bound's up to this much more.
MARGIN = 0.1
#: Why the error may grow faster than the bound over our grid.
EXPLAINED = {
    "1/α": "; here 1/α is the radius, and as it grows the gradient at the solution shrinks, which the bound covers "
    "by d/δ² and not by α"
}


def constants(mode: Mode) -> Task:
    """Sup t² (f(w_t) - f*) of PA on h over d, 1/alpha and 1/delta, and its share of dL/(α²δ²), with L = 1.

    Where xi is not the subject, delta is 1, which makes the bound as small as it can be.
    """

    def run() -> Iterator[Row]:
        many = _constants(30, 0.5, 20 if mode == "quick" else 200)
        grid = [("d", float(d), max(_constants(d, 0.5, 3)), d * 0.5**2) for d in (3, 10, 30, 100, 300)]
        grid += [("1/α", r, max(_constants(30, r, 3)), 30 * r**2) for r in (0.1, 0.2, 0.4, 0.8)]
        for delta in (0.5, 0.2, 0.1, 0.05):
            grid.append(("1/δ", 1 / delta, float(np.quantile(many, 1 - delta)), 30 * 0.5**2 / delta**2))
        for of, x, value, bound in grid:
            place = {"problem": "constants", "variant": of, "rho": x}
            yield {**place, "measure": "constant", "value": value}
            yield {**place, "measure": "share", "value": value / bound}

    return Task("constants", run, 1 if mode == "quick" else 4)


def _constants(d: int, rho: float, seeds: int) -> list[float]:
    """Sup over 10 ≤ t ≤ 300 of t² times the error, where it is above epsilon, for several xi; f has L = 1."""
    rng = np.random.default_rng(d)
    values, c = np.geomspace(1e-2, 1.0, d), rng.standard_normal(d)
    c /= np.linalg.norm(c)
    oracle, out = paper.lp_oracle(2, rho), []

    def f(w: Array) -> float:
        return float(0.5 * (w - c) @ (values * (w - c)))

    def gradient(w: Array) -> Array:
        return np.asarray(values * (w - c))

    lam = _multiplier(values, c, rho)
    star = f(values * c / (values + lam))
    epsilon = 1e-4 * f(np.zeros(d))
    for seed in range(seeds):
        xi = paper.on_the_sphere((d,), np.random.default_rng(seed))
        _, of_h = paper.perturbed(f, gradient, paper.largest_theta(epsilon, 2 * rho), xi)
        iterates = paper.primal_averaging(of_h, oracle, np.zeros(d), paper.Averaged())
        errors = np.array([f(w) - star for w in islice(iterates, 300)])
        t = np.arange(1, 301)
        kept = (t >= 10) & (errors > epsilon)
        out.append(float(np.max(t[kept] ** 2 * errors[kept])) if kept.any() else float(100 * errors[9]))
    return out


def _multiplier(values: Array, c: Array, r: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda lam: np.linalg.norm(values * c / (values + lam)) - r, 0.0, 1e6))


def _growth(rows: Any) -> float:
    """The power with which the constant grows over a grid."""
    return float(np.polyfit(np.log(rows["rho"]), np.log(rows["value"]), 1)[0]) if len(rows) > 2 else math.nan


def _power(of: str, exponent: float) -> str:
    """A power in a sentence."""
    return f"{of if len(of) == 1 else f'({of})'}^{f'{exponent:.2f}' if exponent % 1 else f'{exponent:g}'}"


def judge_constant(of: str, power: str) -> Any:
    """Whether sup t² error is at most dL/(α²δ²), with the constant 1, at every place of the grid."""

    def judge(table: Any) -> Finding:
        rows, shares = (select(table, problem="constants", variant=of, measure=m) for m in ("constant", "share"))
        if not len(shares):
            return UNMEASURED
        worst, growth = float(shares["value"].max()), _growth(rows)
        verdict = Verdict.HOLDS if worst <= 1 else Verdict.FAILS
        never = "never " if worst <= 1 else ""
        notes = [f"the bound is {never}exceeded, with its constant taken as 1; it grows like {power}"]
        if of == "1/δ":
            notes.append("δ enters neither the algorithm nor θ, so it can only speak of ξ")
        if growth > POWERS[of] + MARGIN:
            notes.append(f"over this grid the error grows faster, like {_power(of, growth)}, from far below the bound")
        shown = f"at most {number(worst)} of the bound; grows like {_power(of, growth)} over the grid"
        return Finding(verdict, shown, "; ".join(notes))

    return judge


def judge_growth(table: Any) -> Finding:
    """Whether the error grows no faster than the bound in each of the three; faster growth on a grid decides nothing.

    A bound from above, with an unstated constant, is not refuted by the growth of what lies far below it.
    """
    rows = select(table, problem="constants", measure="constant")
    grown = {of: _growth(select(rows, variant=of)) for of in POWERS if len(select(rows, variant=of))}
    if not grown:
        return UNMEASURED
    slow = [of for of, growth in grown.items() if growth <= POWERS[of] + MARGIN]
    notes = [f"no faster than the bound in {listed(slow)}"] if slow else []
    for of, growth in grown.items():
        if growth > POWERS[of] + MARGIN:
            notes.append(f"faster in {of} ({_power(of, growth)} against {_power(of, POWERS[of])}), which an upper "
                         "bound with an unstated constant allows on a finite grid" + EXPLAINED.get(of, ""))  # fmt: skip
        elif math.isnan(growth):
            notes.append(f"too few places in {of}")
    shown = "; ".join(f"{_power(of, g)} (the bound: {_power(of, POWERS[of])})" for of, g in grown.items())
    return Finding(Verdict.HOLDS if len(slow) == len(POWERS) else Verdict.OPEN, shown, "; ".join(notes))


def panels(table: Any) -> list[Panel | None]:
    """The growth of the constant, with the claimed power above each line."""
    rows = select(table, problem="constants", measure="constant")
    if not len(rows):
        return []
    series, grown = [], []
    for k, (of, limit) in enumerate(POWERS.items()):
        part = select(rows, variant=of)
        x, y = part["rho"].to_numpy(), part["value"].to_numpy()
        claimed = 1.5 * y[0] * (x / x[0]) ** limit
        series.append(Series(of, x, y, colour=k))
        series.append(Series(f"claimed: {_power(of, limit)}", x, claimed, style="reference", colour=k))
        grown.append(f"{_power(of, _growth(part))} where {_power(of, limit)} is the bound's")
    alt = f"sup t² (f(w_t) − f*) against d, 1/α and 1/δ grows like {'; '.join(grown)}."
    title = "Theorem 1: growth of the constant"
    return [Panel("constants", title, "d, 1/α, 1/δ", "sup t² (f(w_t) − f*)", series, alt=alt)]


RULE = (
    "holds if sup t²(f(w_t) − f*) is at most dL/(α²δ²), with the unstated constant taken as 1, over the whole grid; "
    "the theorem is an upper bound, so less is no failure"
)
BOUNDS = tuple(
    Claim(key, f"f(w_t) − f* is at most of the order dL/(α²δ²t²), over a grid of {of}", shown, "Theorem 1", RULE,
          judge_constant(of, power), "constants")
    for key, of, power, shown in (
        ("constant-d", "d", "d", "d¹"),
        ("constant-alpha", "1/α", "1/α²", "α⁻²"),
        ("constant-delta", "1/δ", "1/δ²", "δ⁻²"),
    )
)  # fmt: skip
CLAIMS = (
    *BOUNDS,
    Claim("constant-growth", "The error depends on d, α and δ like d/(α²δ²) or less", "d¹, α⁻², δ⁻²", "Theorem 1",
          "holds if the power fitted to sup t²(f(w_t) − f*) over each grid is at most the bound's plus 0.1; a larger "
          "one decides nothing, because the bound is one from above and its constant is not stated", judge_growth,
          "constants"),
)  # fmt: skip
