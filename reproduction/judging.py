"""What the rules share: selecting rows, settings at which a claim holds, slopes against a level, factors of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reproduction.base import AGAINST, Finding, Verdict
from reproduction.words import NOTHING, listed, number, span, spread

#: A slope nearer than this to the level that it is judged by decides nothing.
SLOPE_MARGIN = 0.02
#: A time, as a part of the level that it is judged by, nearer than this decides nothing.
TIME_MARGIN = 0.1
#: A claimed factor counts as reached at this part of it.
ENOUGH = 0.75
#: So many times the claimed factor is told: the direction is as claimed, the number is not near.
FAR = 10
#: So many settings are named in a sentence; more are counted there and listed in the numbers.
FEW = 3
MARKS = {True: "yes:", False: "no:", None: "open:"}
#: What a ratio of times is, and how it is written.
SIGNS = {"factor": "", "factor at least": "≥ ", "factor at most": "≤ "}
#: In their place where the two runs tell nothing of each other; its value is not a number.
NO_FACTOR = "no factor"
UNMEASURED = Finding(Verdict.OPEN, NOTHING, "the run holds no measurement for this claim")


def select(table: Any, **wanted: Any) -> Any:
    """The rows whose columns have the wanted values; a list means any of them."""
    for column, value in wanted.items():
        kept = table[column].isin(value) if isinstance(value, list | tuple) else table[column] == value
        table = table[kept]
    return table


def at_most(value: float, level: float, margin: float = SLOPE_MARGIN) -> bool | None:
    """Whether a number is at most a level; None within the margin, and where there is no number."""
    if math.isnan(value) or math.isnan(level) or abs(value - level) < margin:
        return None
    return value < level


def decided(
    settings: Mapping[str, bool | None],
    shown: Sequence[str],
    what: str,
    otherwise: str,
    unknown: str = "too near to tell",
    brief: str = "",
) -> Finding:
    """The finding over settings at which a claim holds (True), does not (False), or is open (None).

    It holds if it does at all of them; under the stated choice if at some; where it holds at none it fails only if
    none is open. ``shown`` has the numbers of each setting, ``brief`` what stands for them where they are many.
    """
    if not settings:
        return UNMEASURED
    by = {state: [name for name, one in settings.items() if one is state] for state in (True, False, None)}
    words = {True: what, False: otherwise, None: unknown}
    parts = [f"{words[state]} {_where(by[state], len(settings))}" for state in (True, False, None) if by[state]]
    if by[True]:
        verdict = Verdict.CHOICE if by[False] or by[None] else Verdict.HOLDS
    else:
        verdict = Verdict.OPEN if by[None] else Verdict.FAILS
    if len(shown) <= FEW:
        return Finding(verdict, "; ".join(shown) or NOTHING, "; ".join(parts))
    every = [f"{MARKS[state]} {listed(by[state])}" for state in (True, False, None) if by[state]]
    ours = brief or f"as claimed at {len(by[True])} of {len(settings)} settings"
    return Finding(verdict, ours, "; ".join(parts), "; ".join(shown) + ". In short: " + "; ".join(every))


def _where(names: list[str], total: int) -> str:
    """Which settings, or how many of them where they are many."""
    if len(names) == total and total > FEW:
        return f"at all {total} settings"
    return f"for {listed(names)}" if len(names) <= FEW else f"at {len(names)} of {total} settings"


def sized(finding: Finding, rows: Any, needed: int) -> Finding:
    """A failure on fewer rows than the paper had decides nothing."""
    n = rows["n"].max() if len(rows) else math.nan
    if finding.verdict not in AGAINST or not n < needed:
        return finding
    more = f"measured on {n:,.0f} rows, where the paper has {needed:,}"
    return Finding(Verdict.OPEN, finding.ours, f"{finding.reason}; {more}", finding.numbers)


def unless_smaller(needed: int, judge: Callable[[Any], Finding], **wanted: Any) -> Callable[[Any], Finding]:
    """A rule that decides nothing against a claim on fewer rows than ``needed``, the paper's, of the wanted kind."""
    return lambda table: sized(judge(table), select(table, **wanted), needed)


def windows(name: str) -> tuple[float, float]:
    """The ends of a window that is written as ``[10, 100]``."""
    low, high = name.strip("[]").split(",")
    return float(low), float(high)


