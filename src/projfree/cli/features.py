"""Features of users and items from files: ids, and columns of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from projfree.checks import Array
from projfree.cli.tables import Reading, read_table


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
    return frame[first].to_numpy(), TableEncoder().fit_transform(frame.drop(columns=first))
