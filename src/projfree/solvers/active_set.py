"""`ActiveSet`: an iterate as a mixture of few vertices."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.checks import Array


@dataclass(frozen=True, eq=False)
class ActiveSet:
    r"""Vertices :math:`v_j` and weights :math:`\lambda_j` that add up to one: the mixture :math:`\sum_j\lambda_j v_j`.

    A vertex is held as its entries other than zero, so that those of an l_1 ball or a simplex take one number each.

    Attributes
    ----------
    shape : tuple of int
        The shape of a vertex.
    starts, places, values : ndarray
        Vertex j has the entries ``values[starts[j] : starts[j + 1]]`` at these places, in C order.
    weights : ndarray
        The weights.
    """

    shape: tuple[int, ...]
    starts: Array
    places: Array
    values: Array
    weights: Array

    @classmethod
    def of(cls, w: Array) -> ActiveSet:
        """A single point."""
        places = np.flatnonzero(w)
        return cls(w.shape, np.array([0, len(places)]), places, np.ravel(w)[places].astype(np.float64), np.ones(1))

    @classmethod
    def of_entries(cls, shape: tuple[int, ...], places: Array, values: Array) -> ActiveSet:
        """Points with one entry each, without any weight."""
        return cls(shape, np.arange(len(places) + 1), places, values, np.zeros(len(places)))

    @property
    def consistent(self) -> bool:
        """Whether the arrays describe vertices: a file may say anything, and products trust the places."""
        starts, places, count = self.starts, self.places, len(self.weights)
        vectors = all(np.ndim(each) == 1 for each in (starts, places, self.values, self.weights))
        if not vectors or starts.dtype.kind not in "iu" or places.dtype.kind not in "iu" or len(starts) != count + 1:
            return False
        ordered = (
            starts[0] == 0 and starts[-1] == len(places) == len(self.values) and bool((np.diff(starts) >= 0).all())
        )
        within = bool(((places >= 0) & (places < math.prod(self.shape))).all())
        return ordered and within and count > 0 and bool(self.weights.min() >= 0.0)

    def fields(self) -> dict[str, Any]:
        """The arrays by name, as a state holds them."""
        return {name: getattr(self, name) for name in ("starts", "places", "values", "weights")}

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def matrix(self) -> Any:
        """The vertices as the rows of a sparse matrix."""
        import scipy.sparse as sp

        return sp.csr_array((self.values, self.places, self.starts), shape=(len(self), math.prod(self.shape)))

    @property
    def vertices(self) -> Array:
        """The vertices as an array of shape ``(m, ...)``."""
        return np.asarray(self.matrix.toarray()).reshape(len(self), *self.shape)

    def vertex(self, j: int) -> Array:
        """One of them."""
        v, part = np.zeros(math.prod(self.shape)), slice(self.starts[j], self.starts[j + 1])
        v[self.places[part]] = self.values[part]
        return v.reshape(self.shape)

    def along(self, g: Array) -> Array:
        """The inner product of ``g`` with each vertex."""
        return np.asarray(self.matrix @ g.ravel())

    def mixture(self, weights: Array | None = None) -> Array:
        """The vertices mixed with other weights, or with their own."""
        return np.asarray(self.matrix.T @ (self.weights if weights is None else weights)).reshape(self.shape)

    def weighted(self, weights: Array) -> ActiveSet:
        """The same vertices with other weights."""
        return replace(self, weights=weights)

    def kept(self, on: Array) -> ActiveSet:
        """Some of the vertices, with their weights divided by the sum of these."""
        part = self.matrix[np.flatnonzero(on)]
        weights = self.weights[on]
        return ActiveSet(self.shape, part.indptr, part.indices, part.data, weights / weights.sum())

    def with_new(self, other: ActiveSet) -> ActiveSet:
        """These vertices and behind them those of ``other`` that are not among them, without any weight."""
        known = {self._key(j) for j in range(len(self))}
        fresh = [j for j in range(len(other)) if other._key(j) not in known]
        if not fresh:
            return self
        part = other.matrix[fresh]
        return ActiveSet(
            self.shape,
            np.concatenate([self.starts, self.starts[-1] + part.indptr[1:]]),
            np.concatenate([self.places, part.indices]),
            np.concatenate([self.values, part.data]),
            np.concatenate([self.weights, np.zeros(len(fresh))]),
        )

    def _key(self, j: int) -> bytes:
        part = slice(self.starts[j], self.starts[j + 1])
        return self.places[part].astype(np.int64).tobytes() + self.values[part].tobytes()
