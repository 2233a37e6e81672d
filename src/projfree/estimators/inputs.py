"""Validation and conversion of inputs: arrays, frames, files and Dask collections, weights, tasks, free columns."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from projfree.checks import Array, is_missing, is_sparse, shown
from projfree.data import Data, as_data
from projfree.data.convert import is_dask, is_frame
from projfree.data.local import checked_weights
from projfree.data.rows import CHUNK_BYTES, MEMORY

if TYPE_CHECKING:
    from projfree.data.sources import Source


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Features, encoded targets, sample weights and, for multi-task problems, the task of each row.

    ``X`` may be a `Data` object, which contains its targets and weights. ``tasks`` is the number of tasks, including
    those without rows in a subset.
    """

    X: Any
    y: Array
    weight: Array | None = None
    task: Array | None = None
    tasks: int = 0

    def part(self, rows: Array) -> TrainingSet:
        """Return a subset of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        task = None if self.task is None else self.task[rows]
        return TrainingSet(self.X[rows], self.y[rows], weight, task, self.tasks)

    @cached_property
    def data(self) -> Data:
        """The rows as a `Data` object."""
        return self.X if isinstance(self.X, Data) else as_data(self.X, self.y, self.weight)

    @property
    def total_weight(self) -> float:
        """The sum of the sample weights."""
        return float(self.data.n if self.data.total_weight is None else self.data.total_weight)


def check_sample_weight(sample_weight: Any, X: Any) -> Array | None:
    """Check that sample weights are nonnegative, one for each row of ``X``, and return them; None for None."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64)
    checked_weights(weight, len(weight))
    return weight


def linear_predictions(X: Any, coef: Array, intercept: Any, task: Array | None = None) -> Array:
    """Return ``X @ coef + intercept`` of shape (n,) or (n, k); with tasks, the prediction of the task of each row.

    Several models may be stacked: coefficients of shape (m, d) or (m, k, d) give predictions of shape (n, m) or (n, m,
    k).
    """
    if task is None:
        return np.asarray((X @ coef.reshape(-1, coef.shape[-1]).T).reshape(-1, *coef.shape[:-1]) + intercept)
    if coef.ndim == 3:
        return np.stack([linear_predictions(X, *each, task) for each in zip(coef, intercept, strict=True)], axis=1)
    own = X.multiply(coef[task]).sum(axis=1) if is_sparse(X) else np.einsum("ij,ij->i", X, coef[task])
    return np.asarray(np.ravel(own) + intercept[task])


# ---------------------------------------------------------------------- columns


def column_index(setting: str, column: Any, names: Mapping[Any, int], d: int) -> int:
    """Return the index of a column of ``X`` given by name or number."""
    if isinstance(column, Hashable) and column in names:
        return names[column]
    if isinstance(column, bool) or not isinstance(column, int | np.integer) or not -d <= column < d:
        raise ValueError(
            f"{setting} must name columns of `X`, or give their numbers, which are below {d}, got {shown(column)}."
        )
    return int(column) % d


def column_indices(model: Any) -> dict[str, int]:
    """Return the index of each feature name; empty if the features have no names."""
    return {str(name): j for j, name in enumerate(getattr(model, "feature_names_in_", ()))}


def take_column(X: Any, column: int | str) -> tuple[Any, Array]:
    """Split ``X`` into the features and the column of task labels."""
    X = X.tocsc() if is_sparse(X) else X if hasattr(X, "columns") else np.asarray(X)
    names = {name: j for j, name in enumerate(getattr(X, "columns", ()))}
    own = column_index("`task`", column, names, X.shape[-1])
    others = np.delete(np.arange(X.shape[-1]), own)
    rest, labels = (_safe_indexing(X, part, axis=1) for part in (others, [own]))
    labels = np.ravel(labels.toarray() if is_sparse(labels) else labels)
    plain = labels.tolist()
    missing = [row for row, label in enumerate(plain) if is_missing(label)]
    if missing or 0 < sum(isinstance(label, str) for label in plain) < len(plain):
        problem = f"none in row {missing[0]}; fill or drop it" if missing else "text and others; make all of it text"
        raise ValueError(f"`task` must name a column with labels of one kind, got {problem}.")
    return rest, labels


def task_indices(tasks: Array, labels: Array) -> Array:
    """Return the index of each task label among the tasks of the fit."""
    places = {task: k for k, task in enumerate(tasks.tolist())}
    unknown = [label for label in labels.tolist() if label not in places]
    if unknown:
        raise ValueError(f"`X` has the task {shown(unknown[0])}, which was not there when the model was fitted.")
    return np.array([places[label] for label in labels.tolist()], dtype=np.intp)


def free_columns(free: Any, d: int, model: Any) -> tuple[int, ...]:
    """Return the sorted indices of the unpenalised columns."""
    if free is None:
        return ()
    chosen, names = np.atleast_1d(np.asarray(free)), column_indices(model)
    chosen = np.flatnonzero(chosen) if chosen.dtype == bool and chosen.shape == (d,) else chosen
    out = tuple(sorted({column_index("`free`", each, names, d) for each in chosen.tolist()}))
    if len(out) == d:
        raise ValueError(
            "`free` must leave at least one column for the ball; without one there is nothing to constrain."
        )
    return out


