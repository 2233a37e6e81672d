"""Reading of tables: text, Parquet and npy files as data frames, with an error message for each problem."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from projfree.checks import Array, shown
from projfree.cli.options import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Columns, Layout
from projfree.cli.output import notify
from projfree.data import NpySource
from projfree.estimators.encoding import table_encoder, text_columns

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".data")
SUFFIXES = (*TEXT_SUFFIXES, *(kind + ".gz" for kind in TEXT_SUFFIXES), ".parquet", ".npy")
#: Text columns with more levels than this, or with at least half as many as rows, are not categorical.
MAX_LEVELS = 1_000
#: Errors of pandas and pyarrow for files that are not tables.
PARSER_ERRORS = (pd.errors.EmptyDataError, pd.errors.ParserError, pd.errors.ParserWarning)
READ_ERRORS = (*PARSER_ERRORS, ArrowException, UnicodeDecodeError, BadGzipFile, EOFError)


# ---------------------------------------------------------------- files


def file_type(path: Path) -> str:
    """Return the type of a file by its suffix; raise an error if it is missing or not supported."""
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} does not exist.")
    kind = next((kind for kind in reversed(SUFFIXES) if path.name.lower().endswith(kind)), None)
    if kind is None:
        raise ValueError(
            f"{str(path)!r} must end in {', '.join(TEXT_SUFFIXES)} (these also with .gz), .parquet or .npy."
        )
    return kind


def read_table(path: Path, layout: Layout, text: Sequence[str] = ()) -> Any:
    """Read a file as a data frame with column names of type str.

    Parameters
    ----------
    path : path
        The file, or a folder of Parquet files.
    layout : Layout
        The format of text files.
    text : sequence of str
        Columns, by name or number, that are read as text even if they look like numbers.
    """
    kind = file_type(path)
    try:
        if kind == ".npy":
            source = NpySource(path)  # raises unless it is a table of real numbers, as long as its header says
            frame = pd.DataFrame(next(source.tables([(0, source.n)])), columns=[str(j) for j in range(source.d)])
        elif kind == ".parquet":
            frame = pd.read_parquet(path).reset_index(drop=True).rename(columns=str)
        else:
            frame = _read_text(path, layout, text)
    except READ_ERRORS as error:
        why = str(error).splitlines()[0].rstrip(".")
        way = "repair it, or give --sep or --header" if kind.removesuffix(".gz") in TEXT_SUFFIXES else "write it again"
        if isinstance(error, UnicodeDecodeError):
            way = "save it as UTF-8"
        raise ValueError(f"{str(path)!r} cannot be read as a table ({why}); {way}.") from error
    _check_unique(list(frame.columns), path)
    if not len(frame):
        raise ValueError(f"{str(path)!r} has no rows.")
    return frame


def _read_text(path: Path, layout: Layout, text: Sequence[str]) -> Any:
    by = {"tab": "\t", "space": " ", None: "\t" if ".tsv" in path.name.lower() else ","}.get(layout.sep, layout.sep)
    if by is None or len(by) != 1:
        raise ValueError(f"--sep must be one character, or tab or space, got {shown(layout.sep)}.")
    given: dict[str, Any] = {"sep": by, "skipinitialspace": True, "low_memory": False}
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **given).iloc[0]
    named = bool(pd.to_numeric(first, errors="coerce").isna().all()) if layout.header is None else layout.header
    names = [name.strip() for name in first] if named else [str(j) for j in range(len(first))]
    _check_unique(names, path)
    given["dtype"] = {name: str for one in text if (name := _find_column(names, one)) is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # raised if rows are longer than the first line
        frame = pd.read_csv(path, header=0 if named else None, names=names, na_values=["?"], index_col=False, **given)
    if not named and layout.header is None:
        notify(f"{str(path)!r} has no header, so its columns are 0 to {len(names) - 1} (--header if not).")
    return frame


def _check_unique(names: Sequence[str], path: Path) -> None:
    """Raise ValueError if two columns have the same name: a second target would become a feature."""
    for j, name in enumerate(names):
        if name in names[:j]:
            raise ValueError(
                f"{str(path)!r} has the column {name!r} twice, at {names.index(name)} and {j}; rename one."
            )


# ---------------------------------------------------------------- columns


def _find_column(columns: Sequence[str], name: str) -> str | None:
    if name in columns:
        return name
    number = name.lstrip("-").isdigit() and -len(columns) <= int(name) < len(columns)
    return columns[int(name)] if number else None


def resolve_column(columns: Sequence[str], name: str, option: str, path: Path) -> str:
    """Return the name of a column given by name or number; negative numbers count from the end."""
    column = _find_column(columns, name.strip())
    if column is not None:
        return column
    there = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
    hint = "; give --sep if that is more than one" if len(columns) == 1 else ""
    raise ValueError(f"{option} must be a column of {str(path)!r}, got {shown(name)}; its columns are {there}{hint}.")


def first_row(column: Any, at: Any) -> int:
    """Return the row number in the file, from 1, of the first True in ``at``."""
    return int(column.index[int(np.argmax(np.asarray(at)))]) + 1


def to_floats(column: Any, *, missing: bool = False, or_text: bool = False) -> Any:
    """Convert a column to finite floats; raise ValueError for the first invalid entry.

    Parameters
    ----------
    column : series
        A column whose index is the row number in the file.
    missing : bool
        Whether to accept missing entries.
    or_text : bool
        Whether to return None for text. A column is text if at least half of its entries are neither numbers nor
        numbers with decimal commas; fewer are mistakes.
    """
    cells = column if column.dtype.kind in "biuf" else column.astype(object).map(str, na_action="ignore")
    values = pd.to_numeric(cells, errors="coerce").astype(np.float64)
    bad = values.isna() & cells.notna()
    if bad.any():
        commas = pd.to_numeric(cells[bad].str.replace(",", "."), errors="coerce").notna().all()
        if or_text and column.dtype.kind not in "mMc" and not commas and 2 * bad.sum() >= cells.notna().sum():
            return None
        raise ValueError(
            f"column {column.name!r} must hold numbers, with a decimal point, got {shown(cells[bad].iloc[0])} in row "
            f"{first_row(column, bad)}; encode it, or leave it out."
        )
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        what, way = "infinite", "correct it, or leave out the row or the column"
        if values[bad].isna().iloc[0]:
            what = "missing"
            way += "; with --impute median a fit fills features, and with --impute drop it leaves such rows out"
        raise ValueError(f"column {column.name!r} is {what} in row {first_row(column, bad)}; {way}.")
    return values


def to_ids(column: Any, like: Array | None = None) -> Any:
    """Convert a text column to integers if that is reversible: 007 is different from 7, so it remains text.

    Other columns are unchanged, and so is text if the ids ``like`` are text.
    """
    codes, labels = pd.factorize(column)
    try:
        numbers = np.array([int(label) for label in labels], np.int64)
    except (ValueError, OverflowError):
        return column
    text = column.dtype.kind not in "iufb" and (like is None or like.dtype.kind in "iufb")
    same = text and [str(number) for number in numbers] == [str(label).strip() for label in labels]
    return pd.Series(numbers[codes], index=column.index, name=column.name) if same and (codes >= 0).all() else column


# ---------------------------------------------------------------- features and targets


@dataclass(frozen=True, eq=False)
class Samples:
    """Features and targets of a file.

    Parameters
    ----------
    path : path
        The file.
    X : frame
        Floats and text.
    y : ndarray
        The targets.
    loss : str
        The name of the loss.
    text : sequence of str
        The columns of text.
    impute : bool
        Whether missing numbers are filled.
    """

    path: Path
    X: Any
    y: Array
    loss: str
    text: Sequence[str]
    impute: bool

    def encoder(self, rows: Array) -> Any:
        """Fit an encoder to some rows; return None if all columns are numbers without missing values."""
        if not (self.text or self.impute):
            return None
        numbers = [name for name in self.X if name not in self.text]
        return table_encoder(numbers, dict.fromkeys(self.text), impute=self.impute).fit(self.X.iloc[rows])

    def subset(self, rows: Array, encoder: Any) -> tuple[Any, Array]:
        """Return the features and targets of some rows, as arguments of ``fit`` and ``score``."""
        X = self.X.iloc[rows]
        X = encoder.transform(X) if encoder is not None else X.to_numpy() if file_type(self.path) == ".npy" else X
        return X, self.y[rows]


def read_samples(path: Path, targets: Sequence[str], columns: Columns, loss: str) -> Samples:
    """Read features and targets; with the loss "auto", choose the loss by the targets."""
    if loss not in (choices := ("auto", *REGRESSION_LOSSES, *CLASSIFICATION_LOSSES)):
        raise ValueError(f"--loss must be one of {', '.join(choices)}, got {shown(loss)}.")
    if columns.impute not in (None, "median", "drop"):
        raise ValueError(f"--impute must be median or drop, got {shown(columns.impute)}.")
    extra = [] if columns.one_hot in ("auto", "none") else columns.one_hot.split(",")
    frame = read_table(path, columns, extra)
    names = list(frame)
    y_names = list(dict.fromkeys(resolve_column(names, name, "--target", path) for name in targets))
    dropped = [resolve_column(names, name, "--drop", path) for name in columns.drop or ()]
    encoded = [resolve_column(names, name, "--one-hot", path) for name in extra]
    if columns.impute == "drop":
        complete = frame.drop(columns=dropped).notna().all(axis=1)
        notify(f"{int((~complete).sum()):,} of {len(frame):,} rows have missing values and are left out.")
        frame = frame[complete]
        if not len(frame):
            raise ValueError(f"every row of {str(path)!r} has a missing value; use --impute median, or --drop columns.")
    X, median = frame.drop(columns=[*y_names, *dropped]), columns.impute == "median"
    if not len(X.columns):
        raise ValueError(f"{str(path)!r} has no columns besides {', '.join([*y_names, *dropped])}.")
    any_text = columns.one_hot != "none"
    text = [name for name in X if name in encoded or to_floats(X[name], missing=True, or_text=any_text) is None]
    X = to_features(X, text, impute=median)
    for name, levels in X.nunique().items():
        if name in text and (levels > MAX_LEVELS or (len(X) > 40 and 2 * levels > len(X))):
            raise ValueError(
                f"column {name!r} has {levels} different texts in {len(X)} rows, too many for a category; leave it out."
            )
        if not levels:
            raise ValueError(f"column {name!r} has no numbers at all; leave it out.")
    return Samples(path, X, *to_targets(frame[y_names], loss), text, median)


def to_features(frame: Any, text: Sequence[str], *, impute: bool = False) -> Any:
    """Convert columns to text or floats; missing floats raise an error, unless they will be imputed."""
    strings = text_columns(frame[list(text)])
    columns = {name: strings[name] if name in text else to_floats(frame[name], missing=impute) for name in frame}
    return pd.DataFrame(columns, index=frame.index)


def to_targets(frame: Any, loss: str) -> tuple[Array, str]:
    """Convert targets to numbers or class labels, and choose the loss if it is "auto"."""
    text = [name for name in frame if to_floats(frame[name], missing=True, or_text=True) is None]
    if loss == "auto":
        values = [] if text or frame.shape[1] > 1 else to_floats(frame.iloc[:, 0], missing=True).dropna().unique()
        loss = "logistic" if text or len(values) == 2 else "squared"
        if len(values) == 2:
            low, high = sorted(values)
            notify(
                f"Column {frame.columns[0]!r} holds {low:g} and {high:g} alone: they are classes (else --loss squared)."
            )
    if loss not in CLASSIFICATION_LOSSES:
        y = np.column_stack([to_floats(frame[name]) for name in frame])
        return y[:, 0] if y.shape[1] == 1 else y, loss
    if frame.shape[1] > 1:
        raise ValueError(f"several targets must be numbers, and {(text or list(frame))[0]!r} has classes; give one.")
    column = frame.iloc[:, 0]
    if column.isna().any():
        row = first_row(column, column.isna())
        raise ValueError(f"column {column.name!r} is missing in row {row}; leave the row out, e.g. with --impute drop.")
    if column.nunique() > max(50, len(column) // 4):
        raise ValueError(
            f"column {column.name!r} has {column.nunique()} different values, too many for classes; use --loss squared "
            "for regression."
        )
    return np.array(text_columns(frame).iloc[:, 0].tolist()) if text else column.to_numpy(), loss
