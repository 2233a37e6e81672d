"""Panels as plain dictionaries for plotly.js; colours are put in by the page, which knows light from dark."""

from __future__ import annotations

import math
from typing import Any

from projfree.experiments.base import Panel, Series
from projfree.experiments.report.style import DASHES, SYMBOLS, place


def figure(panel: Panel) -> dict[str, Any]:
    """Traces and axes of a panel."""
    traces = [_trace(series, k) for k, series in enumerate(panel.series) if len(series.y)]
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
    few = len(common["y"]) <= 12
    mode = "markers" if series.style == "points" else "lines+markers" if few else "lines"
    dash = "dash" if series.style == "dashed" else DASHES[k]
    hover = "%{y:.4g} at %{x:.4g}"
    line, marker = {"dash": dash, "width": 2}, {"symbol": SYMBOLS[k], "size": 8}
    return {**common, "type": "scatter", "mode": mode, "line": line, "marker": marker, "hovertemplate": hover}


def _plain(value: float) -> float | None:
    """A number for JSON with six digits, None where it is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
