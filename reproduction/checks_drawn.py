"""Panels of checks that have no curve: ratios of two sides against their limit, and where a statement holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from reproduction.base import Panel, Series
from reproduction.drawing import bar_panel, noted, state_map
from reproduction.words import span


def limit_panel(
    key: str,
    title: str,
    rows: Any,
    limits: Mapping[str, float],
    xlabel: str,
    ylabel: str,
    by: str,
    x: str,
    logy: bool = True,
) -> Panel | None:
    """Values over the column ``x``, points for each entry of ``by``, with the levels that they are judged by dotted."""
    rows = rows.dropna(subset=[x, "value"])
    if not len(rows):
        return None
    lines = [
        Series(str(name), part[x].to_list(), part["value"].to_list(), style="points")
        for name, part in rows.sort_values(x, kind="stable").groupby(by, sort=False)
    ]
    ends = [float(rows[x].min()), float(rows[x].max())]
    levels = [
        Series(name, ends, [level, level], style="reference", colour=6 + k % 2)
        for k, (name, level) in enumerate(limits.items())
    ]
    said = [f"{line.name} from {span(line.y)}" for line in lines] + [f"dotted line, {name}" for name in limits]
    alt = f"{title}: {ylabel}, over {xlabel}; {'; '.join(said)}."
    return Panel(key, title, xlabel, ylabel, [*lines, *levels], alt=alt, note=noted(rows), logy=logy)


def ratio_bars(key: str, title: str, rows: Any, limits: Mapping[str, float], ylabel: str) -> Panel | None:
    """Ratios as bars by ``variant``, those of each ``problem`` side by side, with what is claimed as a dotted line."""
    bars = [
        Series(str(name), part["variant"].to_list(), part["value"].to_list(), style="bar")
        for name, part in rows.groupby("problem", sort=False)
    ]
    return bar_panel(key, title, ylabel, bars, noted(rows), limits, logy=False) if bars else None


def holds_map(key: str, title: str, rows: Any, row: str, xlabel: str) -> Panel | None:
    """Yes or no for each ``variant`` of rows whose value is 1 where a statement holds and 0 where not."""
    places = {
        (row, str(name)): (math.nan, bool((some["value"] == 1).all()))
        for name, some in rows.groupby("variant", sort=False)
    }
    return state_map(key, title, places, "It holds", xlabel, "", note=noted(rows))
