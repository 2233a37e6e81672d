"""What the rules share: selecting rows, means over seeds, and how numbers are written in a finding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from projfree.experiments.base import Finding, Panel, Series, Verdict

NOTHING = Finding(Verdict.UNMEASURED, "-", "the run holds no measurement for this claim")


def select(table: Any, **wanted: Any) -> Any:
    """The rows whose columns have the wanted values; a list means any of them."""
    for column, value in wanted.items():
        kept = table[column].isin(value) if isinstance(value, list | tuple) else table[column] == value
        table = table[kept]
    return table


def number(x: float, digits: int = 2) -> str:
    """A number for a sentence: fixed digits near one, few significant ones elsewhere."""
    if not math.isfinite(x):
        return "-"
    if x == 0 or 0.01 <= abs(x) < 1000:
        return f"{x:.{digits}f}"
    return f"{x:.2g}" if abs(x) < 0.01 else f"{x:,.0f}"


def span(values: Iterable[float], unit: str = "", digits: int = 2) -> str:
    """The range of some numbers."""
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return "-"
    low, high = number(min(finite), digits), number(max(finite), digits)
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over seeds."""
    finite = np.array([v for v in values if math.isfinite(v)])
    if not len(finite):
        return "-"
    return f"{finite.mean():.2f}" + (f" ± {finite.std(ddof=1):.2f}" if len(finite) > 1 else "")


def listed(items: Iterable[str]) -> str:
    """Items in a sentence."""
    words = list(items)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"


def verdict_over(good: Sequence[str], bad: Sequence[str], ours: str, what: str, otherwise: str) -> Finding:
    """Holds where no setting is bad, in part where some are good, else not; the reason lists both kinds."""
    if not good and not bad:
        return NOTHING
    if not bad:
        return Finding(Verdict.HOLDS, ours, f"{what} for {listed(good)}")
    if not good:
        return Finding(Verdict.FAILS, ours, f"{otherwise} for {listed(bad)}")
    return Finding(Verdict.PARTLY, ours, f"{what} for {listed(good)}; {otherwise} for {listed(bad)}")


def ratios(table: Any, fast: str, slow: str, measure: str, by: str = "rho") -> dict[float, tuple[float, bool]]:
    """``slow / fast`` of a measure at each value of a column, and whether the slow one really got there.

    A slow run that was cut off counts with what it had spent: the ratio is then a lower bound and marked False. Where
    the fast one was cut off there is no ratio.
    """
    out = {}
    for key, group in table.groupby(by):
        found = {}
        for solver in (fast, slow):
            rows = select(group, solver=solver, measure=[measure, f"{measure} at least"])
            if len(rows):
                found[solver] = (float(rows["value"].median()), bool((rows["measure"] == measure).all()))
        if len(found) == 2 and found[fast][1]:
            out[float(key)] = (found[slow][0] / found[fast][0], found[slow][1])
    return out


def shown_ratios(found: dict[float, tuple[float, bool]], name: str = "ρ") -> str:
    """Ratios by setting, with ≥ for lower bounds."""
    return ", ".join(f"{'' if exact else '≥ '}{number(r, 1)} at {name} = {key:g}" for key, (r, exact) in found.items())


def judge_factor(found: dict[float, tuple[float, bool]], paper: float, name: str = "ρ") -> Finding:
    """The rule for a claimed factor: it holds at a setting where ours is at least 0.75 of it, and "in part" at some.

    A lower bound that is smaller than the claim decides nothing, and is left out of both lists.
    """
    if not found:
        return NOTHING
    level = 0.75 * paper
    good = [f"{name} = {key:g}" for key, (r, _) in found.items() if r >= level]
    bad = [f"{name} = {key:g}" for key, (r, exact) in found.items() if r < level and exact]
    open_ = [f"{name} = {key:g}" for key, (r, exact) in found.items() if r < level and not exact]
    return decided(good, bad, open_, shown_ratios(found, name), level)


def decided(good: Sequence[str], bad: Sequence[str], open_: Sequence[str], ours: str, level: float) -> Finding:
    """The finding on a factor, given the settings at which it is large enough, too small, or not known."""
    parts = [f"at least {number(level, 1)}× for {listed(good)}"] if good else []
    parts += [f"less for {listed(bad)}"] if bad else []
    parts += [f"not decided for {listed(open_)}, where runs were cut off"] if open_ else []
    if not good and not bad:
        return Finding(Verdict.UNMEASURED, ours or "-", "; ".join(parts) or NOTHING.reason)
    verdict = Verdict.FAILS if not good else Verdict.PARTLY if bad or open_ else Verdict.HOLDS
    return Finding(verdict, ours, "; ".join(parts))


def noted(rows: Any) -> str:
    """The label that figures on generated data carry."""
    return "Made on a stand-in: generated data, not the real ones." if bool(rows["stand_in"].any()) else ""


def curves(rows: Any, label: str = "solver", x: str = "t", colours: dict[str, int] | None = None) -> list[Series]:
    """One line for each value of a column, the mean over seeds at each x."""
    out = []
    for place, name in enumerate(dict.fromkeys(rows[label])):
        part = rows[(rows[label] == name) & (rows["value"] > 0)]
        means = (
            part.groupby("t")[[x, "value"]].mean() if x != "t" else part.groupby("t")[["value"]].mean().reset_index()
        )
        colour = place if colours is None else colours.get(str(name), place)
        out.append(Series(str(name), means[x].to_numpy(), means["value"].to_numpy(), colour=colour))
    return out


def error_panel(rows: Any, key: str, title: str, x: str = "t", **more: Any) -> Panel:
    """Error against iterations, passes or seconds on logarithmic axes."""
    labels = {"t": "iteration t", "passes": "passes over the data", "seconds": "solver time (s)"}
    lines = curves(rows, x=x, **more)
    return Panel(
        key,
        title,
        labels[x],
        "f(w) − f*",
        lines,
        alt=f"{title}. Error against {labels[x]}, both on logarithmic scales: {described(lines)}.",
        note=noted(rows),
    )


def time_panel(key: str, title: str, rows: Any, times: Any, rule: str = "Convergence") -> Panel:
    """Loss against solver time, a line for each solver, dotted where ``times`` says that it converged."""
    series = []
    for place, (name, part) in enumerate(rows.groupby("solver", sort=False)):
        own = select(times, solver=name)["value"]
        mark = float(own.median()) if len(own) else None
        series.append(Series(str(name), part["seconds"].to_numpy(), part["value"].to_numpy(), colour=place, mark=mark))
    marks = "; ".join(f"{s.name} {s.mark:.3g} s" for s in series if s.mark is not None)
    alt = f"{title}. {rule}, dotted: {marks or 'none'}."
    return Panel(key, title, "solver time (s)", "loss", series, alt=alt, note=noted(rows))


def described(lines: Sequence[Series]) -> str:
    """Each line by its first and last point, for the text alternative."""
    parts = [
        f"{line.name} from {number(float(line.y[0]))} to {number(float(line.y[-1]))}" for line in lines if len(line.y)
    ]
    return "; ".join(parts) or "no data"
