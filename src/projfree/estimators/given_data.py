"""Fits on a data class: rows that are wherever they are, with their targets and weights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import compute_class_weight

from projfree.algebra import Point, frozen
from projfree.checks import Array, shown
from projfree.data import Data, as_data
from projfree.data.convert import is_dask
from projfree.data.rows import CHUNK_BYTES, MEMORY, Rows, Step
from projfree.estimators.table import Table

if TYPE_CHECKING:
    from projfree.data.sources import Source

#: Settings that look at single rows.
BY_ROW = ("task", "free", "class_weight")


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


def given_data(model: Any, data: Data, y: Any, sample_weight: Any) -> Table:
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
    return Table(data, np.zeros(0))


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
