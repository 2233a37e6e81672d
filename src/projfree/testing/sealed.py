"""`SealedData`: a test backend that allows access to rows through a workspace only."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.data.base import Data, Fold
from projfree.data.gram import Gram, Moments
from projfree.data.local import LocalData
from projfree.data.rows import Blocks, Step
from projfree.data.tables import DenseData
from projfree.data.workspace import LocalWorkspace, Workspace

#: Rows per block: few, so that tests sum over many blocks, and not a power of two.
ROWS = 37


class SealedData(Data):
    """A table for tests whose rows are not accessible, as if they were on a cluster or a device.

    It does not expose targets or weights; steps are pickled and unpickled before each use; sums use other blocks than
    those of tables in memory; cached predictions are dropped at random. Code that runs on it must access rows through a
    workspace only, and give the same results as on the same rows in memory, up to rounding.

    Parameters
    ----------
    X, y, sample_weight
        As for `as_data`, with a dense ``X``.
    forgets : float
        Probability that predictions are dropped from the cache before each use of a workspace.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, minimize
    >>> from projfree.testing import SealedData
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> minimize(Objective(Squared(), SealedData(X, y)), LpBall(1.5, radius=1.0)).w.round(3)
    array([0.499, 0.748])
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, *, forgets: float = 0.3) -> None:
        self._forgets = forgets
        self._set_inner(DenseData(X, y, sample_weight, threads=1))

    def _set_inner(self, inner: DenseData) -> SealedData:
        """Use the rows of ``inner``, with smaller blocks."""
        self.n, self.column_stats, self.total_weight = inner.n, inner.column_stats, inner.total_weight
        inner.cut, self.rounding_units = Blocks(inner.n, ROWS), Blocks(inner.n, inner.n).units()
        self._inner = inner
        return self

    def open(self) -> SealedWorkspace:
        return SealedWorkspace(self._inner, self._forgets)

    def with_targets(
        self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None
    ) -> SealedData:
        return copy(self)._set_inner(self._inner.with_targets(*_sent((convert, reweight))))

    def subset(self, rows: Array | Fold) -> SealedData:
        return copy(self)._set_inner(self._inner.subset(rows))

    def standardized(self, centre: Any, scale: Any) -> SealedData:
        return copy(self)._set_inner(self._inner.standardized(centre, scale))

    def labels(self) -> list[Array]:
        return self._inner.labels()

    def quantile(self, q: float) -> Array:
        return self._inner.quantile(q)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return self._inner.shape(outputs)

    def gram(self) -> Gram:
        return self._inner.gram()

    def fingerprint(self) -> str:
        return f"sealed {self._inner.fingerprint()}"


class SealedWorkspace(LocalWorkspace):
    """The workspace of `SealedData`, which drops cached predictions at random."""

    def __init__(self, data: LocalData, forgets: float, parent: Workspace | None = None) -> None:
        super().__init__(data, parent)
        self._forgets, self._rng = forgets, np.random.default_rng(0)

    def __reduce__(self) -> tuple[Any, ...]:
        return SealedWorkspace, (self.data, self._forgets)

    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        self._forget()
        return super().sweep(_sent(step), points, keep=keep)

    def fold(self, step: Step, points: Sequence[Point]) -> Array:
        self._forget()
        return super().fold(_sent(step), points)

    def sample(self, m: int, rng: np.random.Generator) -> SealedWorkspace:
        return SealedWorkspace(self.data.representative(self.data.sample(m, rng)), self._forgets, self)

    def moments(self, step: Step, x: Point, wanted: Moments) -> Any:
        return None if wanted.factors else super().moments(_sent(step), x, wanted)

    def _forget(self) -> None:
        self._images = {own: image for own, image in self._images.items() if self._rng.random() >= self._forgets}


def _sent(thing: Any) -> Any:
    """Return a copy that shares no memory, as after a transfer to another process."""
    return pickle.loads(pickle.dumps(thing))
