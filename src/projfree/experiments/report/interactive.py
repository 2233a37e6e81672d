"""Panels as plain dictionaries for plotly.js; colours are put in by the page, which knows light from dark."""

from __future__ import annotations

import math
from typing import Any

from projfree.experiments.base import Grid, Panel, Series
from projfree.experiments.report.style import DASHES, SYMBOLS, place


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
    x = [str(v) if isinstance(v, str) else _plain(float(v)) for v in series.x]
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
    signs = [[sign(v, grid) for v in line] for line in grid.values]
    text = [[f"{s} {cell(v)}" if math.isfinite(v) else "" for v, s in zip(a, b, strict=True)] for a, b in
            zip(grid.values, signs, strict=True)]  # fmt: skip
    z = [[{"✓": 1.0, "✗": 0.0}.get(s) for s in line] for line in signs]
    trace = {"type": "heatmap", "x": list(grid.columns), "y": list(grid.rows), "z": z, "text": text, "colour": 0,
             "texttemplate": "%{text}", "showscale": False, "zmin": 0, "zmax": 1, "xgap": 2, "ygap": 2,
             "hovertemplate": "%{text} at %{x}, %{y}<extra></extra>"}  # fmt: skip
    axes = {"xaxis": {"title": panel.xlabel, "type": "category"}, "yaxis": {"title": panel.ylabel, "type": "category"}}
    return {"traces": [trace], "marks": [], **axes}


def cell(value: float) -> str:
    """A number in a cell of a map."""
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", "−")


def sign(value: float, grid: Grid) -> str:
    """Whether the claim holds at a place of a map."""
    if not math.isfinite(value):
        return ""
    return "✓" if (value <= grid.level if grid.at_most else value >= grid.level) else "✗"


def _plain(value: float) -> float | None:
    """A number for JSON with six digits, None where it is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
