"""The rules, figures and maps of the experiment on projections: shares of time against the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from projfree.checks import Array
from reproduction.base import Finding, Panel, Series, Verdict
from reproduction.drawing import bar_panel, noted, state_map
from reproduction.judging import TIME_MARGIN, UNMEASURED, decided, interval, medians, select
from reproduction.words import NOTHING, number

KIND, OURS, LIBRARY = "the paper's kind", "ours", "plain projection, a library's row gradient"
PLAIN = "plain NumPy"
CHEAP, DEAR = ("l₁", "l₂", "l∞"), ("l₁.₅", "Schatten-1", "Schatten-2", "Schatten-∞")
#: Points of per cent around one half within which a share is neither costly nor cheap.
NEAR = 5.0
ABSENT = "not measured in the paper's way"
#: The paper's ranges in per cent, by method and ball.
CLAIMED: dict[str, dict[str, tuple[float, float]]] = {
    "GD": {"l₁": (0, 7), "l₁.₅": (69, 99), "l₂": (0, 0.03), "l∞": (0, 3), "Schatten-1": (95, 99),
           "Schatten-2": (70, 99), "Schatten-∞": (71, 99)},
    "SGD": {"l₁": (5, 20), "l₂": (5, 11), "l∞": (50, 65)},
}  # fmt: skip


def shares(table: Any, ball: str, method: str, size: str) -> Array:
    """The shares of the paper's kind of projection in each round, in per cent; empty where there is none."""
    rows = select(table, measure="share", note=KIND, set=ball, solver=method, variant=size)
    return np.asarray(100 * rows.sort_values("seed")["value"].to_numpy())


def tolerated(method: str, ball: str) -> tuple[float, float]:
    """The paper's range of shares, widened by 5 points, or upwards to twice its end where that is below 10 %."""
    low, high = CLAIMED[method][ball]
    return low - 5, 2 * high if high < 10 else high + 5


def judged_shares(table: Any, method: str, ball: str) -> dict[str, tuple[Array, bool]]:
    """The shares in per cent, and whether their median is tolerated, by size (in SGD: row gradient)."""
    least, most = tolerated(method, ball)
    rows = select(table, measure="share", solver=method, set=ball, note=[KIND, LIBRARY])
    out = {}
    for (size, kind), group in rows.groupby(["variant", "note"], sort=False):
        each = np.asarray(100 * group["value"].to_numpy())
        name = str(size) if method == "GD" else {KIND: PLAIN}.get(kind, str(kind))
        out[name] = each, bool(least <= np.median(each) <= most)
    return out


def judge_range(method: str, ball: str) -> Any:
    """Whether our shares lie within the paper's range, up to its tolerance."""
    (low, high), (least, most) = CLAIMED[method][ball], tolerated(method, ball)

    def judge(table: Any) -> Finding:
        found = judged_shares(table, method, ball)
        if not found:
            missing = "CVXPY is not installed; pip install -e '.[reproduce]'" if ball == "l₁.₅" else UNMEASURED.reason
            return Finding(Verdict.OPEN, UNMEASURED.ours, missing)
        states: dict[str, bool | None] = {name: inside for name, (_, inside) in found.items()}
        shown = []
        for name, (each, inside) in found.items():
            flips = int(sum((least <= x <= most) != inside for x in each))
            shown.append(f"{number(float(np.median(each)), 1)} % ({name}; flips in {flips} of {len(each)})")
        middles = [float(np.median(each)) for each, _ in found.values()]
        if method == "SGD" and not any(states.values()) and min(middles) < low and max(middles) > high:
            states["a step of a cost between the two, with which the share falls"] = None
        return decided(states, shown, f"within {low:g}–{high:g} %, up to the tolerance,", "outside", "not measured")

    return judge


def balls_of(table: Any) -> list[str]:
    """The balls of the run, also those that the paper's kind of projection was not measured on."""
    return list(dict.fromkeys(select(table, measure="share")["set"]))


