"""`Partition`: some rows in the memory of a worker, with the views and images that rounds have made of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from projfree.algebra import Point, frozen
from projfree.checks import Array
from projfree.data.dask.recipe import Recipe
from projfree.data.local import LocalData
from projfree.data.rows import FormImages
from projfree.data.standardized import Standardized
from projfree.data.workspace import LocalWorkspace

#: Views of one partition, and points of one view, that are remembered: the folds of a search have two or three each.
MOST_VIEWS, MOST_POINTS = 16, 32


@dataclass(frozen=True)
class Facts:
    """What the client knows about a partition.

    Attributes
    ----------
    number, n, d : int
        Its place among the partitions, and its rows and columns.
    dtype : str
        Of the features.
    nbytes : int
        What it takes in memory.
    stored : int or None
        The numbers that sparse rows hold.
    outputs : tuple of int
        The trailing shape of the targets.
    summation : float
        The units of rounding of a sum over its rows.
    weights : tuple of float, or None
        The largest, the smallest positive one, and the sum in units of the largest.
    names : tuple of str or None
        Of the columns.
    row_measures : tuple of float
        The largest norm of a row, and the mean square of the norms where each row counts one.
    labels : ndarray or None
        The different targets of rows with some weight, None where they are many or have several columns.
    targets : str
        Whether they are numbers or labels.
    checksum : str
        Of all numbers, made where the partition was made.
    """

    number: int
    n: int
    d: int
    dtype: str
    nbytes: int
    stored: int | None
    outputs: tuple[int, ...]
    summation: float
    weights: tuple[float, float, float] | None
    names: tuple[str, ...] | None
    row_measures: tuple[float, float]
    labels: Array | None
    targets: str
    checksum: str


class Placed(NamedTuple):
    """A point as it travels: its parameter, and the name of its image where that is to be kept."""

    w: Any
    name: str | None = None


class Partition:
    """Some rows with their targets and weights as they were given, and what rounds have made of them.

    It is made in a pure task and lives as long as the future of that task. Views and images belong to it: they go where
    it goes away, and do not travel.
    """

    def __init__(self, data: LocalData, y: Array, weight: Array | None, facts: Facts) -> None:
        self.data, self.y, self.weight, self.facts = data, y, weight, facts
        self._begin()

    def _begin(self) -> None:
        self._views: dict[str, View] = {}
        self._weights: dict[str, Array] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.data, self.y = realigned(self.data), aligned(self.y)
        self.weight = None if self.weight is None else aligned(self.weight)
        self._begin()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.facts.nbytes  # how Dask sees what a result takes

    def in_use(self) -> AbstractContextManager[Any]:
        """Keeps other threads of the worker away, whose rounds may be of the same rows."""
        return self._lock

    def view(self, recipe: Recipe, threads: int = 1) -> View:
        """The rows as a recipe says, made when they are first asked for."""
        found = self._views.pop(recipe.token, None) or View(self, recipe)
        self._views[recipe.token] = found
        while len(self._views) > MOST_VIEWS:
            del self._views[next(iter(self._views))]
        found.data.threads = threads
        return found

    def weights(self, recipe: Recipe) -> Array:
        """The normalised weights of a recipe, which several views may share."""
        found = self._weights.pop(recipe.weights_token, None)
        if found is None:
            largest, total = recipe.unit
            found = recipe.weigh(self) / largest / total
        self._weights[recipe.weights_token] = found
        while len(self._weights) > MOST_VIEWS:
            del self._weights[next(iter(self._weights))]
        return found


class View:
    """The rows of a partition as a recipe says, with a workspace.

    Images have names, which the client gives; one that is not there is formed from its parameter, by itself and never
    by mixing others, so that bits do not depend on what was lost.
    """

    def __init__(self, rows: Partition, recipe: Recipe) -> None:
        data = rows.data.alike()
        data.keeps_images, data.nbytes = False, max(recipe.nbytes, data.nbytes)
        data.weight = rows.weights(recipe)
        data.y = recipe.converted(rows.y)
        self.raw, self.data = data, data if recipe.scaling is None else scaled(data, *recipe.scaling)
        self.workspace = LocalWorkspace(self.data)
        self._points: dict[str, Point] = {}

    def points(self, placed: Sequence[Placed]) -> list[Point]:
        """The points, with the images of those that have a name held."""
        found = [self._point(one) for one in placed]
        for x, one in zip(found, placed, strict=True):
            if one.name is not None:
                self.workspace.fold(FormImages(), [x])
        while len(self._points) > MOST_POINTS:
            del self._points[next(iter(self._points))]
        return found

    def _point(self, placed: Placed) -> Point:
        if placed.name is None:
            return Point(frozen(placed.w))
        found = self._points.pop(placed.name, None) or Point(frozen(placed.w))
        self._points[placed.name] = found
        return found

    def sampled(self, rows: Array, factor: float) -> View:
        """Some of the rows, their weights multiplied by a factor; with nothing remembered."""
        part = object.__new__(View)
        part.data = self.data.subset(rows)
        assert self.data.weight is not None
        part.data.weight = self.data.weight[rows] * factor
        part.raw, part.workspace = part.data, LocalWorkspace(part.data)
        part._points = {}
        return part


def aligned(array: Array) -> Array:
    """The array, copied where it begins at an odd place in memory.

    What has travelled may: NumPy then multiplies in another way, to other last digits.
    """
    return array if array.flags.aligned else array.copy()


def realigned(data: LocalData) -> LocalData:
    """The data with arrays that begin where those of a table do that was made here."""
    X: Any = getattr(data, "X", None)
    if X is None:
        return data
    if isinstance(X, np.ndarray):
        data.X = aligned(X)  # type: ignore[attr-defined]  # dense rows have it
    else:
        X.data, X.indices, X.indptr = aligned(X.data), aligned(X.indices), aligned(X.indptr)
    return data


def scaled(data: LocalData, shift: Array, scale: Array) -> Standardized:
    """The view of standardised features, without measuring the rows: the client knows their measures."""
    view = object.__new__(Standardized)
    view.shift, view.scale = shift, scale
    view._hold(data)
    return view
