"""Colours, dashes and markers that tell series apart also without colour (Okabe and Ito's palette)."""

from __future__ import annotations

LIGHT = ("#0072B2", "#D55E00", "#009E73", "#B5518A", "#8A6100", "#2D8BBA", "#444444", "#7A5195")
DARK = ("#56B4E9", "#FF9E4A", "#2FC59B", "#F0A6CE", "#F0E442", "#9ECBFF", "#CCCCCC", "#C3A6E8")
#: For plotly and for matplotlib, in the same order; dotted lines are those of theorems and of the paper.
DASHES = ("solid", "dash", "dashdot", "longdashdot", "longdash", "solid", "dash", "dashdot")
LINESTYLES = ("-", "--", "-.", (0, (8, 2, 1, 2)), (0, (8, 3)), "-", "--", "-.")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")
MARKERS = ("o", "s", "D", "^", "x", "P", "*", "v")


def place(colour: int | None, position: int) -> int:
    """The entry of each palette that a series uses."""
    return (position if colour is None else colour) % len(LIGHT)
