"""What a saved completion must look like, checked before anything predicts with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from projfree.completion.factors import Factors
from projfree.completion.features import FeatureTable
from projfree.completion.prediction import OffsetModel
from projfree.completion.problem import Settings
from projfree.completion.ratings import KINDS, Ratings
from projfree.estimators.saving import finite, need
from projfree.losses.base import Loss

NUMBERS = ("radius_", "norm_", "strength_", "value_", "bound_", "relative_gap_", "n_iter_", "rating_deviation_")


def check_completion(model: Any) -> None:
    """Raise if the parts of a completion are not what a fit leaves, or do not fit each other."""
    held = vars(model)
    kinds = {"factors_": Factors, "loss_": Loss, "settings_": Settings, "offset_model_": OffsetModel}
    for name, kind in kinds.items():
        need(isinstance(held.get(name), kind), f"{name} is no {kind.__name__}")
    for name in NUMBERS:
        need(isinstance(held.get(name), int | float | np.number), f"{name} is no number")
    finite("rating_range_", np.asarray(held.get("rating_range_"), dtype=np.float64), (2,))
    model._check()
    given, ids = model.settings_, (model.user_ids_, model.item_ids_)
    numbers = (given.p, given.ridge, given.base, given.implicit)
    need(all(isinstance(value, float) and math.isfinite(value) for value in numbers), "settings_ has no numbers")
    need(1.0 <= given.p < 2.0 and given.ridge > 0.0 and given.implicit >= 0.0, "settings_ are out of range")
    need(isinstance(given.kinds, tuple) and len(given.kinds) == 3, "settings_ has no offsets")
    for labels in ids:
        need(isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in KINDS, "labels are no labels")
    users, items = map(len, ids)
    of_users, of_items = (
        _check_features(table, lines) for table, lines in ((model.user_features_, users), (model.item_features_, items))
    )
    f, offsets, both = model.factors_, model.offset_model_, given.implicit > 0.0
    rank = finite("the factors", f.left).shape[-1]
    sizes = {"left": users, "right": items, "below": users * both + of_items, "beside": items * both + of_users}
    for name, lines in sizes.items():
        finite("the factors", getattr(f, name), (lines, rank))
    for part, lines in ((f.rows, users), (f.cols, items), (offsets.rows, users), (offsets.cols, items)):
        finite("the offsets", part, (lines,))
    for counts, lines in ((offsets.row_counts, users), (offsets.col_counts, items)):
        need(finite("the counts", counts, (lines,)).min(initial=0) >= 0, "numbers of ratings are negative")
    finite("the singular values", f.sigma)
    for value in (f.shift, f.base, offsets.shift):
        finite("the base", value, ())
    if "ratings_" in held:
        _check_ratings(model.ratings_, users, items)


def _check_features(table: Any, lines: int) -> int:
    """The number of features, of which there may be none."""
    if table is None:
        return 0
    need(isinstance(table, FeatureTable) and isinstance(table.names, tuple), "its features are no table")
    width, (indptr, indices) = len(table.names), (table.indptr, table.indices)
    for part in (table.mean, table.centre, table.scale):
        finite("the features", part, (width,))
    whole = indptr.dtype.kind == indices.dtype.kind == "i" and indptr.shape == (lines + 1,)
    ordered = whole and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all()) and indptr[-1] == len(indices)
    need(ordered and (not len(indices) or (indices.min() >= 0 and indices.max() < width)), "its features have no rows")
    finite("the features", table.values, indices.shape)
    return width


def _check_ratings(ratings: Any, users: int, items: int) -> None:
    need(isinstance(ratings, Ratings), "ratings_ are no Ratings")
    shape = (len(finite("the ratings", ratings.values)),)
    for at, lines in ((ratings.rows, users), (ratings.cols, items)):
        need(at.shape == shape and at.dtype.kind in "iu", "its ratings have no places")
        need(not len(at) or (at.min() >= 0 and at.max() < lines), "its ratings are out of range")
    if ratings.weight is not None:
        finite("the weights", ratings.weight, shape)