def refuse_missing_targets(y: Any) -> None:
    """Raise ValueError if an array of objects has a missing target: None, NaN or a missing value of pandas."""
    if y is None or getattr(getattr(y, "dtype", None), "kind", "O") != "O":  # NaN among numbers is refused later
        return
    for k, label in enumerate(np.asarray(y, dtype=object).ravel()):
        if is_missing(label):
            where = f" at index {k}" if np.ndim(y) else ""
            raise ValueError(
                f"`y` must hold a target for each row, got {shown(label)}{where}; drop or impute such rows first."
            )


def refuse_dates(name: str, values: Any) -> None:
    """Raise ValueError for dates and durations, which NumPy would convert to integers."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", None) in ("m", "M"):
        days = f"({name} - {name}.min()) / np.timedelta64(1, 'D')"
        raise ValueError(f"`{name}` must hold numbers, got {dtype}; convert it, e.g. to days: `{days}`.")


def refuse_columns(X: Any) -> Any:
    """Return ``X``; raise if it is a data frame with a column that is not numeric."""
    if hasattr(X, "collect"):
        raise TypeError(f"`X` must hold its rows, got a {type(X).__name__}; give `X.collect()`.")
    if not is_frame(X):
        refuse_dates("X", X)
        return X
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        polars = "f" if str(dtype).startswith(("Int", "UInt", "Float", "Boolean")) else "O"
        if getattr(dtype, "kind", polars) not in "biuf":
            raise ValueError(
                f"Column {shown(name)} of `X` holds no numbers ({dtype}), and features must be numbers; encode it, "
                "e.g. with `OneHotEncoder` in a `ColumnTransformer`."
            )
    return X


# ---------------------------------------------------------------------- rows outside memory


def is_path(X: Any) -> bool:
    """Return whether ``X`` is the path of a file or folder."""
    return isinstance(X, str | os.PathLike)


def convert_external(X: Any, y: Any, sample_weight: Any, client: Any = None) -> tuple[Any, Any, Any]:
    """Convert paths, Dask collections and large memory maps to `Data`, and return anything else unchanged.

    Files, and memory maps that exceed the memory of one pass, are read in chunks. Dask collections stay on their
    workers, and a ``client`` reads Parquet folders on its cluster.
    """
    large = isinstance(X, np.memmap) and X.nbytes > MEMORY
    if client is None and not is_path(X) and not large and not is_dask(X):
        return X, y, sample_weight
    if y is None and client is None:
        what = "collection" if is_dask(X) else "path"
        raise ValueError(f"`fit({what}, y)` needs targets: an array, or with Parquet the name of a column.")
    return as_data(X, y, sample_weight, client=client), None, None


def check_training_data(model: Any, data: Data, y: Any, sample_weight: Any) -> Data:
    """Check the arguments of ``fit(data)``, and set the names and the number of features."""
    name = type(model).__name__
    if y is not None or sample_weight is not None:
        raise TypeError(f"`{name}.fit(data)` takes targets and weights from the data; leave `y` and the weights out.")
    if len(data.shape(())) != 1:
        raise TypeError(f"`{name}.fit(data)` needs a table of features, got {type(data).__name__}.")
    for setting in ("task", "free"):
        if getattr(model, setting) is not None:
            raise ValueError(
                f"`{setting}` looks at single rows, which {type(data).__name__} does not show, got "
                f"{shown(getattr(model, setting))}; leave it out, or fit on arrays."
            )
    model.n_features_in_ = data.shape(())[0]
    if data.feature_names is not None:
        model.feature_names_in_ = np.array(data.feature_names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return data


def open_features(model: Any, path: Any, y: Any = None, sample_weight: Any = None) -> tuple[Source, Any, Any]:
    """Open a file or folder for the features of a fitted model; return the source, the targets and the weights.

    Targets and weights may be names of Parquet columns. Parquet features are selected by the names of the fit.
    """
    if model._task_column is not None:
        raise ValueError(
            f"{type(model).__name__} does not see the tasks of single rows in a file; read {shown(path)} yourself."
        )
    from projfree.data.sources import open_source

    names = None if str(path).endswith(".npy") else getattr(model, "feature_names_in_", None)
    source = open_source(path, y, sample_weight, None if names is None else list(names))
    assert source is not None
    return source


def read_score_targets(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Return the targets and weights of a score, which are read from the file if ``X`` is a path."""
    if not is_path(X):
        return y, sample_weight
    if y is None:
        raise ValueError("`score(path, y)` needs targets: an array, or with Parquet the name of a column.")
    return open_features(model, X, y, sample_weight)[1:]


def iter_features(model: Any, path: Any) -> Iterator[Array]:
    """Yield the features in a file or folder, one chunk of rows at a time."""
    name = type(model).__name__
    source = open_features(model, path)[0]
    if source.d != model.n_features_in_:
        raise ValueError(f"{source.name} has {source.d} features, but {name} was fitted on {model.n_features_in_}.")
    rows = max(1, CHUNK_BYTES // (source.d * source.dtype.itemsize))
    for table in source.tables([(start, min(start + rows, source.n)) for start in range(0, source.n, rows)]):
        if not np.isfinite(table).all():
            raise ValueError(f"{source.name} contains NaN or infinity; fill or drop these entries first.")
        yield table
