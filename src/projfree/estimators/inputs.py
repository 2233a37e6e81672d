"""The rows of a fit: arrays, frames, files and Dask collections, with targets, weights, tasks and free columns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from projfree.algebra import Point, frozen
from projfree.checks import Array, is_missing, shown
from projfree.data import Data, as_data
from projfree.data.convert import is_dask
from projfree.data.local import checked_weights
from projfree.data.rows import CHUNK_BYTES, MEMORY, Rows, Step

if TYPE_CHECKING:
    from projfree.data.sources import Source

#: Settings that look at single rows.
BY_ROW = ("task", "free", "class_weight")
IMPUTE = "SimpleImputer()"


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Features, encoded targets, weights and, where there are tasks, the task of each row.

    ``X`` may be a data class that holds targets and weights itself.
    """

    X: Any
    y: Array
    weight: Array | None = None
    task: Array | None = None
    #: How many tasks there are, also where a part of the rows has fewer.
    tasks: int = 0

    @property
    def features(self) -> int:
        """How many columns there are."""
        return int(self.X.shape(())[0] if isinstance(self.X, Data) else self.X.shape[1])

    def part(self, rows: Array) -> TrainingSet:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        task = None if self.task is None else self.task[rows]
        return TrainingSet(self.X[rows], self.y[rows], weight, task, self.tasks)

    @cached_property
    def data(self) -> Data:
        """The rows as a data class."""
        return self.X if isinstance(self.X, Data) else as_data(self.X, self.y, self.weight)


def row_weights(sample_weight: Any, X: Any) -> Array | None:
    """The weights of the rows of ``X`` as numbers, none of them negative; None where there are none."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64)
    checked_weights(weight, len(weight))
    return weight


def take_column(X: Any, column: int | str) -> tuple[Any, Array]:
    """The table without one column, named or numbered, and that column."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        name = column
        if isinstance(column, int) and column not in names and -len(names) <= column < len(names):
            name = names[column]
        if name not in names:
            raise ValueError(f"`task` must name a column of `X`, got {shown(column)}.")
        rest = X.drop(columns=[name]) if hasattr(X, "iloc") else X.drop(name)
        return rest, _labels(np.asarray(X[name]))
    if not isinstance(column, int | np.integer):
        raise ValueError(f"`task` must be the number of a column where `X` has no names, got {shown(column)}.")
    X = X.tocsc() if hasattr(X, "tocsc") else np.asarray(X)
    if X.ndim != 2 or not -X.shape[1] <= column < X.shape[1]:
        raise ValueError(f"`task` must be the number of a column of `X`, got {shown(column)}.")
    rest = np.arange(X.shape[1]) != column % X.shape[1]
    own = X[:, [column]]
    return X[:, rest], _labels(np.ravel(own.toarray() if hasattr(own, "toarray") else own))


def _labels(found: Array) -> Array:
    """The labels of tasks, or a sentence where one is missing or they have no order."""
    if found.dtype.kind not in "fO":
        return found
    gone = np.flatnonzero(np.isnan(found) if found.dtype.kind == "f" else [is_missing(label) for label in found])
    if len(gone):
        row = int(gone[0])
        raise ValueError(f"`task` must name a column with a label in each row, got none in row {row}; fill or drop it.")
    words = 0 if found.dtype.kind == "f" else sum(isinstance(label, str) for label in found)
    if 0 < words < len(found):
        raise ValueError("`task` must name a column with labels of one kind, got text and others; make all of it text.")
    return found


# ---------------------------------------------------------------------- columns


def free_columns(free: Any, d: int, model: Any) -> tuple[int, ...]:
    """The numbers of the columns of a fit that the ball does not hold, in increasing order."""
    names = getattr(model, "feature_names_in_", None)
    chosen = np.atleast_1d(np.asarray(free))
    if chosen.dtype.kind in "OUT":
        known = {} if names is None else {str(name): j for j, name in enumerate(names)}
        missing = [str(name) for name in chosen if str(name) not in known]
        if missing:
            raise ValueError(f"`free` must name columns of `X`, got {shown(missing[0])}.")
        places = np.array([known[str(name)] for name in chosen])
    elif chosen.dtype == bool:
        if chosen.shape != (d,):
            raise ValueError(f"`free` as a mask must have one entry for each of the {d} columns, got {chosen.shape}.")
        places = np.flatnonzero(chosen)
    else:
        if (
            chosen.dtype.kind not in "iu"
            or chosen.ndim != 1
            or (len(chosen) and not -d <= chosen.min() <= chosen.max() < d)
        ):
            raise ValueError(f"`free` must be numbers of columns below {d}, their names or a mask, got {shown(free)}.")
        places = chosen % d
    out = tuple(int(j) for j in np.unique(places))
    if len(out) == d:
        raise ValueError(
            "`free` must leave at least one column for the ball; without one there is nothing to constrain."
        )
    return out


