"""Panels that several experiments share: errors, losses over time, bars, slopes by window, and maps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.base import Grid, Panel, Series
from reproduction.judging import ENOUGH, TIME_MARGIN, factor_state, windows
from reproduction.words import number

LABELS = {"t": "iteration t", "passes": "passes over the data", "seconds": "solver time (s)"}


def noted(rows: Any) -> str:
    """The label that figures on generated data carry."""
    return "Made on a stand-in: generated data, not the real ones." if bool(rows["stand_in"].any()) else ""


def curves(rows: Any, x: str = "t", colours: dict[str, int] | None = None) -> list[Series]:
    """A line for each solver: the mean over seeds, with the band between the smallest and the largest."""
    out = []
    for place, (name, part) in enumerate(rows.groupby("solver", sort=False)):
        value = part.groupby("t")["value"]
        mean, at = value.mean(), part.groupby("t")[x].mean() if x != "t" else None
        xs = mean.index.to_numpy(dtype=float) if at is None else at.to_numpy()
        band = (value.min().to_numpy(), value.max().to_numpy()) if part["seed"].nunique() > 1 else (None, None)
        colour = place if colours is None else colours.get(str(name), place)
        out.append(Series(str(name), xs, mean.to_numpy(), colour=colour, low=band[0], high=band[1]))
    return out


def reference(lines: Sequence[Series], slope: float, name: str, place: int) -> list[Series]:
    """A straight line of a given slope beside the first line of a rate plot, over its last nine tenths of log x."""
    points = [(x, y) for line in lines[:1] for x, y in zip(line.x, line.y, strict=True) if x >= 1 and y > 0]
    if len(points) < 2:
        return []
    (x0, y0), x1 = points[len(points) // 8], points[-1][0]
    xs = np.geomspace(x0, x1, 2)
    return [Series(name, xs, 1.6 * y0 * (xs / x0) ** slope, style="reference", colour=(6, 7, 4, 5)[place % 4])]


def error_panel(
    rows: Any,
    key: str,
    title: str,
    x: str = "t",
    slopes: dict[str, float] | None = None,
    ylabel: str = "f(w) − f*",
    colours: dict[str, int] | None = None,
) -> Panel:
    """Error against iterations, passes or seconds on logarithmic axes, with the slopes that are claimed beside it."""
    lines = curves(rows, x=x, colours=colours)
    lines += [one for k, (name, s) in enumerate((slopes or {}).items()) for one in reference(lines, s, name, k)]
    alt = f"{title}. {ylabel} against {LABELS[x]}, both on logarithmic scales: {described(lines)}."
    return Panel(key, title, LABELS[x], ylabel, lines, alt=alt, note=noted(rows))


def window_panel(
    rows: Any, key: str, title: str, theorem: float | Series, paper: float | None, by: str = "radius"
) -> Panel | None:
    """The fitted slope against the start of its window, with the theorem's rate and the paper's slope beside it.

    ``theorem`` is the exponent of a power of t, or the slopes of another law on the same windows.
    """
    rows = rows.dropna(subset="value")
    if not len(rows):
        return None
    rows = rows.assign(start=[windows(w)[0] for w in rows["variant"]])
    series = []
    for place, (name, part) in enumerate(rows.groupby(by, sort=by == "radius")):
        mean, label = part.groupby("start")["value"].mean(), f"r = {_label(name)}" if by == "radius" else str(name)
        series.append(Series(label, mean.index.to_numpy(), mean.to_numpy(), colour=place))
    ends = np.array([rows["start"].min(), rows["start"].max()], dtype=float)
    if not isinstance(theorem, Series):
        theorem = Series("the theorem's rate", ends, np.full(2, theorem), style="reference", colour=6)
    series.append(theorem)
    if paper is not None:
        series.append(Series("the paper's slope", ends, np.full(2, paper), style="dashed", colour=7))
    alt = f"{title}: " + "; ".join(f"{s.name}: {number(s.y[0])} to {number(s.y[-1])}" for s in series)
    note = noted(rows)
    return Panel(key, title, "start of the window", "slope", series, logy=False, alt=alt, note=note)


def time_panel(key: str, title: str, rows: Any, marks: dict[str, float], rule: str = "Convergence") -> Panel:
    """Loss against solver time, a line for each solver, dotted where it converged."""
    series = []
    for place, (name, part) in enumerate(rows.groupby("solver", sort=False)):
        mark = marks.get(str(name))
        series.append(Series(str(name), part["seconds"].to_numpy(), part["value"].to_numpy(), colour=place, mark=mark))
    said = "; ".join(f"{s.name} {s.mark:.3g} s" for s in series if s.mark is not None)
    alt = f"{title}. {rule}, dotted: {said or 'none'}."
    return Panel(key, title, LABELS["seconds"], "loss", series, alt=alt, note=noted(rows))


def factor_panel(key: str, title: str, rows: Any, paper: dict[str, float], by: str = "rho", **more: Any) -> Panel:
    """Factors over the radius, a line for each method, with the paper's factor dashed."""
    rows = rows.dropna(subset="value")
    series, ends = list[Series](), [float(rows[by].min()), float(rows[by].max())] if len(rows) else [1.0, 1.0]
    for place, (name, part) in enumerate(rows.groupby("solver", sort=False)):
        g = part.groupby(by)["value"]
        band = (g.min().to_numpy(), g.max().to_numpy())
        series.append(Series(str(name), g.median().index.to_numpy(), g.median().to_numpy(), colour=place,
                             low=band[0], high=band[1]))  # fmt: skip
    for k, (name, factor) in enumerate(paper.items()):
        series.append(Series(name, ends, [factor, factor], style="reference", colour=6 + k % 2))
    alt = f"{title}: " + "; ".join(f"{s.name} {number(min(s.y), 1)} to {number(max(s.y), 1)}" for s in series)
    return Panel(key, title, "ρ = r / ‖w_unc‖", "time / time of PA", series, alt=alt, note=noted(rows), **more)


