"""Tables of the command line: text, Parquet and npy files as frames, with one sentence for each thing that is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from projfree.checks import Array, shown
from projfree.cli.options import CLASSES, NUMBERS
from projfree.data import NpySource, as_data
from projfree.data.sources import SourceSubset, open_parquet, parquet_files
from projfree.estimators.encoding import table_encoder, text_columns
from projfree.solvers.choose import memory_limit

TEXT = (".csv", ".tsv", ".txt", ".data")
KINDS = (*TEXT, *(kind + ".gz" for kind in TEXT), ".parquet", ".npy")
#: A column of text with more levels than this, or with as many as half of its rows, is no category.
MOST_LEVELS = 1_000
#: Rows of a file that is larger than memory to read at a time.
CHUNK = 1 << 16


# ---------------------------------------------------------------- files


def kind_of(path: Path) -> str:
    """The kind of a file by the end of its name; raises if it cannot be read."""
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
    path: Path, sep: str | None = None, header: bool | None = None, text: Sequence[str] = ()
) -> tuple[Any, str]:
    """Read a frame with column names of type str, and what a user should know about how it was read.

    The columns ``text``, by name or number, are read as text even if their cells look like numbers.
    """
    kind, remark = kind_of(path), ""
    try:
        if kind == ".npy":
            frame = next(chunks_of(path, rows=None))
        elif kind == ".parquet":
            frame = pd.read_parquet(path).reset_index(drop=True)
            frame.columns = [str(name) for name in frame.columns]
        else:
            frame, remark = _read_text(path, sep, header, text)
    except (ArrowException, UnicodeDecodeError, BadGzipFile, EOFError, KeyError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as a table ({str(error).splitlines()[0]}).") from error
    _refuse_twice(list(frame.columns), path)
    if not len(frame):
        raise ValueError(f"{str(path)!r} has no rows.")
    return frame, remark


def _read_text(path: Path, sep: str | None, header: bool | None, text: Sequence[str]) -> tuple[Any, str]:
    by = {"tab": "\t", "space": " ", None: "\t" if ".tsv" in path.name.lower() else ","}.get(sep, sep)
    if by is None or len(by) != 1:
        raise ValueError(f"--sep must be one character, or tab or space, got {shown(sep)}.")
    given: dict[str, Any] = {"sep": by, "skipinitialspace": True, "low_memory": False}
    try:
        first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **given).iloc[0]
        named = bool(pd.to_numeric(first, errors="coerce").isna().all()) if header is None else header
        names = [name.strip() for name in first] if named else [str(j) for j in range(len(first))]
        _refuse_twice(names, path)
        strings = {name for name in (_found(names, one) for one in text) if name is not None}
        given |= {"dtype": dict.fromkeys(strings, str), "na_values": ["?"], "index_col": False}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, header=0 if named else None, names=names, **given)
    except pd.errors.ParserWarning as error:
        raise ValueError(
            f"the rows of {str(path)!r} have more fields than its first line, which has {len(names)}; repair it, or "
            "give --sep."
        ) from error
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as text in columns ({str(error).strip()}).") from error
    if named or header is not None:
        return frame, ""
    return frame, f"{str(path)!r} has no header, so its columns are 0 to {len(names) - 1} (--header if not)."


def chunks_of(path: Path, rows: int | None = CHUNK) -> Iterator[Any]:
    """The frames of a Parquet or npy file, some rows at a time; their indices count the rows of the file."""
    done = 0
    if kind_of(path) == ".npy":
        NpySource(path)  # raises unless it is a table of real numbers, as long as its header says
        whole = np.load(path, mmap_mode="r")
        names = [str(j) for j in range(whole.shape[1])]
        for start in range(0, max(1, len(whole)), rows or max(1, len(whole))):
            part = whole[start : start + rows] if rows else whole
            yield pd.DataFrame(np.array(part), index=range(start, start + len(part)), columns=names)
        return
    for file in parquet_files(path):
        for batch in open_parquet(file).iter_batches(rows):
            frame = batch.to_pandas()
            frame.index = range(done, done + len(frame))
            done += len(frame)
            yield frame


def _refuse_twice(names: Sequence[str], path: Path) -> None:
    """Raise if two columns have the same name: a second target would become a feature."""
    for j, name in enumerate(names):
        if name in names[:j]:
            raise ValueError(
                f"{str(path)!r} has the column {name!r} twice, at {names.index(name)} and {j}; rename one."
            )


# ---------------------------------------------------------------- columns


def _found(columns: Sequence[str], name: str) -> str | None:
    if name in columns:
        return name
    number = name.lstrip("-").isdigit() and -len(columns) <= int(name) < len(columns)
    return columns[int(name)] if number else None


def column_of(columns: Sequence[str], name: str, option: str, path: Path) -> str:
    """The column with a name, or with a number from 0 on; negative numbers count from the end."""
    column = _found(columns, name.strip())
    if column is not None:
        return column
    there = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
    hint = "; give --sep if that is more than one" if len(columns) == 1 else ""
    raise ValueError(f"{option} must be a column of {str(path)!r}, got {shown(name)}; its columns are {there}{hint}.")


def row_of(column: Any, at: Any) -> int:
    """The number in the file, from 1 on, of the first row where ``at`` is True."""
    return int(column.index[int(np.argmax(np.asarray(at)))]) + 1


def floats(column: Any, *, finite: bool = True) -> Any:
    """A column as floats; raises at the first entry that is no number, or, if ``finite``, is missing or infinite."""
    if column.dtype.kind in "mMc":
        raise ValueError(
            f"column {column.name!r} holds {column.dtype} (row {row_of(column, [True])}: {column.iloc[0]}), neither "
            "numbers nor text; convert it, or leave it out."
        )
    values = pd.to_numeric(column.astype(object) if column.dtype == "category" else column, errors="coerce")
    bad = (values.isna() & column.notna()).to_numpy()
    if bad.any():
        text, row = shown(column[bad].iloc[0]), row_of(column, bad)
        raise ValueError(
            f"column {column.name!r} must hold numbers, got {text} in row {row}; encode it, or leave it out."
        )
    values = values.astype(np.float64)
    bad = ~np.isfinite(values.to_numpy())
    if finite and bad.any():
        raise ValueError(
            f"column {column.name!r} is missing or infinite in row {row_of(column, bad)}; use --impute median or "
            "--impute drop, fill it yourself, or leave it out."
        )
    return values


def is_text(column: Any, *, one_hot: bool = True) -> bool:
    """Whether a column is text to encode; raises for dates, and for numbers with a few mistakes among them."""
    if column.dtype.kind in "biufmMc":
        return False
    present = column.dropna()
    parsed = pd.to_numeric(present.astype(object), errors="coerce").notna()
    if parsed.all():
        return False
    texts = present.astype(str)
    if pd.to_numeric(texts.str.replace(",", "."), errors="coerce").notna().all():
        raise ValueError(
            f"column {column.name!r} holds numbers with decimal commas, such as "
            f"{texts[texts.str.contains(',')].iloc[0]!r}; write them with a decimal point, or leave the column out."
        )
    if not one_hot or 2 * parsed.sum() > len(parsed):
        floats(column)  # raises at the first text
    return True


def as_ids(column: Any) -> Any:
    """A column of text as integers if each is printed as it stands there: 007 is neither 07 nor 7."""
    codes, labels = pd.factorize(column)
    try:
        numbers = np.array([int(label) for label in labels], np.int64)
    except (ValueError, OverflowError):
        return column
    same = [str(number) for number in numbers] == [str(label).strip() for label in labels]
    return pd.Series(numbers[codes], index=column.index, name=column.name) if same and (codes >= 0).all() else column


# ---------------------------------------------------------------- features and targets


@dataclass(frozen=True, eq=False)
class Rows:
    """Features and targets of a file.

    ``X`` is a frame of floats and text, or, for a file larger than memory, a data class that reads it in chunks and
    whose targets are ``y``, or their places in ``labels`` if there are some.
    """

    X: Any
    y: Array
    loss: str
    named: bool
    text: tuple[str, ...] = ()
    impute: bool = False
    labels: Array | None = None
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    @property
    def streamed(self) -> bool:
        """Whether the rows stay in the file."""
        return not hasattr(self.X, "iloc")

    def encoder(self, rows: Array) -> Any:
        """The encoder of these rows, fitted on some of them; None if all columns are complete numbers."""
        if self.streamed or not (self.text or self.impute):
            return None
        numbers = [name for name in self.X.columns if name not in self.text]
        return table_encoder(numbers, dict.fromkeys(self.text), impute=self.impute).fit(self.X.iloc[rows])

    def part(self, rows: Array, encoder: Any) -> tuple[Any, ...]:
        """Some of the rows as the arguments of ``fit`` and ``score``."""
        if self.streamed:
            return (self.X.subset(rows),)
        X = self.X.iloc[rows]
        return encoder.transform(X) if encoder is not None else X if self.named else X.to_numpy(), self.y[rows]


def read_rows(
    path: Path,
    targets: Sequence[str],
    *,
    loss: str = "auto",
    drop: Sequence[str] = (),
    sep: str | None = None,
    header: bool | None = None,
    impute: str | None = None,
    one_hot: str = "auto",
) -> Rows:
    """Read features and targets; the loss "auto" is chosen by the targets."""
    if loss not in (choices := ("auto", *NUMBERS, *CLASSES)):
        raise ValueError(f"--loss must be one of {', '.join(choices)}, got {shown(loss)}.")
    if impute not in (None, "median", "drop"):
        raise ValueError(f"--impute must be median or drop, got {shown(impute)}.")
    extra, large = [] if one_hot in ("auto", "none") else one_hot.split(","), _too_large(path)
    frame, remark = (_no_rows(path), "") if large else read_table(path, sep, header, extra)
    columns, remarks = list(frame.columns), [remark]
    y_names = list(dict.fromkeys(column_of(columns, name, "--target", path) for name in targets))
    gone = [column_of(columns, name, "--drop", path) for name in drop]
    if large:
        return _streamed(path, [name for name in columns if name not in (*y_names, *gone)], y_names, loss)
    encoded = [column_of(columns, name, "--one-hot", path) for name in extra]
    if impute == "drop":
        complete = frame.drop(columns=gone).notna().all(axis=1)
        remarks.append(f"{int((~complete).sum()):,} of {len(frame):,} rows have missing values and are left out.")
        frame = frame[complete]
        if not len(frame):
            raise ValueError(f"every row of {str(path)!r} has a missing value; use --impute median, or --drop columns.")
    X = frame.drop(columns=[*y_names, *gone])
    if not len(X.columns):
        raise ValueError(f"{str(path)!r} has no columns besides {', '.join([*y_names, *gone])}.")
    text = [name for name in X.columns if name in encoded or is_text(X[name], one_hot=one_hot != "none")]
    median = impute == "median"
    X = features(X, text, impute=median)
    for name in text:
        levels = X[name].nunique()
        if levels > MOST_LEVELS or (len(X) > 40 and 2 * levels > len(X)):
            raise ValueError(
                f"column {name!r} has {levels} different texts in {len(X)} rows, too many for a category; leave it out."
            )
    if median and (empty := [name for name in X if X[name].isna().all()]):
        raise ValueError(f"column {empty[0]!r} has no numbers at all; leave it out.")
    y, loss, remark = targets_of(frame[y_names], loss)
    named = kind_of(path) != ".npy"
    return Rows(X, y, loss, named, tuple(text), median, remarks=tuple(filter(None, [*remarks, remark])))


def features(frame: Any, text: Sequence[str], *, impute: bool = False) -> Any:
    """A frame of text, and of floats that are complete unless missing ones will be imputed."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        columns[name] = text_columns(frame[[name]])[name] if name in text else floats(column, finite=not impute)
        if impute and name not in text and np.isinf(columns[name]).any():
            floats(column)  # raises
    return type(frame)(columns, index=frame.index)


