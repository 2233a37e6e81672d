"""Tables of the command line: text, Parquet and npy files as frames, with one sentence for each thing that is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.cli.id_columns import as_ids
from projfree.data.sources import open_parquet, parquet_files
from projfree.estimators.frame_columns import column_numbers, row_of

TEXT = (".csv", ".tsv", ".txt", ".data")
KINDS = (*TEXT, *(kind + ".gz" for kind in TEXT), ".parquet", ".npy")
#: What stands for a missing value in text files, besides an empty field and what pandas takes for one.
MISSING = "?"


@dataclass(frozen=True)
class Reading:
    """How a text file is read: the separator, None for the usual one, and whether it has a header, None to guess."""

    sep: str | None = None
    header: bool | None = None


@dataclass(frozen=True, eq=False)
class TableFile:
    """Columns of a file: a frame, and whether its columns have names or only numbers."""

    frame: Any
    named: bool
    path: Path
    #: What a user should know about how the file was read.
    remark: str = ""

    def column(self, name: str, option: str) -> str:
        """The name of a column, by name or by number, or a sentence with the names there are."""
        return column_of(list(self.frame.columns), name, option, self.path)


def place_of(columns: Sequence[str], name: str) -> str | None:
    """The column with a name or a number, None where there is none."""
    if name in columns:
        return name
    if name.lstrip("-").isdigit() and -len(columns) <= int(name) < len(columns):
        return columns[int(name)]
    return None


def column_of(columns: Sequence[str], name: str, option: str, path: Path) -> str:
    """The column that a user means by a name or a number from 0 on; negative ones count from the end."""
    place = place_of(columns, name)
    if place is not None:
        return place
    there = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
    hint = "; give --sep if that is more than one" if len(columns) == 1 else ""
    raise ValueError(f"{option} must be a column of {str(path)!r}, got {shown(name)}; its columns are {there}{hint}.")


def refuse_twice(names: Sequence[str], path: Path) -> None:
    """Raise where two columns have one name: a second target would become a feature."""
    for j, name in enumerate(names):
        if name in names[:j]:
            raise ValueError(
                f"{str(path)!r} has the column {name!r} twice, in places {names.index(name)} and {j}; rename one."
            )


def numbers(column: Any) -> Array:
    """A column as finite floats."""
    values = column_numbers(column)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"column {column.name!r} is missing or infinite in row {row_of(column, int(bad[0]))}; fill it, or leave "
            "the row out."
        )
    return values


def refuse_commas(frame: Any) -> None:
    """Raise where text is numbers with decimal commas, which would pass for classes or categories."""
    import pandas as pd

    for name in frame.select_dtypes(exclude="number"):
        texts = frame[name].dropna().astype(str)
        commas = texts[texts.str.contains(",")]
        if len(commas) and pd.to_numeric(texts.str.replace(",", "."), errors="coerce").notna().all():
            raise ValueError(
                f"column {name!r} holds numbers with decimal commas, such as {commas.iloc[0]!r}; write them with a "
                "decimal point, or leave the column out."
            )


def check_path(path: Path) -> str:
    """The kind of a file by the end of its name, or a sentence on why it cannot be read."""
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} does not exist.")
    kind = next((kind for kind in reversed(KINDS) if path.name.lower().endswith(kind)), None)
    if kind is None:
        raise ValueError(f"{str(path)!r} must end in {', '.join(TEXT)} (these also with .gz), .parquet or .npy.")
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{str(path)!r} is empty.")
    if path.is_dir() and kind != ".parquet":
        raise ValueError(f"{str(path)!r} is a folder, not a {kind[1:]} file.")
    return kind


def read_table(
    path: Path, reading: Reading | None = None, text: Sequence[str] = (), ids: Sequence[str] = ()
) -> TableFile:
    """A table from a file, or a sentence on why there is none.

    Parameters
    ----------
    text : sequence of str
        Columns of text files that are not to be taken for numbers.
    ids : sequence of str
        Columns of text files that are taken for numbers only if these say the same; those not there are ignored.
    """
    kind = check_path(path)
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("reading tables needs pandas and pyarrow; pip install 'projfree[io]'.") from error
    reading, remark = reading or Reading(), ""
    if kind == ".npy":
        frame = pd.DataFrame(_array(path))
        frame.columns = [str(j) for j in range(frame.shape[1])]
    elif kind == ".parquet":
        frame = _parquet(path)
    else:
        frame, remark = _csv(path, reading, text, ids)
    if not len(frame):
        raise ValueError(f"{str(path)!r} has no rows.")
    return TableFile(frame, kind != ".npy", path, remark)


def _places(columns: Sequence[str], names: Sequence[str]) -> set[str]:
    """The columns with some names or numbers, of those that are there."""
    found = (place_of(columns, str(name)) for name in names)
    return {place for place in found if place is not None}


def _csv(path: Path, reading: Reading, text: Sequence[str], ids: Sequence[str]) -> tuple[Any, str]:
    import pandas as pd

    given: dict[str, Any] = {"sep": _separator(reading.sep, path), "skipinitialspace": True, "low_memory": False}
    try:
        first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **given).iloc[0]
        header = pd.to_numeric(first, errors="coerce").isna().all() if reading.header is None else reading.header
        names = [name.strip() for name in first] if header else [str(j) for j in range(len(first))]
        refuse_twice(names, path)
        kept, labels = _places(names, text), _places(names, ids)
        given |= {"dtype": dict.fromkeys(kept | labels, str), "na_values": [MISSING], "index_col": False}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, header=0 if header else None, names=names, **given)
    except pd.errors.ParserWarning as error:
        raise ValueError(
            f"the rows of {str(path)!r} have more fields than its first line, which has {len(names)}; repair it, or "
            "give --sep."
        ) from error
    except (UnicodeDecodeError, BadGzipFile, EOFError, pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as text in columns: {_first_line(error)}") from error
    for name in labels - kept:
        frame[name] = as_ids(frame[name])
    if header or reading.header is not None:
        return frame, ""
    return frame, f"{str(path)!r} has no header, so its columns are 0 to {len(names) - 1} (--header if not)."


def _separator(sep: str | None, path: Path) -> str:
    """The character between fields: what --sep says, else a tab in .tsv files and a comma in others."""
    if sep is None:
        return "\t" if ".tsv" in path.name.lower() else ","
    separator = {"tab": "\t", "space": " "}.get(sep, sep)
    if len(separator) != 1:
        raise ValueError(f"--sep must be one character, or tab or space, got {shown(sep)}.")
    return separator


def _parquet(path: Path) -> Any:
    import pandas as pd
    from pyarrow import ArrowException

    refuse_twice(list(open_parquet(parquet_files(path)[0]).schema_arrow.names), path)
    try:
        frame = pd.read_parquet(path)
    except (ArrowException, ValueError, OSError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as parquet: {_first_line(error)}") from error
    frame.columns = [str(name) for name in frame.columns]
    return frame.reset_index(drop=True)


def _array(path: Path) -> Array:
    from projfree.data.sources import NpySource

    NpySource(path)  # raises where it is no table of real numbers, or shorter than it says
    return np.asarray(np.load(path, allow_pickle=False))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
