"""Ratings and features in the order of their ids, as a fit takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.estimators.completion.features import FeatureTable, read_features, refuse_missing, refuse_other_columns
from projfree.estimators.completion.held_out import HeldOut
from projfree.estimators.completion.ratings import GivenRatings

#: Users and items: the attribute of their ids, and what their features are called as a parameter and after a fit.
SIDES = (("users", "user_features", 0), ("items", "item_features", 1))


class PreparedRatings(HeldOut):
    """The part of `MatrixCompletion` that brings ids, ratings and features together."""

    columns: Any
    user_features: Any
    item_features: Any

    def _ids(self, ratings: GivenRatings, known: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """The ids of users and of items, sorted: those in the ratings, those known, and those with features."""
        found = []
        for of, name, side in SIDES:
            labels = (ratings.users, ratings.items)[side]
            ids = np.unique(labels) if ratings.shape is None else np.arange(ratings.shape[side])
            ids = ids if known is None else np.union1d(known[side], ids)
            found.append(self._with_features(of, name, side, ids, known is not None))
        return found[0], found[1]

    def _with_features(self, of: str, name: str, side: int, ids: Array, later: bool) -> Array:
        """The ids with those that have features alone; the features are kept in this order."""
        given, kept = getattr(self, name), getattr(self, f"{name}_", None)
        if given is None:
            if not later:
                setattr(self, f"{name}_", None)
            elif kept is not None:
                refuse_missing(name, of, self._known_ids[side], ids)
            return ids
        labels, table, names = read_features(name, given, self.columns[side])
        refuse_missing(name, of, labels, ids)
        if later:
            refuse_other_columns(name, kept, names)
        order = np.argsort(labels, kind="stable")
        setattr(self, f"{name}_", FeatureTable.of(table[order], names))
        return labels[order]

    @property
    def _known_ids(self) -> tuple[Array, Array]:
        return self.user_ids_, self.item_ids_
