"""Features of users and items from files: ids, and columns of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.cli.tables import Reading, read_table, refuse_commas
from projfree.estimators.frame_columns import row_of


def read_features(path: Path | None, ids: str, reading: Reading, *, text: bool) -> tuple[Array, Any] | None:
    """Ids and features of a file; the ids are in the column of this name, or in the first one.

    With ``text`` the ids are text, as those of the ratings are, also where all of them look like numbers.
    Text becomes a column of zeros and ones for each value, a missing text one of its own; missing numbers stay NaN.
    """
    if path is None:
        return None
    from projfree.estimators.table_encoder import TableEncoder

    names = list(read_table(path, reading).frame.columns)
    first = ids if ids in names else names[0]
    frame = read_table(path, reading, [first] if text else (), [first]).frame
    if len(frame.columns) < 2:
        raise ValueError(f"{str(path)!r} must have a column of ids and others with features, got {first!r} alone.")
    rest = frame.drop(columns=first)
    refuse_commas(rest)
    numbers = rest.select_dtypes("number").astype(np.float64)
    _refuse_infinite(path, numbers)
    table = TableEncoder().fit_transform(rest.fillna(dict.fromkeys(numbers, 0.0)))
    table[list(numbers)] = numbers
    return frame[first].to_numpy(), table


def _refuse_infinite(path: Path, numbers: Any) -> None:
    for name in numbers:
        bad = np.flatnonzero(np.isinf(numbers[name].to_numpy()))
        if len(bad):
            raise ValueError(
                f"column {name!r} of {str(path)!r} is infinite in row {row_of(numbers[name], int(bad[0]))}; leave it "
                "empty where it is not known, or leave the column out."
            )
