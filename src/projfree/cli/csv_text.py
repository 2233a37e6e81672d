"""What a text file of columns looks like: its separator, whether it has a header, and whether its rows are whole."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from projfree.checks import shown

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 100
_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True)
class CsvLayout:
    """How a file is divided into columns."""

    separator: str
    header: bool
    names: list[str]


def layout_of(path: Path, sep: str | None, header: bool | None) -> CsvLayout:
    """The layout of a file: as the options say, else as its first lines suggest; raises where rows do not fit it."""
    with _text(path) as file:
        lines = list(islice(file, SAMPLE))
    separator = _given(sep) if sep is not None else _guessed(lines, path)
    first = next((row for row in _rows(iter(lines), separator) if row), [])
    if not first:
        raise ValueError(f"{str(path)!r} has no rows.")
    headed = _has_names(first) if header is None else header
    names = [name.strip() for name in first] if headed else [str(j) for j in range(len(first))]
    refuse_twice(names, path)
    _refuse_ragged(path, separator, len(first), headed)
    return CsvLayout(separator, headed, names)


def _text(path: Path) -> IO[str]:
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    text: IO[str] = opener(path, "rt", encoding="utf-8-sig", newline="")
    return text


def _given(sep: str) -> str:
    separator = _NAMES.get(sep, sep)
    if len(separator) != 1:
        raise ValueError(f"--sep must be one character, or tab or space, got {shown(sep)}.")
    return separator


def _rows(lines: Iterator[str], separator: str) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _guessed(lines: list[str], path: Path) -> str:
    """The separator that divides all sampled rows into the same number of columns, or the first row into the most."""
    counts = {}
    for separator in SEPARATORS:
        widths = [len(row) for row in _rows(iter(lines), separator) if row]
        if widths:
            counts[separator] = (len(set(widths[:-1] or widths)) == 1 and widths[0] > 1, widths[0])
    usual = "\t" if ".tsv" in path.suffixes else ","
    return max(counts, key=lambda s: (*counts[s], s == usual), default=usual)


def _has_names(first: list[str]) -> bool:
    """Whether the first row holds names: text, or the numbers 0, 1, ... or 1, 2, ... of the columns themselves."""
    numbers = [(j, cell) for j, cell in enumerate(first) if _is_number(cell)]
    return not numbers or any([all(cell.strip() == str(j + begin) for j, cell in numbers) for begin in (0, 1)])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def refuse_twice(names: list[str], path: Path) -> None:
    """Raise where two columns have one name: a second target would become a feature."""
    for j, name in enumerate(names):
        if name in names[:j]:
            raise ValueError(
                f"{str(path)!r} has the column {name!r} twice, in places {names.index(name)} and {j}; rename one."
            )


def _refuse_ragged(path: Path, separator: str, width: int, headed: bool) -> None:
    """Raise where a row is longer or shorter than the first one: its entries would stand in wrong columns."""
    with _text(path) as file:
        rows, number = _rows(file, separator), -1 if headed else 0
        try:
            for row in rows:
                number += bool(row)
                if row and len(row) != width:
                    held = "the header names" if headed else "the first row has"
                    raise ValueError(
                        f"row {number} of {str(path)!r} has {len(row)} fields where {held} {width} "
                        f"(line {rows.line_num}); repair the row, or give --sep."  # type: ignore[attr-defined]  # the reader of csv has it
                    )
        except csv.Error as error:
            raise ValueError(f"row {number + 1} of {str(path)!r} cannot be read: {error}.") from error
