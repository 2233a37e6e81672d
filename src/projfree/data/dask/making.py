"""The tasks that make partitions: pure, so that a lost one can be made again, with a checksum of what they made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from projfree.algebra.hashing import condensed, short_hash
from projfree.checks import Array, is_sparse, plain_array, shown
from projfree.data.dask.made import noted
from projfree.data.dask.partition import Facts, Partition, aligned, realigned
from projfree.data.dense import DenseData
from projfree.data.frames import from_frame, from_series, is_frame
from projfree.data.local import LocalData

#: Labels that a partition tells of by itself, and rows that show at once where there are more.
FEW_LABELS, SOME_ROWS = 32, 1000


def make_partition(number: int, X: Any, y: Any, weight: Any) -> Partition | None:
    """The partition with this number from blocks of features, targets and weights; None where it has no rows."""
    with Naming(number):
        X, names = from_frame("X", X) if is_frame(X) else (X, None)
        y, weight = plain_array("y", _numbers_or_labels(y)), from_series("sample_weight", weight)
        X = X if is_sparse(X) else aligned(plain_array("X", X))
        if X.ndim == 2 and not X.shape[0] and not len(y):
            return None
        data = _table(X, np.zeros(len(y), dtype=np.int8) if y.dtype.kind not in "fiub" else y)
    parts = (data.X.data, data.X.indices, data.X.indptr) if is_sparse(data.X) else (data.X,)
    return _partition(number, realigned(data), y, weight, names, parts)


def read_partition(
    number: int, path: str, y: Any, weight: Any, columns: Sequence[str] | None, memory: int
) -> Partition | None:
    """The partition of the rows of one Parquet file, which is read chunk by chunk in every round."""
    from projfree.data.chunked import ChunkedData
    from projfree.data.sources import open_source

    with Naming(number):
        labels = _labels(path, y)
        names = columns if labels is None or columns is not None else _all_but(path, [y, weight])
        found = open_source(path, y if labels is None else np.zeros(len(labels)), weight, names)
        assert found is not None
        source, y, weight = found
        data = ChunkedData(source, y, None, memory)
    y = data.y if labels is None else labels
    return _partition(number, data, y, weight, data.feature_names, (data._sums, data.mean_row()))


def _labels(path: str, column: Any) -> Array | None:
    """The labels in a column of a Parquet file that holds no numbers, else None."""
    from projfree.data.sources import open_parquet

    file = open_parquet(Path(path))
    if not isinstance(column, str) or column not in file.schema_arrow.names:
        return None
    kind = str(file.schema_arrow.field(column).type)
    if kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        return None
    return np.array([str(one) for one in file.read([column])[column].to_pylist()], dtype=object)


def _all_but(path: str, others: list[Any]) -> list[str]:
    from projfree.data.sources import open_parquet

    return [name for name in open_parquet(Path(path)).schema_arrow.names if name not in others]


def _numbers_or_labels(y: Any) -> Any:
    """Targets as an array: numbers, or labels of any kind."""
    try:
        return from_series("y", y)
    except TypeError:
        return np.asarray(y, dtype=object)


def _table(X: Any, y: Array) -> Any:
    if is_sparse(X):
        from projfree.data.sparse import SparseData

        return SparseData(X, y, None, 1)
    try:
        return DenseData(X, y, None, 1)
    except ValueError:
        _refuse_not_finite("X", X)  # names the row in its own words; reading all rows for it beforehand takes time
        raise


def _partition(
    number: int, data: LocalData, y: Array, weight: Any, names: tuple[str, ...] | None, parts: Any
) -> Partition:
    with Naming(number):
        _refuse_not_finite("y", y)
        _refuse_mixed_labels(y)
        weight, range_ = _weights(weight, data.n)
    dtype = str(parts[0].dtype)
    numbers = y if y.dtype.kind in "fiub" else np.array([str(one) for one in y.ravel()])
    short = (piece for part in parts for piece in condensed(part))
    checksum = short_hash(f"{data.n} {data.shape(())} {dtype} {y.shape}", *short, numbers, weight)
    nbytes = sum(part.nbytes for part in parts) + y.nbytes + (0 if weight is None else weight.nbytes)
    facts = Facts(
        number, data.n, data.shape(())[0], dtype, nbytes, data.stored, y.shape[1:], data.summation(), range_, names,
        (data.row_norm, data.mean_square), _labels_of(y, weight), "numbers" if y.dtype.kind in "fiub" else "labels",
        checksum,
    )  # fmt: skip
    return noted(Partition(data, y, weight, facts))


def _labels_of(y: Array, weight: Array | None) -> Array | None:
    """The different targets of rows with some weight, where they are few: then rounds that ask for them are saved."""
    if y.ndim > 1 or len(np.unique(y[:SOME_ROWS])) > FEW_LABELS:
        return None
    labels = np.unique(y if weight is None else y[weight > 0.0])
    return labels if len(labels) <= FEW_LABELS else None


def _weights(weight: Any, n: int) -> tuple[Array | None, tuple[float, float, float] | None]:
    """Weights as they were given, and the largest, the smallest positive one and their sum in units of the largest."""
    if weight is None:
        return None, None
    weight = plain_array("sample_weight", weight).astype(np.float64)
    if weight.shape != (n,):
        raise ValueError(f"`sample_weight` must have one entry for each of the {n} rows, got shape {weight.shape}.")
    _refuse_not_finite("sample_weight", weight)
    if weight.min() < 0.0:
        row = int(np.argmin(weight))
        raise ValueError(
            f"`sample_weight` must be non-negative, got {shown(weight[row])} in row {row}; drop the rows that should "
            "not count."
        )
    return weight, weight_range(weight)


def weight_range(weight: Array) -> tuple[float, float, float]:
    """The largest of some weights, the smallest positive one, and their sum in units of the largest."""
    largest = float(weight.max())
    if largest == 0.0:
        return 0.0, math.inf, 0.0
    return largest, float(weight[weight > 0.0].min()), float((weight / largest).sum())


def _refuse_not_finite(name: str, array: Array) -> None:
    if array.dtype.kind != "f" or np.isfinite(np.add.reduce(array, axis=None, dtype=np.float64)):
        return
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        column = f", column {bad[0, 1]}" if array.ndim > 1 else ""
        raise ValueError(
            f"`{name}` must be finite, got {shown(array[tuple(bad[0])])} in row {bad[0, 0]}{column}; drop or impute "
            "such rows first."
        )


def _refuse_mixed_labels(y: Array) -> None:
    """Raise where labels have no order among them, such as words and None."""
    kinds = [type(label) for label in y.ravel()] if y.dtype.kind == "O" else []
    other = next((place for place, kind in enumerate(kinds) if kind is not kinds[0]), None)
    if other is None:
        return
    try:
        np.unique(y)
    except TypeError:
        raise ValueError(
            f"`y` must hold labels of one kind, got {kinds[other].__name__} in row {other // (y.size // len(y))} and "
            f"{kinds[0].__name__} before it; drop or relabel the others."
        ) from None


class Naming:
    """Says which partition an error is about."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        for kind_of in (ValueError, TypeError):
            if type(error) is kind_of and "of the data:" not in str(error):
                raise kind_of(f"partition {self.number} of the data: {error}") from error
