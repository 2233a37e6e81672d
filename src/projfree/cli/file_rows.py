"""From a file to features and targets, and from features to what an estimator takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.cli.options import CLASSES
from projfree.cli.tables import Reading, column_of, numbers, read_table, refuse_commas
from projfree.estimators.frame_columns import row_of
from projfree.estimators.table_encoder import TableEncoder


@dataclass(frozen=True, eq=False)
class FileRows:
    """Features as they were read, targets, and the loss for them."""

    X: Any
    y: Array
    loss: str
    named: bool
    encoder: TableEncoder
    remarks: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.y)

    def fitted_on(self, rows: Array) -> FileRows:
        """With the encoding that some of the rows ask for."""
        return replace(self, encoder=self.encoder.fit(self.X.iloc[rows]))

    def part(self, rows: Array) -> Any:
        """Features of some rows as numbers: a frame, or an array where columns have no names."""
        table = self.encoder.transform(self.X.iloc[rows])
        return table if self.named or not self.encoder.trivial else table.to_numpy()


def rows_of(
    path: Path,
    target: str,
    loss: str,
    drop: Sequence[str] | None,
    reading: Reading | None = None,
    impute: str | None = None,
    one_hot: str = "auto",
) -> FileRows:
    """The rows of a file for a loss: numbers for regression, labels for classes."""
    table = read_table(path, reading)
    column = table.column(target, "--target")
    gone = [table.column(name, "--drop") for name in drop or []]
    frame, remarks = table.frame, [table.remark]
    if impute == "drop":
        there = frame.drop(columns=gone).notna().all(axis=1)
        remarks.append(f"{int((~there).sum()):,} of {len(frame):,} rows have missing values and are left out.")
        frame = frame[there]
        if not len(frame):
            raise ValueError(f"every row of {str(path)!r} has a missing value; use --impute median, or --drop columns.")
    X = frame.drop(columns=[column, *gone])
    if not len(X.columns):
        raise ValueError(f"{str(path)!r} has no columns besides {', '.join([column, *gone])}.")
    refuse_commas(X)
    encoder = TableEncoder(one_hot=_encoded(one_hot, list(table.frame.columns), path), impute=impute)
    y, loss = targets_of(frame[column], loss)
    return FileRows(X, y, loss, table.named, encoder, tuple(filter(None, remarks)))


def _encoded(text: str, columns: list[str], path: Path) -> Any:
    if text in ("auto", "none"):
        return text
    return [column_of(columns, name.strip(), "--one-hot", path) for name in text.split(",")]


def targets_of(values: Any, loss: str) -> tuple[Array, str]:
    """The targets and the loss that fits them: numbers for regression, labels for classes."""
    refuse_commas(values.to_frame())
    chosen = loss if loss != "auto" else "squared" if values.dtype.kind in "iufmMc" else "logistic"
    if chosen not in CLASSES:
        return _regression(values), chosen
    if values.isna().any():
        row = row_of(values, int(np.flatnonzero(values.isna().to_numpy())[0]))
        raise ValueError(f"column {values.name!r} is missing in row {row}; leave the row out, e.g. with --impute drop.")
    if values.nunique() < 2:
        raise ValueError(f"column {values.name!r} holds one class only; a classifier needs two.")
    if values.nunique() > max(50, len(values) // 4):
        raise ValueError(
            f"column {values.name!r} has {values.nunique()} different values, too many for classes; use --loss squared "
            "for regression."
        )
    labels = np.asarray(values.to_numpy())
    return (np.array([str(label).strip() for label in labels]) if values.dtype.kind == "O" else labels), chosen


def _regression(values: Any) -> Array:
    try:
        return numbers(values)
    except ValueError as error:
        raise ValueError(f"{str(error).rstrip('.')}; for classes use --loss logistic.") from error


def groups_of(text: str | None, sources: list[str], path: Path) -> list[int] | None:
    """The group of each encoded feature; ``sources`` names the column of the table that each comes from."""
    if text is None:
        return None
    columns = list(dict.fromkeys(sources))
    group = {name: j for j, name in enumerate(columns)}
    named: set[str] = set()
    for part in [] if text == "auto" else text.split(";"):
        names = [column_of(columns, name.strip(), "--feature-groups", path) for name in part.split(",")]
        for name in names:
            if name in named:
                raise ValueError(f"--feature-groups names the column {shown(name)} twice; give it one group.")
            named.add(name)
            group[name] = group[names[0]]
    numbered = {place: k for k, place in enumerate(sorted(set(group.values())))}
    return [numbered[group[name]] for name in sources]
