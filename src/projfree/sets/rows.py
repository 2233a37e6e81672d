"""`Rows`: linear constraints on columns given by name or index, and functions for common constraints."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, flag, is_sparse, positive, real_array, shown
from projfree.sets.inputs import Shape

if TYPE_CHECKING:
    import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Rows:
    r"""Linear constraints :math:`l \le A w \le u`, each row with a description for messages and tables.

    Attributes
    ----------
    starts, places, values : ndarray
        The matrix A, restricted to ``columns``, as `indptr`, `indices` and `data` of a CSR array.
    width : int
        The number k of columns.
    lower, upper : ndarray of shape (m,)
        The bounds: infinite if there is none, equal if the row is an equality.
    names : tuple of str
        Description of each row.
    columns : tuple, optional
        Names or indices of the k columns; by default all columns in order.

    Examples
    --------
    >>> from projfree.sets import order
    >>> order([2, 0]).names
    ('w[2] <= w[0]',)
    """

    starts: Array
    places: Array
    values: Array
    width: int
    lower: Array
    upper: Array
    names: tuple[str, ...]
    columns: tuple[Hashable, ...] | None = None

    def __repr__(self) -> str:
        return f"Rows({len(self)} constraints, {short_hash(repr(self.names), *self._parts())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and repr(self) == repr(other) and self.columns == other.columns

    def __hash__(self) -> int:
        return hash(repr(self))

    def __len__(self) -> int:
        return len(self.lower)

    def _parts(self) -> tuple[Array, ...]:
        return self.starts, self.places, self.values, self.lower + 0.0, self.upper + 0.0

    @property
    def A(self) -> sp.csr_array:
        """The rows as a sparse array of shape (m, k)."""
        import scipy.sparse as sp

        return sp.csr_array((self.values, self.places, self.starts), shape=(len(self), self.width))

    @classmethod
    def of_matrix(
        cls, A: sp.csr_array, lower: Array, upper: Array, names: tuple[str, ...], columns: Any = None
    ) -> Rows:
        """Create rows from a sparse array and validated bounds and names."""
        return cls(A.indptr, A.indices, A.data, A.shape[1], lower, upper, names, columns)

    @classmethod
    def of(cls, A: Any, lower: Any = None, upper: Any = None) -> Rows:
        """Create rows from a dense or sparse matrix over all columns."""
        import scipy.sparse as sp

        array = A if is_sparse(A) and A.dtype.kind != "c" else real_array("Constrained(A=...)", A)
        if array.ndim != 2 or not array.shape[0]:
            raise ValueError(
                f"`Constrained(A=...)` must be a matrix with a row for each constraint, got {array.shape}."
            )
        rows = sp.csr_array(array, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        all_finite("Constrained(A=...)", rows.data)
        names = tuple(f"row {i}" for i in range(rows.shape[0]))
        return cls.of_matrix(rows, *_checked_bounds("Constrained", lower, upper, names), names)

    def at(self, place: Callable[[Hashable], int]) -> Rows:
        """Return the rows with each column replaced by its index ``place(column)``."""
        return self if self.columns is None else replace(self, columns=tuple(place(c) for c in self.columns))

    def scaled(self, weights: Array) -> Rows:
        """Return the rows for the parameter v with ``w = weights * v``."""
        own = weights if self.columns is None else weights[np.array(self.columns, dtype=np.intp)]
        return replace(self, values=self.values * own[self.places])

    def check_shape(self, shape: Shape) -> None:
        """Raise ValueError if the columns do not match points of this shape."""
        size = int(np.prod(shape))
        if self.columns is None and self.width != size:
            raise ValueError(
                f"`Constrained(A=...)` must have a column for each of the {size} entries of a point of shape {shape}, "
                f"got {self.width} columns."
            )
        for c in self.columns or ():
            if isinstance(c, bool) or not isinstance(c, int | np.integer) or not 0 <= c < size:
                raise ValueError(
                    f"constraints must name columns by their numbers, from 0 to {size - 1} for points of shape "
                    f"{shape}, got {shown(c)}; the estimators take names of columns too."
                )

    def matrix(self, size: int) -> sp.csr_array:
        """Return the constraint matrix over all ``size`` entries of a parameter."""
        import scipy.sparse as sp

        if self.columns is None:
            return self.A
        places = np.array(self.columns, dtype=np.intp)[self.places]
        rows = sp.csr_array((self.values, places, self.starts), shape=(len(self), size), copy=True)
        rows.sum_duplicates()  # two names may refer to the same column
        return rows


def order(columns: Sequence[Hashable], increasing: bool = True) -> Rows:
    """Constrain the coefficients of the columns to increase, or decrease, in the given order.

    Examples
    --------
    >>> from projfree.sets import order
    >>> order(["young", "old"], increasing=False).names
    ('young >= old',)
    """
    columns = _listed("order", columns, 2)
    m, sign = len(columns) - 1, "<=" if flag("order(increasing=...)", increasing) else ">="
    step = np.ones(m) if increasing else -np.ones(m)
    A = _sparse(np.arange(m), np.arange(m), -step, m, m + 1) + _sparse(
        np.arange(m), np.arange(1, m + 1), step, m, m + 1
    )
    names = tuple(f"{_name(a)} {sign} {_name(b)}" for a, b in pairwise(columns))
    return Rows.of_matrix(A, np.zeros(m), np.full(m, np.inf), names, columns)


def bounds(columns: Sequence[Hashable], low: Any = None, high: Any = None) -> Rows:
    """Constrain the coefficients of the columns by bounds; None or infinity means no bound.

    Examples
    --------
    >>> from projfree.sets import bounds
    >>> bounds(["price"], None, 0.0).names
    ('price <= 0',)
    """
    columns = _listed("bounds", columns, 1)
    names = tuple(map(_name, columns))
    lower, upper = _checked_bounds("bounds", low, high, names)
    said = tuple(_between(name, a, b) for name, a, b in zip(names, lower, upper, strict=True))
    each = np.arange(len(columns))
    return Rows.of_matrix(_sparse(each, each, np.ones(len(each)), len(each), len(each)), lower, upper, said, columns)


def sums_to(value: float, columns: Sequence[Hashable]) -> Rows:
    """Return the constraint that the coefficients of the columns sum to a value.

    Examples
    --------
    >>> from projfree.sets import sums_to
    >>> sums_to(1.0, [0, 1, 2]).names
    ('w[0] + w[1] + w[2] = 1',)
    """
    columns = _listed("sums_to", columns, 1)
    to = all_finite("sums_to(value=...)", np.atleast_1d(real_array("sums_to(value=...)", value)))
    if to.shape != (1,):
        raise ValueError(f"`sums_to(value=...)` must be one number, got {shown(value)}; make a row for each sum.")
    k, first = len(columns), [_name(c) for c in columns[:3]]
    left = " + ".join(first if k < 4 else [*first[:2], "...", _name(columns[-1])])
    A = _sparse(np.zeros(k, dtype=int), np.arange(k), np.ones(k), 1, k)
    return Rows.of_matrix(A, to, to.copy(), (f"{left} = {to[0]:g}",), columns)


def covariance(X: Any, z: Any, limit: float) -> Rows:
    r"""Bound the covariance of the predictions with a column z, such as a protected group.

    .. math:: \Bigl|\frac1n \sum_i (z_i - \bar z)\, \langle x_i, w\rangle\Bigr| \le \text{limit}

    Parameters
    ----------
    X : array, sparse array or data frame of shape (n, d)
        The feature matrix; the column names of a data frame are used.
    z : array of shape (n,)
        The column, for example 0 and 1 for two groups.
    limit : float
        The bound, positive.

    References
    ----------
    Zafar, Valera, Gomez Rodriguez, Gummadi (2017), Fairness constraints: mechanisms for fair classification.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import covariance
    >>> covariance(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([0.0, 1.0]), 0.1).A.toarray()
    array([[0.5, 0. ]])
    """
    import scipy.sparse as sp

    names = getattr(X, "columns", None)
    table = X if is_sparse(X) else real_array("covariance(X=...)", X)
    column = all_finite("covariance(z=...)", real_array("covariance(z=...)", z))
    if table.ndim != 2 or column.shape != table.shape[:1]:
        raise ValueError(
            f"`covariance(z=...)` must have a number for each row of `X`, got {column.shape} and {table.shape}."
        )
    row = np.asarray(table.T @ (column - column.mean())) / len(column)
    most = np.array([positive("covariance(limit=...)", limit)])
    A = sp.csr_array(all_finite("covariance(X=...)", row)[None])
    columns = tuple(range(len(row))) if names is None else tuple(names)
    return Rows.of_matrix(A, -most, most, (f"|covariance| <= {most[0]:g}",), columns)


class JoinedRows(NamedTuple):
    """The matrix over all columns, the bounds and the names of concatenated rows."""

    A: Any
    lower: Array
    upper: Array
    names: tuple[str, ...]


def joined(rows: Sequence[Rows], size: int) -> JoinedRows:
    """Concatenate rows, over ``size`` columns."""
    import scipy.sparse as sp

    A = sp.csr_array(sp.vstack([each.matrix(size) for each in rows]))
    lower, upper = (np.concatenate([getattr(each, side) for each in rows]) for side in ("lower", "upper"))
    return JoinedRows(A, lower, upper, tuple(name for each in rows for name in each.names))


def _sparse(i: Array, j: Array, values: Array, m: int, k: int) -> sp.csr_array:
    import scipy.sparse as sp

    return sp.csr_array((values, (i, j)), shape=(m, k))


def _listed(call: str, columns: Any, least: int) -> tuple[Hashable, ...]:
    """Return the columns as a tuple of names and int; raise an error if they are invalid or repeated."""
    if isinstance(columns, str) or not isinstance(columns, Sequence | range | np.ndarray):
        raise TypeError(f"`{call}(columns=...)` must be a list of names or numbers of columns, got {shown(columns)}.")
    listed = tuple(c.item() if isinstance(c, np.generic) else c for c in columns)
    if not all(isinstance(c, Hashable) for c in listed):
        raise TypeError(f"`{call}(columns=...)` must be a list of names or numbers of columns, got {shown(columns)}.")
    if len(listed) < least or len(set(listed)) < len(listed):
        raise ValueError(
            f"`{call}(columns=...)` must name at least {least} different columns, each once, got {shown(columns)}."
        )
    return listed


def _name(column: Hashable) -> str:
    return column if isinstance(column, str) else f"w[{column}]"


def _between(name: str, low: float, high: float) -> str:
    """Return the description of a bound."""
    if low == high:
        return f"{name} = {low:g}"
    left, right = "" if low == -np.inf else f"{low:g} <= ", "" if high == np.inf else f" <= {high:g}"
    return f"{name} >= {low:g}" if left and not right else f"{left}{name}{right}"


def _checked_bounds(call: str, low: Any, high: Any, names: Sequence[str]) -> tuple[Array, Array]:
    """Return both bounds as arrays with an entry for each name; raise ValueError if they are invalid."""
    found = []
    for side, given, default in (("lower", low, -np.inf), ("upper", high, np.inf)):
        name = f"{call}({side if call == 'Constrained' else dict(lower='low', upper='high')[side]}=...)"
        array = real_array(name, default if given is None else given)
        if array.ndim > 1 or array.size not in (1, len(names)) or np.isnan(array).any():
            raise ValueError(f"`{name}` must be a number, or one for each of {len(names)} rows, got {shown(given)}.")
        found.append(np.broadcast_to(array, (len(names),)).astype(np.float64))
    lower, upper = found
    wrong = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"the lower bound of {names[i]} must not exceed the upper one, got {lower[i]:g} and {upper[i]:g}."
        )
    return lower, upper
