"""Completions on disk: what is written, and what a saved one must look like before anything predicts with it."""

from __future__ import annotations

import copy
import math
import os
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree.estimators.completion.convex_problem import SweepSettings
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.features import FeatureTable
from projfree.estimators.completion.labels import KINDS
from projfree.estimators.completion.observed import Observed
from projfree.estimators.completion.offset_model import OffsetModel
from projfree.estimators.completion.settings import STATED, three
from projfree.estimators.saved_model import finite, need
from projfree.losses.base import Loss

NUMBERS = (
    *("radius_", "norm_", "strength_", "value_", "bound_", "relative_gap_"),
    *("n_iter_", "n_sweeps_", "n_ratings_", "implicit_"),
)


class SavedCompletion:
    """Saving and loading."""

    #: The run of a convex solver, whose matrix the factors hold.
    _never_saved = ("result_",)

    def _check_parts(self) -> None:
        """Raise where a model that was read from a file is not what a fit leaves."""
        check_completion(self)

    def save(self, path: str | os.PathLike[str], ratings: bool = True) -> None:
        """Write the fitted model to a folder, atomically and without pickle; `projfree.load` reads it back.

        Parameters
        ----------
        path : path-like
            A new or empty folder, or one written by `save`.
        ratings : bool
            Whether the ratings are written too. Without them the folder is small, and the model predicts, folds in and
            finds what is similar, but can neither leave out what a user has rated nor be fitted further.
        """
        from projfree.estimators.saving import save

        check_is_fitted(self, "factors_")
        model: Any = self
        if not ratings:
            model = copy.copy(self)
            vars(model).pop("ratings_", None)  # a model that was saved without them has none
            model.held_out_ = None
        save(model, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; settings that are functions, solvers or paths are as by default."""
        from projfree.estimators.saving import load

        model = load(path)
        if not isinstance(model, cls):
            raise ValueError(f"{str(path)!r} holds a {type(model).__name__}; read it with `projfree.load`.")
        return model


def check_completion(model: Any) -> None:
    """Raise where the parts of a completion are not what a fit leaves, or do not fit each other."""
    held = vars(model)
    for name, kind in {"factors_": Factors, "loss_": Loss}.items():
        need(isinstance(held.get(name), kind), f"{name} is no {kind.__name__}")
    for name in NUMBERS:
        need(isinstance(held.get(name), int | float | np.number), f"{name} is no number")
    need(len(held.get("rating_range_", ())) == 2, "rating_range_ is no range")
    finite("rating_range_", np.asarray(held["rating_range_"], dtype=np.float64))
    need(three(model.columns, str, int), "its columns have no names")
    need(isinstance(model.offsets, bool) or three(model.offsets, bool), "its offsets are unknown")
    tables = ((model.user_features_, model.user_ids_), (model.item_features_, model.item_ids_))
    of_users, of_items = (_check_features(table, ids) for table, ids in tables)
    sizes = (len(model.user_ids_), len(model.item_ids_))
    _check_factors(model.factors_, *sizes, of_users, of_items, model.implicit_ > 0.0)
    _check_offsets(model.offset_model_, *sizes)
    for ids in (model.user_ids_, model.item_ids_):
        need(isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in KINDS, "its labels are no labels")
    if "ratings_" in held:
        need(isinstance(held["ratings_"], Observed), "ratings_ is no Observed")
        _check_ratings(model)
    loss = model.loss_
    model._checked()
    model.loss_, model.result_ = loss, None  # the scale of a loss is fitted
    _check_settings(model.settings_)
    need(isinstance(model.stated_, dict) and set(model.stated_) == set(STATED), "stated_ names other settings")


def _check_settings(given: Any) -> None:
    """Raise where the settings of a problem are none that a fit has."""
    need(isinstance(given, SweepSettings) and isinstance(given.loss, Loss), "settings_ is no SweepSettings")
    numbers = (given.p, given.power, given.ridge, given.base, given.implicit, given.features_weight)
    need(all(isinstance(value, float) and math.isfinite(value) for value in numbers), "settings_ has no numbers")
    inside = 1.0 <= given.p < 2.0 and given.power >= 0.0 and given.ridge > 0.0 and given.features_weight > 0.0
    need(inside and three(given.kinds, bool) and given.features == (None, None), "settings_ are out of range")


def _check_features(table: Any, ids: Any) -> int:
    """The number of features, of which there may be none; raises where they are not those of so many ids."""
    if table is None:
        return 0
    need(isinstance(table, FeatureTable) and isinstance(table.names, tuple), "its features are no table")
    width, (indptr, indices) = len(table.names), (table.indptr, table.indices)
    for part in (table.centre, table.scale):
        finite("the features", part, (width,))
    whole = indptr.dtype.kind == indices.dtype.kind == "i"
    need(whole and indptr.shape == (len(ids) + 1,), "its features have no rows")
    ordered = indptr[0] == 0 and bool((np.diff(indptr) >= 0).all()) and indptr[-1] == len(indices)
    inside = not len(indices) or (indices.min() >= 0 and indices.max() < width)
    need(ordered and inside, "its features are out of range")
    finite("the features", np.nan_to_num(table.values, nan=0.0, posinf=np.inf, neginf=-np.inf), indices.shape)
    return width


def _check_factors(model: Factors, users: int, items: int, of_users: int, of_items: int, implicit: bool) -> None:
    """Raise where factors are not those of so many users and items, and of so many features of theirs."""
    rank = finite("the factors", model.left).shape[-1]
    finite("the factors of users", model.left, (users, rank))
    finite("the factors of items", model.right, (items, rank))
    below, beside = (users + of_items, items + of_users) if implicit else (of_items, of_users)
    for name, part, lines in (("users", model.below, below), ("items", model.beside, beside)):
        finite(f"the further factors of {name}", part, (lines, rank))
    finite("the offsets of users", model.rows, (users,))
    finite("the offsets of items", model.cols, (items,))
    finite("the singular values", model.sigma)
    for value in (model.shift, model.base):
        finite("the base", value, ())


def _check_offsets(model: Any, users: int, items: int) -> None:
    """Raise where the offsets without a matrix are not those of so many users and items."""
    need(isinstance(model, OffsetModel), "offset_model_ is no OffsetModel")
    for part, counts, lines in ((model.rows, model.row_counts, users), (model.cols, model.col_counts, items)):
        finite("the offsets without a matrix", part, (lines,))
        need(counts.shape == (lines,) and counts.dtype.kind == "i", "the numbers of its ratings are no numbers")
    finite("the offset of all", model.shift, ())


def _check_ratings(model: Any) -> None:
    ratings = model.ratings_
    shape = (len(finite("the ratings", ratings.values)),)
    for at, ids in ((ratings.rows, model.user_ids_), (ratings.cols, model.item_ids_)):
        need(at.shape == shape and at.dtype.kind in "iu", "its ratings have no places")
        need(not len(at) or (at.min() >= 0 and at.max() < len(ids)), "its ratings are out of range")
    if ratings.weight is not None:
        finite("the weights", ratings.weight, shape)
