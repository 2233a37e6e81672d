"""Reading tables: CSV, Parquet and npy, with one sentence for each thing that can be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array, shown

KINDS = (".csv", ".tsv", ".parquet", ".npy")


@dataclass(frozen=True, eq=False)
class TableFile:
    """Columns of a file: a frame, and whether its columns have names or only numbers."""

    frame: Any
    named: bool
    path: Path

    def column(self, name: str, option: str) -> Any:
        """The label of a column, by name or by number, or a sentence with the names there are."""
        columns = list(self.frame.columns)
        if name in columns:
            return name
        if name.lstrip("-").isdigit() and -len(columns) <= int(name) < len(columns):
            return columns[int(name)]
        there = ", ".join(map(str, columns[:12])) + (", ..." if len(columns) > 12 else "")
        raise ValueError(
            f"{option} must be a column of {str(self.path)!r}, got {shown(name)}; its columns are {there}."
        )

    def features(self, without: list[Any]) -> Any:
        """The other columns as a frame of numbers; text and missing values are named with their place."""
        frame = self.frame.drop(columns=without)
        if not len(frame.columns):
            raise ValueError(f"{str(self.path)!r} has no columns besides {', '.join(map(str, without))}.")
        for name in frame.columns:
            frame[name] = numbers(frame[name], f"column {name!r} of {str(self.path)!r}")
        return frame if self.named else frame.to_numpy()


def numbers(column: Any, where: str) -> Array:
    """A column as floats."""
    import pandas as pd

    if column.dtype.kind not in "biuf":
        values = pd.to_numeric(column, errors="coerce")
        bad = np.flatnonzero(values.isna().to_numpy() & column.notna().to_numpy())
        if len(bad):
            text = column.iloc[int(bad[0])]
            raise ValueError(
                f"{where} must hold numbers, got {shown(text)} in row {int(bad[0]) + 1}; encode it, or leave it out "
                "with --drop."
            )
        column = values
    values = column.to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"{where} is missing or infinite in row {int(bad[0]) + 1}; fill it, or leave the row out.")
    return np.asarray(values)


def read_table(path: Path) -> TableFile:
    """A table from a file, or a sentence on why there is none."""
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} does not exist.")
    if path.suffix not in KINDS:
        raise ValueError(f"{str(path)!r} must end in one of {', '.join(KINDS)}.")
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{str(path)!r} is empty.")
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("reading tables needs pandas and pyarrow; pip install 'projfree[io]'.") from error
    try:
        if path.suffix == ".npy":
            frame = pd.DataFrame(_array(path))
        elif path.suffix == ".parquet":
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")
    except (ValueError, OSError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{str(path)!r} cannot be read as {path.suffix[1:]}: {first}") from error
    if not len(frame):
        raise ValueError(f"{str(path)!r} has no rows.")
    return TableFile(frame, path.suffix != ".npy", path)


def _array(path: Path) -> Array:
    array = np.load(path, allow_pickle=False)
    if array.ndim != 2:
        raise ValueError(f"it holds an array of shape {array.shape}, not a table.")
    return np.asarray(array)
