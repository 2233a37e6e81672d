"""Figures with Matplotlib in one style: curves with slopes on logarithmic axes, and bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.problems import EXACT, FWPLR, OPTION_B, PA, SEARCHED
from reproduction.rules import select

#: Colours for readers with colour vision deficiency; each method has the same one in all figures.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
COLOURS = dict(zip((PA, FWPLR, EXACT, OPTION_B, SEARCHED), PALETTE, strict=False))
STYLES = {PA: "-", FWPLR: "--", EXACT: "-.", OPTION_B: ":", SEARCHED: (0, (3, 1, 1, 1, 1, 1))}
#: Relative size below which values are rounding errors, which are not drawn.
ROUNDING = 1e-13
#: Smallest time that is shown, because shorter ones are inaccurate.
CLOCK = 1e-4


def panels(count: int = 1, height: float = 3.4, width: float = 4.6) -> tuple[Any, list[Any]]:
    """Return a figure with a row of axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * count, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(np.atleast_1d(figure.subplots(1, count)))


def label_axes(axis: Any, title: str, x: str, y: str) -> None:
    """Set the title, the axis labels and the legend of a panel."""
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylabel(y, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.25, linewidth=0.5)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=6.5, framealpha=0.8)


def log_scales(axis: Any, which: str = "xy", least: float = 0.0) -> None:
    """Set logarithmic scales with at least three labelled ticks; the x axis starts at ``least`` or later."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in which if axis.has_data() else "":
        side, scale = (axis.xaxis, axis.set_xscale) if name == "x" else (axis.yaxis, axis.set_yscale)
        scale("log")
        low, high = axis.get_xlim() if name == "x" else axis.get_ylim()
        if name == "x" and low < least < high:
            axis.set_xlim(left=least)
        decades = math.log10(high / low)
        if decades < 0.5:
            scale("linear")
            continue
        subs: tuple[float, ...] = (1.0,) if decades >= 3.2 else (1.0, 3.0) if decades >= 1.7 else (1.0, 2.0, 5.0)
        subs = subs if decades >= 1.0 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
        side.set_major_locator(LogLocator(subs=subs, numticks=8))
        side.set_major_formatter(FuncFormatter(_tick))
        side.set_minor_formatter(NullFormatter())


def _tick(value: float, _: Any) -> str:
    """Format a tick: plain numbers near 1, powers of ten elsewhere."""
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    mantissa = round(value / 10.0**exponent)
    return rf"$10^{{{exponent}}}$" if mantissa == 1 else rf"${mantissa}\cdot 10^{{{exponent}}}$"


def plot_curve(axis: Any, t: Any, value: Any, name: str, colour: str | None = None, **style: Any) -> None:
    """Plot a curve, without values that are not positive or are rounding errors."""
    t, value = np.asarray(t, dtype=float), np.asarray(value, dtype=float)
    kept = value > ROUNDING * max(0.0, np.nanmax(value)) if len(value) else value > 0
    if not kept.any():
        return
    chosen: dict[str, Any] = {
        "color": colour or COLOURS.get(name),
        "linestyle": STYLES.get(name, "-"),
        "linewidth": 1.3,
    }
    axis.plot(t[kept], value[kept], label=name, **(chosen | style))


def plot_errors(axis: Any, rows: Any, by: str = "method", first: Sequence[str] = ()) -> None:
    """Plot errors against the iteration, one curve for each value of the column ``by``, for the first start."""
    rows = select(rows, measure="error")
    names = [*first, *(n for n in dict.fromkeys(rows[by]) if n not in first)]
    for k, name in enumerate(names):
        some = select(rows, **{by: name})
        if "start" in some and some["start"].notna().any():
            some = some[some["start"] == some["start"].min()]
        if len(some):
            colour = COLOURS.get(name, PALETTE[k % len(PALETTE)])
            plot_curve(axis, some["t"], some["value"], str(name), colour)


def plot_slopes(axis: Any, at: float, value: float, end: float, lines: Mapping[str, float]) -> None:
    """Plot straight lines of given slopes through a point."""
    t = np.array([at, end])
    for k, (name, power) in enumerate(lines.items()):
        axis.plot(t, value * (t / at) ** power, color="#222222", linestyle=("--", ":")[k % 2], linewidth=1, label=name)


def plot_reference(axis: Any, rows: Any, lines: Mapping[str, float], above: float = 2.0) -> None:
    """Plot reference slopes above a curve, over the last part of its range."""
    rows = select(rows, measure="error")
    rows = rows[rows["value"] > 0]
    if len(rows) > 5:
        end = float(rows["t"].max())
        at = max(2.0, end**0.4)
        value = float(np.interp(at, rows["t"], rows["value"]))
        plot_slopes(axis, at, above * value, end, lines)


def plot_bars(axis: Any, groups: Mapping[str, Mapping[str, float]], labels: Sequence[str]) -> None:
    """Plot grouped bars: one colour per name, one position per label."""
    width = 0.8 / max(1, len(groups))
    for k, (name, values) in enumerate(groups.items()):
        places = [j + (k - (len(groups) - 1) / 2) * width for j, at in enumerate(labels) if at in values]
        heights = [values[at] for at in labels if at in values]
        axis.bar(places, heights, width, label=name, color=COLOURS.get(name, PALETTE[k % len(PALETTE)]))
    axis.set_xticks(range(len(labels)), labels, fontsize=7)


def mark_convergence(axis: Any, at: Mapping[str, float]) -> None:
    """Mark the iterations of convergence by dotted vertical lines."""
    for k, (name, x) in enumerate(at.items()):
        axis.axvline(x, color=COLOURS.get(name, PALETTE[k % len(PALETTE)]), linestyle=":", linewidth=0.9)
