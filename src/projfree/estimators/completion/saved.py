"""What a saved completion must look like, checked before anything predicts with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.ratings import Observed
from projfree.estimators.saved_model import finite, need
from projfree.losses.base import Loss

NUMBERS = ("radius_", "norm_", "strength_", "value_", "bound_", "relative_gap_", "n_iter_", "implicit_")


def check_completion(model: Any) -> None:
    """Raise where the parts of a completion are not what a fit leaves, or do not fit each other."""
    held = vars(model)
    for name, kind in {"factors_": Factors, "ratings_": Observed, "loss_": Loss}.items():
        need(isinstance(held.get(name), kind), f"{name} is no {kind.__name__}")
    for name in NUMBERS:
        need(isinstance(held.get(name), int | float | np.number), f"{name} is no number")
    need(len(held.get("rating_range_", ())) == 2, "rating_range_ is no range")
    finite("rating_range_", np.asarray(held["rating_range_"], dtype=np.float64))
    need(isinstance(model.columns, tuple) and _all(model.columns, str), "its columns have no names")
    need(isinstance(model.offsets, bool) or _all(model.offsets, bool), "its offsets are unknown")
    _check_factors(model.factors_, len(model.user_ids_), len(model.item_ids_))
    _check_ratings(model)
    loss = model.loss_
    model._checked()
    model.loss_, model.result_ = loss, None  # the scale of a loss is fitted


def _all(values: Any, kind: type) -> bool:
    return isinstance(values, tuple | list) and len(values) == 3 and all(isinstance(value, kind) for value in values)


def _check_factors(model: Factors, users: int, items: int) -> None:
    """Raise where factors are not those of so many users and items."""
    rank = finite("the factors", model.left).shape[-1]
    finite("the factors of users", model.left, (users, rank))
    finite("the factors of items", model.right, (items, rank))
    for name, part, most in (("users", model.below, users), ("items", model.beside, items)):
        finite(f"the further factors of {name}", part, (0, rank), (most, rank))
    finite("the offsets of users", model.rows, (users,))
    finite("the offsets of items", model.cols, (items,))
    finite("the singular values", model.sigma)
    for value in (model.shift, model.base):
        finite("the base", value, ())


def _check_ratings(model: Any) -> None:
    ratings = model.ratings_
    shape = (len(finite("the ratings", ratings.values)),)
    for at, ids in ((ratings.rows, model.user_ids_), (ratings.cols, model.item_ids_)):
        need(isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iuUSb", "its labels are no labels")
        need(at.shape == shape and at.dtype.kind in "iu", "its ratings have no places")
        need(not len(at) or (at.min() >= 0 and at.max() < len(ids)), "its ratings are out of range")
    if ratings.weight is not None:
        finite("the weights", ratings.weight, shape)
