"""Features of users and items from files: ids, and columns of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.cli.tables import Reading, read_table
from projfree.estimators.frame_columns import row_of


def read_features(path: Path | None, ids: str, reading: Reading) -> tuple[Array, Any] | None:
    """Ids and features of a file; the ids are in the column of this name, or in the first one.

    Text becomes a column of zeros and ones for each value.
    """
    if path is None:
        return None
    from projfree.estimators.table_encoder import TableEncoder

    frame = read_table(path, reading).frame
    first = ids if ids in frame.columns else frame.columns[0]
    if len(frame.columns) < 2:
        raise ValueError(f"{str(path)!r} must have a column of ids and others with features, got {first!r} alone.")
    rest = frame.drop(columns=first)
    _refuse_gaps(path, rest)
    return frame[first].to_numpy(), TableEncoder().fit_transform(rest)


def _refuse_gaps(path: Path, frame: Any) -> None:
    """Raise where a number is missing or infinite; a missing text is a value of its own."""
    for name in frame.select_dtypes("number"):
        bad = np.flatnonzero(~np.isfinite(frame[name].to_numpy(dtype=np.float64, na_value=np.nan)))
        if len(bad):
            raise ValueError(
                f"column {name!r} of {str(path)!r} is missing or infinite in row {row_of(frame[name], int(bad[0]))}; "
                "fill it, or leave the column out."
            )