# ---------------------------------------------------------------------- frames


def refuse_missing_targets(y: Any) -> None:
    """Raise where a target is missing: None, NaN among other objects, or what pandas has instead of these."""
    if y is None:  # scikit-learn names the estimator that needs targets
        return
    found = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if found.dtype.kind == "O":
        for k, label in enumerate(found.ravel()):
            if is_missing(label):
                where = f" at index {k}" if found.ndim == 1 else ""
                raise ValueError(
                    f"`y` must hold a target for each row, got {shown(label)}{where}; drop or impute such rows first."
                )


def refuse_dates(name: str, values: Any) -> None:
    """Raise where an array holds dates or durations, which NumPy would turn into counts of nanoseconds or the like."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", None) in ("m", "M"):
        days = f"({name} - {name}.min()) / np.timedelta64(1, 'D')"
        raise ValueError(f"`{name}` must hold numbers, got {dtype}; convert it, e.g. to days: `{days}`.")


def refuse_columns(X: Any) -> Any:
    """``X`` itself, or an error about the first column of a frame that is neither numbers nor convertible to some."""
    if hasattr(X, "collect"):
        raise TypeError(f"`X` must hold its rows, got a {type(X).__name__}; give `X.collect()`.")
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        refuse_dates("X", X)
        return X
    names = list(X.columns)
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        first, second = [j for j, other in enumerate(names) if other == name][:2]
        raise ValueError(f"`X` has the column {shown(name)} twice, in places {first} and {second}; rename one.")
    for name in names:
        way = _way_to_numbers(X[name])
        if way is not None:
            what = "missing values" if way == IMPUTE else "no numbers"
            raise ValueError(
                f"Column {shown(name)} of `X` holds {what} ({X[name].dtype}), and features must be numbers; turn it "
                f"into numbers first, e.g. `make_pipeline(ColumnTransformer([('{name}', {way}, ['{name}'])], "
                "remainder='passthrough'), model)`."
            )
    return X


def _way_to_numbers(column: Any) -> str | None:
    """The transformer that makes numbers of a column, None where it holds numbers."""
    values = np.asarray(column)
    if not isinstance(column.dtype, np.dtype):  # missing entries of NumPy's types are NaN, which scikit-learn refuses
        missing = column.isna() if hasattr(column, "isna") else column.is_null()
        if missing.any():
            return IMPUTE
    if values.dtype.kind in "mMc":  # dates, durations and complex numbers
        return "FunctionTransformer(...)"
    try:
        numbers = values if values.dtype.kind in "biuf" else values.astype(np.float64)
    except (TypeError, ValueError):
        return "OneHotEncoder()"
    return "OneHotEncoder()" if numbers.ndim != 1 or "categor" in str(column.dtype).lower() else None


# ---------------------------------------------------------------------- rows outside memory


def from_outside(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Tables outside memory as a data class that holds targets and weights; anything else as it is.

    Paths, and memory maps of more bytes than a pass keeps in memory, are read chunk by chunk; Dask collections stay
    where they are.
    """
    large = isinstance(X, np.memmap) and X.nbytes > MEMORY
    if not is_path(X) and not large and not is_dask(X):
        return X, y, sample_weight
    if y is None:
        what = "collection" if is_dask(X) else "path"
        raise ValueError(f"`fit({what}, y)` needs targets: an array, or with Parquet the name of a column.")
    return as_data(X, y, sample_weight), None, None