def judge_rate(level: float, by: str, label: Callable[[Any], str], **wanted: Any) -> Callable[[Any], Finding]:
    """The rule for a rate: the mean slope over seeds on the last window, at each setting.

    A slope that is flatter than the level but still steepens from window to window decides nothing, because a rate
    speaks of large t. A setting without a slope is open too.
    """

    def judge(table: Any) -> Finding:
        rows, states, shown = select(table, measure="slope", **wanted), dict[str, bool | None](), list[str]()
        late = list[float]()
        for key, group in rows.groupby(by):
            means = {w: float(g["value"].mean()) for w, g in group.groupby("variant")}
            order = sorted(means, key=lambda w: (windows(w)[1], windows(w)[0]))
            slope, name = means[order[-1]], label(key)
            late.append(slope)
            states[name] = at_most(slope, level)
            if states[name] is False and len(order) > 1 and slope < means[order[-2]] - 0.1:
                states[name] = None
            shown.append(f"{spread(list(select(group, variant=order[-1])['value']))} at {name} on {order[-1]}")
        for key in sorted(set(select(table, measure="error", **wanted)[by].dropna()) - set(rows[by])):
            states[label(key)] = None
            shown.append(f"no slope at {label(key)}: the window ends below the uncertainty of f*")
        open_ = "not measured, too near to tell, or still steepening"
        brief = f"{span(late)} over {len(states)} settings"
        return decided(states, shown, f"slope at most {level:.3g}", f"flatter than {level:.3g}", open_, brief)

    return judge


def judge_attainable(paper: float, by: str, label: Callable[[Any], str], **wanted: Any) -> Callable[[Any], Finding]:
    """The rule for a single slope: attainable if it lies between those of windows and seeds of one kind of run.

    Windows can be moved by single iterations, so that what lies between two of them is met by another; between two
    radii or data sets there is no such bridge. How many places single runs reach, and how many their median, which
    is what the map shows, is told too.
    """

    def judge(table: Any) -> Finding:
        every = select(table, measure="slope", **wanted)
        rows = every.dropna(subset="value")
        if not len(rows):
            return UNMEASURED
        low, high = float(rows["value"].min()), float(rows["value"].max())
        each = "; ".join(
            f"{_place(label(key), w, data)}: {spread(list(g['value']))}"
            for (key, data, w), g in rows.groupby([by, "data", "variant"])
        )
        kinds = list(dict.fromkeys([by, "solver", "radius", "data"]))
        ends = rows.groupby(kinds, dropna=False)["value"].agg(["min", "max"])
        inside = bool(((ends["min"] <= paper) & (paper <= ends["max"])).any())
        edge = not inside and bool((ends - paper).abs().min().min() < SLOPE_MARGIN)
        verdict = Verdict.ATTAINABLE if inside else Verdict.OPEN if edge else Verdict.UNATTAINED
        where = "within" if inside else "outside"
        near = rows.loc[(rows["value"] - paper).abs().idxmin()]
        nearest = f"{number(near['value'])} ({_place(label(near[by]), near['variant'], near['data'])})"
        reason = (
            f"{paper:g} lies {where} what windows and seeds give at one radius; of single runs the nearest is {nearest}"
        )
        reason += f"; {_reached(rows.groupby([*kinds, 'variant'], dropna=False)['value'], paper)}"
        lost = {f"{label(key)} on {w}" for key, w in zip(every[by], every["variant"], strict=True)} - {
            f"{label(key)} on {w}" for key, w in zip(rows[by], rows["variant"], strict=True)
        }
        without = f"; no slope for {listed(sorted(lost))}" if lost else ""
        return Finding(verdict, span([low, high]), reason, each + without)

    return judge


def _place(name: str, window: str, data: str) -> str:
    """A setting, its window and its data in a sentence."""
    return f"{name} on {window}" + (f", {data}" if data else "")


def _reached(places: Any, level: float) -> str:
    """At how many places a single run, and at how many the median over runs, is at most the level."""
    one, middle = (int((found <= level).sum()) for found in (places.min(), places.median()))
    return (
        f"a single run is at most {level:g} at {one} of {places.ngroups} places (settings and windows), the median "
        f"over runs at {middle}"
    )