def costly_at(each: Array, ball: str) -> bool | None:
    """Whether shares of GD on all rows are above one half exactly where the paper calls the ball costly."""
    if not len(each) or abs(float(np.median(each)) - 50) < NEAR:
        return None
    return bool((np.median(each) > 50) == (ball in DEAR))


def judge_costly(table: Any) -> Finding:
    """Whether GD on all rows spends more than half of its time projecting exactly where no cheap closed form exists."""
    states, shown = dict[str, bool | None](), list[str]()
    for ball in balls_of(table):
        each = shares(table, ball, "GD", "100%")
        states[ball] = costly_at(each, ball)
        shown.append(f"{interval(each, 50.0)} % ({ball})" if len(each) else f"{NOTHING} ({ball})")
    open_ = f"{ABSENT}, or within {NEAR:g} points of one half,"
    return decided(states, shown, "as claimed (dear above, cheap below one half)", "the other way round", open_)


def apart_by(a: Array, b: Array) -> tuple[float, bool | None]:
    """By how many points the first shares exceed the second, in the median, and whether that is more than nothing."""
    if not len(a) or not len(b):
        return math.nan, None
    apart = float(np.median(a) - np.median(b))
    return apart, None if abs(apart) < 0.5 else apart > 0


def judge_order(first: tuple[str, str], last: tuple[str, str], what: str, otherwise: str) -> Callable[[Any], Finding]:
    """Whether the share of the first method and size is larger than that of the last, for each ball."""

    def judge(table: Any) -> Finding:
        states, shown = dict[str, bool | None](), list[str]()
        for ball in balls_of(table):
            a, b = (shares(table, ball, *one) for one in (first, last))
            apart, states[ball] = apart_by(a, b)
            if math.isnan(apart):
                shown.append(f"{NOTHING} ({ball})")
                continue
            flips = int(np.sum((a[: len(b)] > b[: len(a)]) != (apart > 0)))
            both = f"{number(float(np.median(a)), 1)} against {number(float(np.median(b)), 1)} %"
            shown.append(f"{both} ({ball}; flips in {flips} of {min(len(a), len(b))})")
        return decided(states, shown, what, otherwise, f"{ABSENT}, or equal to half a point,")

    return judge


def in_calls(projection: Array, oracle: Array) -> tuple[float, bool | None]:
    """The time of a projection in calls of the oracle, in the median, and whether that is more than one."""
    ratio = float(np.median(projection) / np.median(oracle))
    return ratio, None if abs(ratio - 1) < TIME_MARGIN else ratio > 1


def judge_cheaper(table: Any) -> Finding:
    """Whether a call of our oracle takes less time than one of our projection, for each ball."""
    rows = select(table, measure="call").sort_values("seed", kind="stable")
    states, shown = dict[str, bool | None](), list[str]()
    for ball, calls in rows.groupby("set", sort=False):
        slow, fast = (select(calls, solver=name)["value"].to_numpy() for name in ("projection", "oracle"))
        _, states[str(ball)] = in_calls(slow, fast)
        shown.append(f"{interval(slow[: len(fast)] / fast[: len(slow)], 1.0)} ({ball})")
    return decided(states, shown, "the projection takes longer", "the oracle takes longer", "too near to tell")


def judge_not(ball: str, proof: str) -> Any:
    """A statement that something cannot be done, refuted where the cheap way gives the same."""

    def judge(table: Any) -> Finding:
        rows = select(table, measure="same", set=ball)
        if not len(rows):
            return UNMEASURED
        same = bool((rows["value"] == 1).all())
        own = select(table, measure="cheap way", set=ball)["value"]
        slow = select(table, measure="projection", set=ball, note=KIND)["value"]
        both = len(own) and len(slow)
        cost = f"; the paper's kind takes {number(float(slow.median() / own.median()), 1)}× the time" if both else ""
        shown = f"{rows['variant'].iloc[0]} {'agree' if same else 'differ'}{cost}"
        return Finding(
            Verdict.FAILS if same else Verdict.HOLDS, shown, proof if same else "the cheap way gives something else"
        )

    return judge


