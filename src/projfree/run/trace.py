"""`Trace`: what happened at each recorded iteration, as columns."""

from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array, count, real_array

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("iteration", "passes", "seconds", "value", "bound", "gap", "gamma")


class Trace:
    """Columns of equal length, one row for each recorded iteration.

    ``iteration``, ``passes`` (reads of the data so far), ``seconds`` (solver time alone, without callbacks and
    recording), ``value``, ``bound`` (the best proven so far), ``gap`` (their difference; for objectives that are
    not convex the Frank-Wolfe gap) and ``gamma`` (the step). A value that would have cost an extra pass is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, PrimalAveraging, QuadraticForm, minimize
    >>> f, ball = QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(1.5, radius=1.0)
    >>> minimize(f, ball, PrimalAveraging(), max_iter=9, record=3, tol=0.0).trace["iteration"]
    array([3, 6, 9])
    """

    def __init__(self, columns: dict[str, Array] | None = None) -> None:
        self._rows: list[list[float]] = []
        if columns is not None:
            self._rows = np.column_stack([columns[name] for name in COLUMNS]).tolist()

    @classmethod
    def read(cls, columns: dict[str, Any]) -> Trace:
        """The trace whose columns a file gives: all of one length, and iterations that go up."""
        found = {name: real_array(name, columns[name]) for name in COLUMNS}
        if len({column.shape for column in found.values()}) != 1 or found["iteration"].ndim != 1:
            raise ValueError("the columns of its trace have different lengths")
        if not (np.diff(found["iteration"], prepend=-1) > 0).all():
            raise ValueError("the iterations of its trace do not go up")
        return cls(found)

    def place(self, row: Any, iteration: int) -> int:
        """The place of a row, after a look whether it is that of the iteration."""
        if count("row", row, lowest=0) >= len(self) or self.at(row, "iteration") != iteration:
            raise ValueError(f"row {row} of its trace is not that of iteration {iteration}")
        return int(row)

    def append(self, **row: float) -> int:
        """Add a row; return its place, for values that become known later."""
        self._rows.append([float(row.get(name, np.nan)) for name in COLUMNS])
        return len(self._rows) - 1

    def fill(self, place: int, **values: float) -> None:
        """Set entries of a row that was added before."""
        for name, value in values.items():
            self._rows[place][COLUMNS.index(name)] = float(value)

    def withdraw(self) -> None:
        """Forget all bounds, and the gaps to them."""
        for place in range(len(self)):
            self.fill(place, bound=np.nan, gap=np.nan)

    def at(self, place: int, name: str) -> float:
        """One entry."""
        return self._rows[place][COLUMNS.index(name)]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> Array:
        """One column as an array."""
        if name not in COLUMNS:
            raise KeyError(f"a trace has the columns {', '.join(COLUMNS)}, not {name!r}.")
        column = np.array([row[COLUMNS.index(name)] for row in self._rows])
        return column.astype(np.int64) if name == "iteration" else column

    def columns(self) -> dict[str, Array]:
        """All columns by name."""
        return {name: self[name] for name in COLUMNS}

    def to_pandas(self) -> pd.DataFrame:
        """The trace as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as a CSV file with a header."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([int(row[0]), *(repr(x) for x in row[1:])] for row in self._rows)

    def plot(self, x: str = "passes", ax: Any = None) -> Any:
        """Draw the gap against passes, iterations or seconds on logarithmic axes; returns the axes."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")[1]
        at, gap = self[x].astype(float), self["gap"]
        convex = bool(np.isfinite(self["bound"]).any())
        shown = (gap > 0) & (at > 0)
        ax.loglog(at[shown], gap[shown], color="#0072b2", linewidth=1.8)
        xlabel, ylabel = {"passes": "passes over the data"}.get(x, x), "certified gap" if convex else "Frank-Wolfe gap"
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.grid(True, which="major", color="0.9")
        ax.spines[["top", "right"]].set_visible(False)
        return ax
