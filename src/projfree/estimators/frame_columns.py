"""Columns of a pandas frame: what they hold, as floats, and where a row stands in its table."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array, shown


def kind_of(column: Any) -> str:
    """The kind of values in NumPy's letters; categories count as text."""
    return str(getattr(column.dtype, "kind", "O")) if str(column.dtype) != "category" else "O"


def row_of(column: Any, place: int) -> int:
    """The number of a row in its table, from 1 on; rows that were left out count."""
    return int(column.index[place]) + 1


def column_numbers(column: Any) -> Array:
    """A column as floats, missing values as NaN, or a sentence with the first entry that is no number."""
    import pandas as pd

    if kind_of(column) not in "biuf":
        refuse_dates(column)
        values = pd.to_numeric(column, errors="coerce")
        bad = np.flatnonzero(values.isna().to_numpy() & column.notna().to_numpy())
        if len(bad):
            text, row = shown(column.iloc[int(bad[0])]), row_of(column, int(bad[0]))
            raise ValueError(
                f"column {column.name!r} must hold numbers, got {text} in row {row}; encode it, or leave it out."
            )
        column = values
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def refuse_dates(column: Any) -> None:
    """Raise where a column holds dates, durations or complex numbers."""
    if kind_of(column) in "mMc":
        raise ValueError(
            f"column {column.name!r} holds {column.dtype} (row {row_of(column, 0)}: {column.iloc[0]}), neither "
            "numbers nor text; convert it, or leave it out."
        )
