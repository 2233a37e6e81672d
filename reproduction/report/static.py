"""Panels as PNG and SVG files for papers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from projfree.persist import atomic_write
from reproduction.base import Grid, Panel, Series
from reproduction.report.interactive import broken, cells
from reproduction.report.style import LIGHT, LINESTYLES, MARKERS, place
from reproduction.words import RAISED

#: More series than this have their legend beside the axes.
CROWDED = 6
#: The balls' names in plain digits.
PLAIN = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789") | {ord("∞"): "inf"}
RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "projfree",
}


def file_stem(experiment: str, panel: Panel) -> str:
    """The name of a figure's files, which any file system and any link takes."""
    return re.sub(r"[^\w.-]+", "-", f"{experiment}-{panel.key}".translate(PLAIN))


def save(panel: Panel, folder: Path, stem: str) -> Iterator[Path]:
    """Write a panel as ``stem.svg`` and ``stem.png``."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    with rc_context(RC):
        drawing = Figure(figsize=(5.2, 3.5))
        FigureCanvasAgg(drawing)
        ax = drawing.add_subplot()
        if panel.grid is not None:
            _map(ax, panel.grid)
        else:
            _lines(ax, panel)
        ax.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
        ax.set_title(_wrapped(panel.title), loc="left")
        if panel.note:
            drawing.text(0.99, -0.02, panel.note, ha="right", va="top", fontsize=6, color="0.35")
        drawing.subplots_adjust(left=0.14 if panel.grid is None else 0.22, right=0.98, top=0.86, bottom=0.17)
        for kind, settings in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 160})):
            path = folder / f"{stem}.{kind}"
            with atomic_write(path) as beside:  # long labels and legends widen the picture
                drawing.savefig(beside, format=kind, bbox_inches="tight", **settings)
            yield path


def _lines(ax: Any, panel: Panel) -> None:
    bars = [series for series in panel.series if series.style == "bar"]
    for k, series in enumerate(panel.series):
        if series.style == "bar":
            _bars(ax, series, k, bars)
        elif len(series.y):
            _line(ax, series, k)
    for wanted, axis, scale in (
        (panel.logx and not bars, ax.xaxis, ax.set_xscale),
        (panel.logy, ax.yaxis, ax.set_yscale),
    ):
        if wanted:
            scale("log")
            axis.set_major_formatter(_power)
            axis.set_minor_formatter("")
    if bars or len(panel.series) > CROWDED:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    else:
        ax.legend(loc="best")


def _map(ax: Any, grid: Grid) -> None:
    """Cells with a sign and the number; green, orange and grey are told apart by the sign too."""
    ax.grid(False)
    for i, line in enumerate(cells(grid)):
        for j, text in enumerate(line):
            colour = {True: LIGHT[2], False: LIGHT[1], None: LIGHT[6]}[grid.states[i][j]]
            ax.fill([j - 0.48, j + 0.48, j + 0.48, j - 0.48], [i - 0.48, i - 0.48, i + 0.48, i + 0.48],
                    color=colour, alpha=0.25)  # fmt: skip
            ax.text(j, i, text.replace(" not ", " not\n"), ha="center", va="center", fontsize=7)
    ax.set_xticks(
        range(len(grid.columns)),
        [broken(name, "\n") for name in grid.columns],
        fontsize=7 if len(grid.columns) < 7 else 6,
    )
    ax.set_yticks(range(len(grid.rows)), [broken(name, "\n", 24) for name in grid.rows], fontsize=7)


def _power(value: float, _: float) -> str:
    """A power of ten in plain characters: mathematical typesetting would take most of the time of a figure."""
    exponent = round(np.log10(value)) if value > 0 else 0
    if 0.01 <= value <= 1000:
        return f"{value:g}"
    return "10" + str(exponent).translate(RAISED)


def _line(ax: Any, series: Series, position: int) -> None:
    k, x = place(series.colour, position), series.x
    if len(x) and isinstance(x[0], str):  # a level across the bars, from edge to edge
        x = np.linspace(-0.5, len(x) - 0.5, len(x)) if len(x) > 1 else np.zeros(1)
    points, law = series.style == "points", series.style == "reference"
    style = "none" if points else {"dashed": "--", "reference": ":"}.get(series.style, LINESTYLES[k])
    marker = MARKERS[k] if points or (len(series.y) <= 12 and series.style == "line") else None
    if series.low is not None and series.high is not None:
        ax.fill_between(x, series.low, series.high, color=LIGHT[k], alpha=0.18, linewidth=0)
    ax.plot(
        x,
        series.y,
        color=LIGHT[k],
        linestyle=style,
        marker=marker,
        markersize=4,
        linewidth=1.0 if law else 1.5,
        label=series.name,
    )
    if series.mark is not None:
        ax.axvline(series.mark, color=LIGHT[k], linestyle=":", linewidth=1.0)


def _bars(ax: Any, series: Series, position: int, bars: list[Series]) -> None:
    names = list(dict.fromkeys(str(x) for other in bars for x in other.x))
    width = 0.8 / len(bars)
    at = np.array([names.index(str(x)) for x in series.x]) + width * (bars.index(series) - (len(bars) - 1) / 2)
    ax.bar(at, series.y, width, color=LIGHT[place(series.colour, position)], label=series.name)
    ax.set_xticks(range(len(names)), [broken(name, "\n") for name in names], fontsize=7)


def _wrapped(title: str, width: int = 68) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(title, width))
