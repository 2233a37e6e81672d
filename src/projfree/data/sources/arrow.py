"""What Parquet and CSV files share: pyarrow, imported where it is used, and its errors as sentences."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from projfree.checks import shown

#: Bytes of a column that are read from the file at a time, instead of the whole column of a row group.
BUFFER_BYTES = 1 << 16


def parquet_files(path: Path) -> list[Path]:
    """The file, or the files of a folder in order of names."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(("_", ".")))
    if not found:
        raise FileNotFoundError(f"The folder {path} holds no .parquet files.")
    return found


def open_parquet(path: Path, metadata: Any = None, pieces: bool = True) -> Any:
    """A Parquet file, whose columns are read in small pieces or one row group at a time, or what is wrong with it."""
    arrow, parquet = need_arrow("pyarrow"), need_arrow("pyarrow.parquet")
    try:
        buffer = BUFFER_BYTES if pieces else 0
        return parquet.ParquetFile(path, metadata=metadata, buffer_size=buffer, pre_buffer=False)
    except (arrow.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is no Parquet file, or is truncated: {shown(str(error))}") from None


def need_arrow(module: str) -> Any:
    """A part of pyarrow, which only these files need."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError("Parquet and CSV files need pyarrow; install it with `pip install projfree[io]`.") from None


def is_single(kind: Any) -> bool:
    """Whether float32 holds all values of an Arrow type."""
    return str(kind) in ("float", "halffloat")


def refuse_other_schema(names: Sequence[str], first: Any, path: Path, schema: Any, whole: str) -> None:
    """Each column must be there, once, hold numbers, and be of the type that it has in the first file."""
    types = need_arrow("pyarrow.types")
    for name in names:
        if schema.names.count(name) != 1:
            raise ValueError(
                f"{path} must have one column {name!r}, got {schema.names.count(name)}; it has {shown(schema.names)}."
            )
        kind, due = schema.field(name).type, first.field(name).type
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
            raise TypeError(f"Column {name!r} of {path} holds {kind}, not numbers; choose others with `columns=`.")
        if kind != due:
            raise TypeError(f"Column {name!r} is {kind} in {path}, but {due} in the first file of {whole}.")