def factor_state(middle: float, kind: str, level: float) -> bool | None:
    """Whether a factor reaches a level; None near it, for a bound that does not decide, and where there is none."""
    decides = {"factor": True, "factor at least": middle >= level, "factor at most": middle < level}.get(kind, False)
    near = abs(middle / level - 1) < TIME_MARGIN
    return (middle >= level) if decides and not near else None


def judge_factor(rows: Any, paper: float, by: str, label: Callable[[Any], str]) -> Finding:
    """The rule for a claimed factor of time, from rows of one ratio for each setting and repeat.

    ``factor at least`` and ``factor at most`` are bounds, of runs that ended before they converged; where a bound does
    not decide, the setting is open, and so it is where neither run converged (``no factor``).
    """
    states, shown, middles = dict[str, bool | None](), list[str](), list[float]()
    level = ENOUGH * paper
    for key, group in select(rows, measure=[*SIGNS, NO_FACTOR]).groupby(by, sort=False):
        values, kind = group["value"].to_numpy(), group["measure"].iloc[0]
        if kind == NO_FACTOR:
            states[label(key)] = None
            shown.append(f"no factor at {label(key)}, where runs ended before they converged")
            continue
        middles.append(float(np.median(values)))
        states[label(key)] = factor_state(middles[-1], kind, level)
        shown.append(f"{SIGNS[kind]}{interval(values, level)} at {label(key)}")
    what = f"at least {number(level, 1)}× (three quarters of the claim)"
    brief = f"{span(middles, '×', 1)} over {len(states)} settings"
    found = decided(states, shown, what, "less", "too near to tell, or not converged,", brief)
    if middles and min(middles) > FAR * paper:
        return replace(found, reason=f"{found.reason}; everywhere more than {FAR} times the claimed factor itself")
    return found


def interval(values: Any, level: float) -> str:
    """The median of repeats with their range, and how many of them lie on the other side of the level."""
    middle = float(np.median(values))
    if len(values) < 2 or max(values) - min(values) < 1e-9 * abs(middle):
        return number(middle, 1)
    flips = int(np.sum((np.asarray(values) >= level) != (middle >= level)))
    return f"{number(middle, 1)} ({span(values, digits=1)}; flips in {flips} of {len(values)})"


def largest_factor(rows: Any, by: Sequence[str], level: float) -> tuple[bool | None, str]:
    """Whether the largest of the medians over rounds is at least a level, and it with its interval.

    Elsewhere, and within the margin, it is open: another setting may give more.
    """
    groups = [group["value"].to_numpy() for _, group in rows.dropna(subset="value").groupby(list(by))]
    if not groups:
        return None, NOTHING
    best = max(groups, key=lambda values: float(np.median(values)))
    return (True if np.median(best) >= (1 + TIME_MARGIN) * level else None), f"up to {interval(best, level)}"


def judge_largest(limit: float, what: str, **wanted: Any) -> Callable[[Any], Finding]:
    """The rule for an inequality: the largest ratio of its two sides is at most ``limit`` (up to rounding)."""

    def judge(table: Any) -> Finding:
        rows = select(table, **wanted)
        if not len(rows):
            return UNMEASURED
        worst = float(rows["value"].max())
        each = [f"{number(v)} ({w})" for w, v in rows.groupby("variant", sort=False)["value"].max().items()]
        few = len(each) <= FEW
        verdict = Verdict.HOLDS if worst <= limit * (1 + 1e-9) else Verdict.FAILS
        shown = "; ".join(each) if few else f"at most {number(worst)} over {len(each)} settings"
        return Finding(
            verdict, shown, f"the largest {what}; at most {limit:g} is claimed", "" if few else "; ".join(each)
        )

    return judge


def all_true(rows: Any, shown: Sequence[str], what: str, otherwise: str) -> Finding:
    """The rule over settings named in ``variant``, each with a value that is 1 where it holds and 0 where not."""
    states = {str(name): bool((g["value"] == 1).all()) for name, g in rows.groupby("variant", sort=False)}
    return decided(dict(states), shown, what, otherwise)


def rho_label(rho: float) -> str:
    """A relative radius in a sentence."""
    return f"ρ = {rho:g}"


def radius_label(r: float) -> str:
    """A radius in a sentence."""
    return f"r = {r:,.4g}" if r < 10_000 else f"r = {r:,.0f}"


def medians(rows: Any, by: Iterable[str]) -> Any:
    """The medians of values over repeats, in the order of first appearance."""
    return rows.groupby(list(by), sort=False)["value"].median()