def maps(table: Any) -> list[Panel | None]:
    """Where the shares lie in the paper's ranges, and where their trends are as claimed."""
    trends = dict[tuple[str, str], tuple[float, bool | None]]()
    for ball in balls_of(table):
        of_gd, of_one, of_sgd = (
            shares(table, ball, *one) for one in (("GD", "100%"), ("GD", "1%"), ("SGD", "one row"))
        )
        middle = float(np.median(of_gd)) if len(of_gd) else math.nan
        trends["share of GD on all rows", ball] = middle, costly_at(of_gd, ball)
        trends["SGD's share above GD's by", ball] = apart_by(of_sgd, of_gd)
        trends["from 1 % to all rows it falls by", ball] = apart_by(of_one, of_gd)
    axes = {"xlabel": "ball", "ylabel": "per cent and points", "note": _of_ratings(table)}
    spent = {
        ("a projection in calls of the oracle", str(ball)): in_calls(
            *(select(calls, solver=name)["value"].to_numpy() for name in ("projection", "oracle"))
        )
        for ball, calls in select(table, measure="call").groupby("set", sort=False)
    }
    title = "Where projections are dear and cheap, larger in SGD and falling with the size, as claimed"
    out = [state_map("map-trends", title, trends, "As the paper says", **axes)]
    for method, choice in (("GD", "size of the data"), ("SGD", "how the row gradient is computed (not stated)")):
        places = {
            (ball, name): (float(np.median(each)), inside)
            for ball in CLAIMED[method]
            for name, (each, inside) in judged_shares(table, method, ball).items()
        }
        title = f"Where the share of {method}'s time lies in the paper's range, up to the tolerance"
        axes |= {"xlabel": choice, "ylabel": "ball"}
        out.append(state_map(f"map-{method.lower()}", title, places, "In the range", **axes))
    axes |= {"xlabel": "ball", "ylabel": ""}
    return [
        *out,
        state_map("map-calls", "Where the oracle is cheaper than the projection", spent, "More than 1", **axes),
    ]


def _of_ratings(rows: Any) -> str:
    """The label of figures whose ratings were generated."""
    return "The Schatten balls: " + noted(rows[rows["stand_in"]]).lower() if rows["stand_in"].any() else ""


def panels(table: Any) -> list[Panel | None]:
    """Figures 3 and 4: bars of the shares, with the paper's, and maps."""
    out: list[Panel | None] = []
    for method, figure in (("GD", "Figure 3"), ("SGD", "Figure 4")):
        rows = select(table, measure="share", solver=method)
        series = []
        for (kind, size), bars in rows.groupby(["note", "variant"], sort=False):
            if kind == KIND or size in ("100%", "one row"):
                middles = 100 * medians(bars, ["set"])
                series.append(Series(f"{kind}, {size}", list(middles.index), middles.to_list(), style="bar"))
        ends = {ball: high for ball, (_, high) in CLAIMED[method].items()}
        if series:
            series.append(Series("paper, upper end", list(ends), list(ends.values()), style="bar", colour=6))
            title = f"{figure}: share of {method}'s time spent on projections"
            out.append(bar_panel(method.lower(), title, "per cent", series, _of_ratings(rows), logy=False))
    times = medians(select(table, measure="call"), ["set", "solver"])
    if len(times):
        balls = list(dict.fromkeys(times.index.get_level_values(0)))
        series = [
            Series(w, balls, [1e6 * float(times[b, w]) for b in balls], style="bar") for w in ("oracle", "projection")
        ]
        out.append(bar_panel("calls", "One call of our oracle and of our projection", "microseconds", series))
    return [*out, *maps(table)]