def on_cluster(client: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Collections and Parquet folders as data on the cluster of a client; anything as it is without one."""
    return (X, y, sample_weight) if client is None else (as_data(X, y, sample_weight, client=client), None, None)


def given_data(model: Any, data: Data, y: Any, sample_weight: Any) -> TrainingSet:
    """The data of ``fit(data)``, after saying what cannot be done with it."""
    name = type(model).__name__
    if y is not None or sample_weight is not None:
        raise TypeError(f"`{name}.fit(data)` takes targets and weights from the data; leave `y` and the weights out.")
    if len(data.shape(())) != 1:
        raise TypeError(f"`{name}.fit(data)` needs a table of features, got {type(data).__name__}.")
    for setting in BY_ROW:
        value = getattr(model, setting, None)
        if value is not None and setting != "class_weight":
            raise ValueError(
                f"`{setting}` looks at single rows, which {type(data).__name__} does not show, got {shown(value)}; "
                "leave it out, or fit on arrays."
            )
    model.n_features_in_ = data.shape(())[0]
    if data.feature_names is not None:
        model.feature_names_in_ = np.array(data.feature_names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return TrainingSet(data, np.zeros(0))


def is_path(X: Any) -> bool:
    """Whether a table is named and not given."""
    return isinstance(X, str | os.PathLike)


def source_at(model: Any, path: Any, y: Any = None, sample_weight: Any = None) -> tuple[Source, Any, Any]:
    """What a file or folder holds of the features of a model, and the targets and weights that may be columns of it.

    Of Parquet those columns are features that the model was fitted on, by name; others may be there.
    """
    if getattr(model, "task", None) is not None:
        raise ValueError(
            f"{type(model).__name__} does not see the tasks of single rows in a file; read {shown(path)} yourself."
        )
    from projfree.data.sources import open_source

    names = None if str(path).endswith(".npy") else getattr(model, "feature_names_in_", None)
    found = open_source(path, y, sample_weight, None if names is None else list(names))
    assert found is not None
    return found


def scored_columns(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Targets and weights of a score; those of a path may be names of columns."""
    if not is_path(X):
        return y, sample_weight
    if y is None:
        raise ValueError("`score(path, y)` needs targets: an array, or with Parquet the name of a column.")
    return source_at(model, X, y, sample_weight)[1:]


def features_at(model: Any, path: Any) -> Iterator[Array]:
    """The features of the rows of a file or folder, a chunk at a time."""
    name = type(model).__name__
    source = source_at(model, path)[0]
    if source.d != model.n_features_in_:
        raise ValueError(f"{source.name} has {source.d} features, but {name} was fitted on {model.n_features_in_}.")
    rows = max(1, CHUNK_BYTES // (source.d * source.dtype.itemsize))
    for table in source.tables([(start, min(start + rows, source.n)) for start in range(0, source.n, rows)]):
        if not np.isfinite(table).all():
            raise ValueError(f"{source.name} contains NaN or infinity; fill or drop these entries first.")
        yield table


@dataclass(frozen=True, eq=False)
class Encode:
    """From labels to what a loss takes: class indices, signs, or signs of each class against the others."""

    classes: Array
    indices: bool

    def __call__(self, y: Array) -> Array:
        index = np.searchsorted(self.classes, y)
        if self.indices:
            return index
        if len(self.classes) == 2:
            return np.where(index == 1, 1.0, -1.0)
        return np.where(np.arange(len(self.classes)) == index[:, None], 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class ClassShares(Step):
    """The weight of the rows of each class."""

    classes: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        index = np.searchsorted(self.classes, rows.y)
        weight = np.broadcast_to(rows.s, len(index))
        return None, np.bincount(index, weights=weight, minlength=len(self.classes)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ClassFactors:
    """From labels to the weights of their classes."""

    classes: Array
    factors: Array

    def __call__(self, y: Array) -> Array:
        factors: Array = self.factors[np.searchsorted(self.classes, y)]
        return factors


def _unchanged(y: Array) -> Array:
    """The targets as they are."""
    return y


def weights_of_classes(class_weight: Any, classes: Array) -> Array:
    """The weight of each class from a dictionary, none of them negative."""
    factors: Array = compute_class_weight(class_weight, classes=classes, y=classes)
    if factors.min() < 0.0:
        label = classes[factors.argmin()]
        raise ValueError(
            f"`class_weight` must hold no negative weight, got {factors.min():g} for the class {shown(label)}; "
            "drop its rows, or give it a positive weight."
        )
    return factors


def class_weighted(data: Data, classes: Array, class_weight: Any) -> Data:
    """The rows with weights multiplied by those of their classes, as scikit-learn has them."""
    if class_weight == "balanced":
        nothing = Point(frozen(np.zeros(data.shape(()))))
        shares = data.open().fold(ClassShares(classes), (nothing,))
        factors = 1.0 / (len(classes) * np.where(shares > 0.0, shares, 1.0))
    else:
        factors = weights_of_classes(class_weight, classes)
    return data.with_targets(_unchanged, ClassFactors(classes, factors))