def map_panel(key: str, title: str, rows: Any, across: str, down: str, level: float, **more: Any) -> Panel | None:
    """A map of where a claim holds over two choices, None where nothing was measured.

    ``margin`` is that of a time unless told otherwise, as for slopes.
    """
    if not len(rows):
        return None
    columns, lines = (_in_order(rows[c]) for c in (across, down))
    found = rows.groupby([down, across])["value"].median()
    at_most, margin = bool(more.pop("at_most", False)), float(more.pop("margin", TIME_MARGIN * level))

    def state(value: float) -> bool | None:
        if not math.isfinite(value) or abs(value - level) < margin:
            return None
        return value <= level if at_most else value >= level

    places = {(b, a): float(found.get((b, a), math.nan)) for b in lines for a in columns}
    needs = f"The claim needs {'at most' if at_most else 'at least'} {level:.3g}"
    return state_map(key, title, {at: (v, state(v)) for at, v in places.items()}, needs, note=noted(rows), **more)


def factor_map(
    key: str, title: str, rows: Any, down: str, paper: float | dict[str, float], **axes: str
) -> Panel | None:
    """A map over ρ of where a claimed factor holds, by the rule that judges it; ``paper`` may differ by row."""
    places = {}
    for name, some in rows.groupby(down, sort=False):
        level = ENOUGH * (paper[str(name)] if isinstance(paper, dict) else paper)
        for rho, group in some.groupby("rho"):
            middle = float(group["value"].median())
            places[name, float(rho)] = middle, factor_state(middle, group["measure"].iloc[0], level)
    needs = "The claim needs three quarters of the factor"
    return state_map(key, title, places, needs, note=noted(rows), **axes)


def state_map(
    key: str,
    title: str,
    places: Mapping[tuple[Any, Any], tuple[float, bool | None]],
    needs: str,
    xlabel: str,
    ylabel: str,
    note: str = "",
) -> Panel | None:
    """A map from places (row and column) with their numbers and what a rule says there; None where there is none."""
    if not places:
        return None
    lines, columns = (_in_order([at[k] for at in places]) for k in (0, 1))
    values = [[places.get((b, a), (math.nan, None))[0] for a in columns] for b in lines]
    states = [[places.get((b, a), (math.nan, None))[1] for a in columns] for b in lines]
    labels = [[_label(v) if isinstance(v, float) else str(v) for v in some] for some in (columns, lines)]
    every = [state for line in states for state in line]
    near = f", {every.count(None)} too near to tell or not measured" if None in every else ""
    alt = f"{title}. {needs}: {every.count(True)} of {len(every)} places{near}."
    return Panel(key, title, xlabel, ylabel, grid=Grid(labels[0], labels[1], values, states), alt=alt, note=note)


def _in_order(values: Any) -> list[Any]:
    """Each value once: numbers in order, names as they appear."""
    found = list(dict.fromkeys(values))
    return sorted(found) if all(isinstance(v, float) for v in found) else found


def _label(x: float) -> str:
    """A radius at the edge of a map."""
    return f"{x:,.0f}" if x >= 100 else f"{x:g}"


def bar_panel(
    key: str,
    title: str,
    ylabel: str,
    series: Sequence[Series],
    note: str = "",
    limits: Mapping[str, float] | None = None,
    **more: Any,
) -> Panel:
    """Bars with their numbers in words, and the levels that they are judged by as dotted lines."""
    names = list(dict.fromkeys(x for s in series for x in s.x))
    alt = f"{title}, {ylabel}: " + "; ".join(
        f"{s.name}: " + ", ".join(f"{x} {number(y)}" for x, y in zip(s.x, s.y, strict=True)) for s in series
    )
    lines = [
        Series(name, names, [level] * len(names), style="reference", colour=6 + k % 2)
        for k, (name, level) in enumerate((limits or {}).items())
    ]
    alt += "".join(f"; dotted line, {line.name}" for line in lines)
    return Panel(key, title, "", ylabel, [*series, *lines], logx=False, alt=alt, note=note, **more)


def described(lines: Sequence[Series]) -> str:
    """Each line by its first and last point, for the text alternative."""
    parts = [
        f"{line.name} from {number(float(line.y[0]))} to {number(float(line.y[-1]))}" for line in lines if len(line.y)
    ]
    return "; ".join(parts) or "no data"
