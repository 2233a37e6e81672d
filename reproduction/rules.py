"""The decision rules. All measured settings count, and printed numbers have a band on both sides.

A printed number is *within* its band (reproduced), *beyond* it in favour of the paper (exceeded), or *short* of it:

    slope      within 0.25 of the paper's; beyond if steeper
    factor     within 1.5 times the paper's, up or down; beyond if larger
    range      between its ends, rounded as the paper prints them; beyond on the side that favours the paper
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reproduction.base import Finding, Setting, Verdict

#: The bands of slopes and factors, and the largest slope that counts as -2.
SLOPE_BAND, FACTOR_BAND, MINUS_TWO = 0.25, 1.5, -1.9
#: Maximum number of settings that a sentence lists; all are in the file of numbers.
FEW = 3


def select(table: Any, **wanted: Any) -> Any:
    """Select rows by the values of columns; a list means any of its values, and a missing column selects nothing."""
    for column, value in wanted.items():
        if column not in table:
            return table.iloc[:0]
        kept = table[column].isin(value) if isinstance(value, list | tuple) else table[column] == value
        table = table[kept]
    return table


def data_names(rows: Any) -> str:
    """Return the names of the data sets of some rows, with stand-ins marked."""
    if "data" not in rows or not len(rows):
        return ""
    pairs = rows[["data", "stand_in"]].dropna().drop_duplicates().to_numpy().tolist()
    names = [f"stand-in: {name}" if stand_in else f"real: {name}" for name, stand_in in pairs if name]
    return "; ".join(dict.fromkeys(names))


@dataclass(frozen=True)
class Rule:
    """Band from ``low`` to ``high`` for a printed number; ``more`` tells whether larger values favour the paper."""

    low: float
    high: float
    more: bool = True
    digits: int = 9

    def state(self, value: float, bound: str = "") -> str:
        """Classify a value; ``bound`` is "at least" or "at most" if the value is only a bound."""
        if math.isnan(value):
            return "open"
        value = round(value, self.digits) if math.isfinite(value) else value
        where = "within" if self.low <= value <= self.high else "above" if value > self.high else "below"
        if bound and where != {"at least": "above", "at most": "below"}[bound]:
            return "open"
        return {"within": "within", "above": "beyond", "below": "short"}[where] if self.more else self._less(where)

    def _less(self, where: str) -> str:
        return {"within": "within", "above": "short", "below": "beyond"}[where]

    def at(self, name: str, values: Iterable[float], note: str = "", bound: str = "") -> Setting:
        """Build a setting from the median and the range of values over starts or rounds."""
        kept = np.array([x for x in values if not math.isnan(x)])
        if not len(kept):
            return Setting(name, math.nan, "open", note=note or "no number")
        middle = float(np.median(kept))
        state = self.state(middle, bound)
        return Setting(name, middle, state, float(kept.min()), float(kept.max()), " ".join(filter(None, [bound, note])))


def slope_rule(paper: float) -> Rule:
    """Return the rule for a printed slope; smaller values are steeper, and favour the paper."""
    return Rule(paper - SLOPE_BAND, paper + SLOPE_BAND, more=False)


def factor_rule(paper: float) -> Rule:
    """Return the rule for a printed factor."""
    return Rule(paper / FACTOR_BAND, paper * FACTOR_BAND)


SLOPE_WORDS = f"reproduced within {SLOPE_BAND:g} on both sides, exceeded if steeper"
FACTOR_WORDS = f"reproduced within {FACTOR_BAND:g} times on both sides, exceeded if larger"


def compare(settings: Sequence[Setting], rows: Any, unit: str = "", words: Mapping[str, str] | None = None) -> Finding:
    """Return the finding for a printed number over all settings.

    It is reproduced if all are within the band, exceeded if none is short and some are beyond, not reproduced if all
    are short, and otherwise "only under a choice". Open settings are listed, but do not count.
    """
    phrases = {"within": "within the band", "beyond": "beyond it", "short": "short of it", "open": "open"} | dict(
        words or {}
    )
    by = {state: [s for s in settings if s.state == state] for state in phrases}
    decided = len(settings) - len(by["open"])
    if not decided:
        return Finding(Verdict.OPEN, "not measured", "nothing was measured that decides", tuple(settings))
    if not by["short"]:
        verdict = Verdict.EXCEEDED if by["beyond"] else Verdict.REPRODUCED
    else:
        verdict = Verdict.CHOICE if by["within"] or by["beyond"] else Verdict.NOT_REPRODUCED
    parts = [f"{phrases[state]} {_at(found, len(settings))}" for state, found in by.items() if found]
    return Finding(verdict, format_values(settings, unit), "; ".join(parts), tuple(settings), data_names(rows))


def judge_all(
    settings: Sequence[Setting], rows: Any, yes: str = "so", no: str = "not so", unit: str = "", ours: str = ""
) -> Finding:
    """Return the finding for a statement: it holds if it does at all settings, and fails if it does at none."""
    by = {state: [s for s in settings if s.state == state] for state in ("yes", "no", "open")}
    if len(by["open"]) == len(settings):
        return Finding(Verdict.OPEN, "not measured", "nothing was measured that decides", tuple(settings))
    verdict = Verdict.SOME if by["yes"] else Verdict.FAILS
    if not by["no"]:
        verdict = Verdict.OPEN if by["open"] else Verdict.HOLDS
    phrases = {"yes": yes, "no": no, "open": "open"}
    parts = [f"{phrases[state]} {_at(found, len(settings))}" for state, found in by.items() if found]
    return Finding(verdict, ours or format_values(settings, unit), "; ".join(parts), tuple(settings), data_names(rows))


def _at(found: Sequence[Setting], total: int) -> str:
    """List the settings, or count them if there are many."""
    if len(found) == total and total > FEW:
        return f"at all {total} settings"
    if len(found) > FEW:
        return f"at {len(found)} of {total} settings"
    return "at " + " and ".join(", ".join(s.name for s in found).rsplit(", and ", 1))


def bounded(
    measure: str,
    by: Mapping[str, str],
    level: float,
    least: bool = False,
    words: tuple[str, str] = ("within", "above"),
    of: str = "",
    **wanted: Any,
) -> Callable[[Any], Finding]:
    """Return a rule for the statement that all values of a measure are at most a level (at least, with ``least``).

    ``by`` maps the columns that distinguish settings to the text before their values.
    """

    def judge(table: Any) -> Finding:
        rows, out = select(table, measure=measure, **wanted), []
        for _, row in rows.iterrows():
            cells = [(before, row[name]) for name, before in by.items()]
            name = ", ".join(f"{before}{x:.3g}" if isinstance(x, float) else f"{before}{x}" for before, x in cells)
            slack = 1e-9 * abs(level)
            holds = row["value"] >= level - slack if least else row["value"] <= level + slack
            out.append(answer(name, row["value"], None if math.isnan(row["value"]) else bool(holds)))
        return judge_all(out, rows, *words, of)

    return judge


def answer(name: str, value: float, holds: bool | None, note: str = "") -> Setting:
    """Return the setting of a statement; None means open."""
    return Setting(name, value, "open" if holds is None else "yes" if holds else "no", note=note)


def number(value: float, digits: int = 2) -> str:
    """Format a number for the report."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == 0:
        return "0"
    if size >= 10_000 or size < 0.01:
        mantissa, exponent = f"{value:.1e}".split("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{mantissa}·10{power}".replace("-", "−")
    return f"{value:,.{0 if size >= 100 else 1 if size >= 10 else digits}f}".replace("-", "−")


def format_values(settings: Sequence[Setting], unit: str = "") -> str:
    """Format the values of settings, or their range if there are many."""
    known = [s for s in settings if not math.isnan(s.value)]
    if not known:
        return "not measured"
    if len(known) <= FEW:
        return "; ".join(f"{number(s.value)}{unit} ({s.name})" for s in known)
    low, high = (number(f([s.value for s in known])) for f in (min, max))
    return (
        f"{low}{unit} at all {len(known)} settings"
        if low == high
        else f"{low} to {high}{unit} over {len(known)} settings"
    )


def by_group(
    rows: Any, by: Sequence[str], rule: Rule, label: Callable[..., str], measure: str = "slope"
) -> list[Setting]:
    """Return one setting per group of rows of a measure, from all starts."""
    selected = select(rows, measure=measure)
    if not len(selected):
        return []
    groups = selected.groupby(list(by), sort=False)
    return [rule.at(label(*key), group["value"]) for key, group in groups]


def undefined(finding: Finding, reason: str) -> Finding:
    """Change the verdict of a finding to undefined, for a number that the paper does not define."""
    return replace(finding, verdict=Verdict.UNDEFINED, reason=f"{reason}; elsewhere {finding.reason}")
