"""CSV turned into Parquet once, so that every pass after that reads numbers instead of parsing text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from projfree.checks import count, shown
from projfree.data.sources.arrow import need_arrow
from projfree.data.sources.base import existing

#: Bytes of a page: the decoder holds one of each column.
PAGE_BYTES = 1 << 16


def csv_to_parquet(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
    header: bool = True,
    row_group: int = 1 << 16,
    compression: str = "none",
) -> Path:
    """Write the rows of a CSV file (also .gz) to a Parquet file, a block at a time, and return its path.

    ``out`` appears when it is complete: rows are written to a temporary file next to it, which is gone after any
    failure, also an interrupt or a full disk. Whole numbers become floats. Memory: some blocks of text and one row
    group.

    Parameters
    ----------
    path, out : path
        The files to read and to write.
    columns : sequence of str, optional
        Which columns to keep; all by default.
    delimiter : str
        What stands between fields.
    header : bool
        Whether the first row holds names; else columns are called f0, f1, ...
    row_group : int
        Rows a row group: what a sample has to decode.
    compression : str
        Of pyarrow; floats hardly shrink, and "none" is the fastest to read.
    """
    source, target = existing(path), Path(out)
    arrow, csv = need_arrow("pyarrow"), need_arrow("pyarrow.csv")
    count("row_group", row_group)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        _write(csv, source, partial, columns, delimiter, header, row_group, compression)
        os.replace(partial, target)
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{source} cannot be read as numbers in columns: {shown(str(error))}") from error
    except arrow.ArrowKeyError as error:
        raise ValueError(f"{source} lacks a column: {shown(str(error))}") from error
    except OSError as error:
        raise OSError(
            error.errno, f"{target} could not be written ({error.strerror or error}); nothing was left behind."
        ) from error
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    return target


def _write(
    csv: Any,
    source: Path,
    partial: Path,
    columns: Sequence[str] | None,
    delimiter: str,
    header: bool,
    row_group: int,
    compression: str,
) -> None:
    settings = {"compression": compression, "use_dictionary": False, "data_page_size": PAGE_BYTES}
    arrow, parquet, types = need_arrow("pyarrow"), need_arrow("pyarrow.parquet"), need_arrow("pyarrow.types")

    def reader(kinds: Any = None) -> Any:
        return csv.open_csv(
            source,
            csv.ReadOptions(autogenerate_column_names=not header, block_size=1 << 22),
            csv.ParseOptions(delimiter=delimiter),
            csv.ConvertOptions(include_columns=list(columns or ()), column_types=kinds),
        )

    # Types are guessed from the first block, where whole numbers may be floats that happen to be whole.
    with reader() as guess:
        kinds = {f.name: arrow.float64() if types.is_integer(f.type) else f.type for f in guess.schema}
    with (
        reader(kinds) as batches,
        open(partial, "xb") as file,
        parquet.ParquetWriter(file, batches.schema, **settings) as writer,
    ):
        held: list[Any] = []
        for batch in batches:
            held.append(batch)
            if sum(map(len, held)) >= row_group:
                table = arrow.Table.from_batches(held)
                whole = len(table) - len(table) % row_group
                writer.write_table(table.slice(0, whole), row_group_size=row_group)
                held = table.slice(whole).to_batches()
        if held:
            writer.write_table(arrow.Table.from_batches(held), row_group_size=row_group)
        writer.close()
        file.flush()
        os.fsync(file.fileno())  # the disk may be full only now