def targets_of(frame: Any, loss: str) -> tuple[Array, str, str]:
    """Targets, the loss for them, and a remark on that choice: numbers for regression, labels for classes."""
    text, remark = [name for name in frame if is_text(frame[name])], ""
    if loss == "auto":
        values = [] if text or frame.shape[1] > 1 else floats(frame.iloc[:, 0], finite=False).dropna().unique()
        loss = "logistic" if text or len(values) == 2 else "squared"
        if len(values) == 2:
            low, high = sorted(values)
            remark = (
                f"Column {frame.columns[0]!r} holds {low:g} and {high:g} alone: they are classes (else --loss squared)."
            )
    if loss not in CLASSES:
        try:
            y = np.column_stack([floats(frame[name]) for name in frame])
        except ValueError as error:
            raise ValueError(f"{str(error).rstrip('.')}; for classes use --loss logistic.") from error
        return (y[:, 0] if y.shape[1] == 1 else y), loss, remark
    if frame.shape[1] > 1:
        raise ValueError(f"several targets must be numbers, and {(text or list(frame))[0]!r} has classes; give one.")
    column = frame.iloc[:, 0]
    if column.isna().any():
        row = row_of(column, column.isna())
        raise ValueError(f"column {column.name!r} is missing in row {row}; leave the row out, e.g. with --impute drop.")
    if column.nunique() < 2:
        raise ValueError(f"column {column.name!r} holds one class only; a classifier needs two.")
    if column.nunique() > max(50, len(column) // 4):
        raise ValueError(
            f"column {column.name!r} has {column.nunique()} different values, too many for classes; use --loss squared "
            "for regression."
        )
    return np.array(text_columns(frame).iloc[:, 0].tolist()) if text else column.to_numpy(), loss, remark


# ---------------------------------------------------------------- files larger than memory


def _too_large(path: Path) -> bool:
    """Whether a table takes more than half of the memory limit; text files are always read at once."""
    kind = kind_of(path)
    if kind not in (".npy", ".parquet"):
        return False
    if kind == ".npy":
        source = NpySource(path)
        entries = source.n * source.d
    else:
        heads = [open_parquet(file).metadata for file in parquet_files(path)]
        entries = sum(head.num_rows * head.num_columns for head in heads)
    return 2 * 8 * entries > memory_limit()


def _no_rows(path: Path) -> Any:
    """The columns of a Parquet or npy file without their rows."""
    if kind_of(path) == ".npy":
        return pd.DataFrame(columns=[str(j) for j in range(NpySource(path).d)])
    names = list(open_parquet(parquet_files(path)[0]).schema_arrow.names)
    _refuse_twice(names, path)
    return pd.DataFrame(columns=names)


def _streamed(path: Path, features: list[str], targets: list[str], loss: str) -> Rows:
    """The rows of a file that is read in chunks; features must be complete numbers."""
    npy = kind_of(path) == ".npy"
    if npy:
        frame = pd.DataFrame(np.load(path, mmap_mode="r")[:, list(map(int, targets))], columns=targets)
    else:
        frame = pd.read_parquet(path, columns=targets).reset_index(drop=True)
    y, loss, remark = targets_of(frame, loss)
    labels, numbers = np.unique(y, return_inverse=True) if loss in CLASSES else (None, y)
    source = SourceSubset(NpySource(path), columns=list(map(int, features))) if npy else path
    X = as_data(source, numbers.astype(np.float64), columns=None if npy else features)
    large = f"{str(path)!r} is larger than the memory to use for it, so that it is read chunk by chunk."
    return Rows(X, y, loss, not npy, labels=labels, remarks=tuple(filter(None, (large, remark))))
