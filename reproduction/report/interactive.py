"""Panels as plain dictionaries for plotly.js; colours are put in by the page, which knows light from dark."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from reproduction.base import Grid, Panel, Series
from reproduction.report.style import DASHES, SYMBOLS, place
from reproduction.words import typeset

#: Names at an axis that are longer are broken.
LONG = 10


def figure(panel: Panel) -> dict[str, Any]:
    """Traces and axes of a panel."""
    if panel.grid is not None:
        return _map(panel, panel.grid)
    traces = list[dict[str, Any]]()
    for k, series in enumerate(panel.series):
        if len(series.y):
            traces += [*_band(series, k), _trace(series, k)]
    marks = [
        {"x": _plain(series.mark), "colour": place(series.colour, k)}
        for k, series in enumerate(panel.series)
        if series.mark is not None
    ]
    bars = any(series.style == "bar" for series in panel.series)
    return {
        "traces": traces,
        "marks": marks,
        "xaxis": {"title": panel.xlabel, "type": "category" if bars else "log" if panel.logx else "linear"},
        "yaxis": {"title": panel.ylabel, "type": "log" if panel.logy else "linear"},
    }


def _trace(series: Series, position: int) -> dict[str, Any]:
    k = place(series.colour, position)
    x = [broken(v) if isinstance(v, str) else _plain(float(v)) for v in series.x]
    common: dict[str, Any] = {"name": series.name, "x": x, "y": [_plain(float(v)) for v in series.y], "colour": k}
    if series.style == "bar":
        return {**common, "type": "bar"}
    few = len(common["y"]) <= 12 and series.style not in ("reference", "dashed")
    mode = "markers" if series.style == "points" else "lines+markers" if few else "lines"
    dash = {"dashed": "dash", "reference": "dot"}.get(series.style, DASHES[k])
    width = 1.5 if series.style == "reference" else 2
    hover = "%{y:.4g} at %{x:.4g}"
    line, marker = {"dash": dash, "width": width}, {"symbol": SYMBOLS[k], "size": 8}
    return {**common, "type": "scatter", "mode": mode, "line": line, "marker": marker, "hovertemplate": hover}


def _band(series: Series, position: int) -> list[dict[str, Any]]:
    """The range over seeds, behind the line."""
    if series.low is None or series.high is None:
        return []
    k, x = place(series.colour, position), [_plain(float(v)) for v in series.x]
    edge = {"type": "scatter", "mode": "lines", "x": x, "colour": k, "line": {"width": 0}, "showlegend": False,
            "hoverinfo": "skip"}  # fmt: skip
    low, high = ([_plain(float(v)) for v in end] for end in (series.low, series.high))
    return [{**edge, "y": low}, {**edge, "y": high, "fill": "tonexty", "band": True}]


def _map(panel: Panel, grid: Grid) -> dict[str, Any]:
    """A heat map whose cells hold the number and a sign, so that colour is not all that tells them apart."""
    text = cells(grid)
    z = [[{True: 1.0, False: 0.0, None: 0.5}[state] for state in line] for line in grid.states]
    columns, rows = ([broken(name) for name in names] for names in (grid.columns, grid.rows))
    trace = {"type": "heatmap", "x": columns, "y": rows, "z": z, "text": text, "colour": 0,
             "texttemplate": "%{text}", "showscale": False, "zmin": 0, "zmax": 1, "xgap": 2, "ygap": 2,
             "hovertemplate": "%{text} at %{x}, %{y}<extra></extra>"}  # fmt: skip
    axes = {"xaxis": {"title": panel.xlabel, "type": "category"}, "yaxis": {"title": panel.ylabel, "type": "category"}}
    return {"traces": [trace], "marks": [], **axes}


def cells(grid: Grid) -> list[list[str]]:
    """A sign and a number in each cell of a map, or a sign and a word."""
    return [
        [f"{sign} {_short(value, state)}" for sign, value, state in zip(signs, values, states, strict=True)]
        for signs, values, states in zip(grid.signs(), grid.values, grid.states, strict=True)
    ]


def _short(value: float, state: bool | None) -> str:
    """A number in a cell, or yes or no where a rule says so without one."""
    if not math.isfinite(value):
        return {True: "yes", False: "no", None: "not measured"}[state]
    return typeset(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")


def broken(name: str, end: str = "<br>", most: int = LONG + 4) -> str:
    """A long name at an axis in several lines."""
    lines = textwrap.wrap(name, most, break_on_hyphens=False, break_long_words=False)
    return name if len(name) <= LONG else end.join(lines)


def _plain(value: float) -> float | None:
    """A number for JSON with six digits, None where it is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
