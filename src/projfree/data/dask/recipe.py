"""How the rows of a partition are seen: their weights, their targets, and whether features are standardised."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array

if TYPE_CHECKING:
    from projfree.data.dask.partition import Partition

#: From a partition to raw weights of its rows.
Weigh = Callable[["Partition"], Array]


def _new_token() -> str:
    return uuid.uuid4().hex[:16]


@dataclass(frozen=True)
class Given:
    """The weights that were given, ones where there are none."""

    def __call__(self, rows: Partition) -> Array:
        return np.ones(rows.facts.n) if rows.weight is None else rows.weight


@dataclass(frozen=True, eq=False)
class Times:
    """Other weights times what a function makes of the targets, as they were given."""

    inner: Any
    factor: Callable[[Array], Array]

    def __call__(self, rows: Partition) -> Array:
        weight: Array = self.inner(rows) * self.factor(rows.y)
        return weight


@dataclass(frozen=True)
class InFold:
    """Other weights, zero outside of one fold, or inside of it; rows are dealt to folds within their partition.

    Partitions begin with different folds, all of them in turn and in a random order, so that none is empty or larger
    than the others where partitions have fewer rows than there are folds.
    """

    inner: Any
    seed: int
    folds: int
    fold: int
    inside: bool

    def __call__(self, rows: Partition) -> Array:
        turn, place = divmod(rows.facts.number, self.folds)
        first = np.random.default_rng([self.seed, turn, self.folds]).permutation(self.folds)[place]
        order = np.random.default_rng([self.seed, rows.facts.number]).permutation(rows.facts.n)
        deal = (order + first) % self.folds
        weight: Array = np.where((deal == self.fold) == self.inside, self.inner(rows), 0.0)
        return weight


@dataclass(frozen=True, eq=False)
class Recipe:
    """What makes a view of a partition; small, so that it travels with each round.

    Attributes
    ----------
    weigh : callable
        Raw weights of the rows of a partition.
    unit : pair of float
        What raw weights are divided by: the largest of all rows, and the sum of them in units of it.
    targets : tuple of callable
        From targets as they were given to those that a loss takes, one after the other.
    scaling : pair of ndarray or None
        Shift and scale of the features.
    nbytes : int
        The size of all partitions, which decides whether passes are compiled, as it does for a table in memory.
    token, weights_token : str
        What a worker finds the view by, and the weights, which several views share.
    """

    weigh: Any = Given()
    unit: tuple[float, float] = (1.0, 1.0)
    targets: tuple[Callable[[Array], Array], ...] = ()
    scaling: tuple[Array, Array] | None = None
    nbytes: int = 0
    token: str = field(default_factory=_new_token)
    weights_token: str = field(default_factory=_new_token)

    def with_own_weights(self) -> Recipe:
        """The same, with weights that no other recipe shares."""
        return replace(self, weights_token=_new_token())

    def but(self, **changes: Any) -> Recipe:
        """Another recipe, with a token of its own."""
        return replace(self, token=_new_token(), **changes)

    def converted(self, y: Array) -> Array:
        """Targets as losses take them; what becomes of one does not depend on the others."""
        for convert in self.targets:
            y = convert(y)
        return y

    @property
    def as_given(self) -> bool:
        """Whether weights are those that were given."""
        return isinstance(self.weigh, Given)

    def describe(self) -> str:
        """What tells the weights from others, the same in every process."""
        return short_hash(_named(self.weigh), np.array(self.unit))


def _named(weigh: Any) -> str:
    """The names and settings of weights, inside out."""
    inner = getattr(weigh, "inner", None)
    own = {
        name: repr(value)
        for name, value in vars(weigh).items()
        if name != "inner" and (is_dataclass(value) or not callable(value))
    }
    return f"{type(weigh).__name__}{sorted(own.items())}{'' if inner is None else _named(inner)}"
