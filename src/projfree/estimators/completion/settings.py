"""What the settings of a completion may be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from projfree.checks import at_least, count, flag, positive, shown
from projfree.solvers.base import Solver

#: Weights of implicit features and of features, in ratings: beyond, one of both sides is lost in rounding.
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e6
#: The least penalty of an offset, and the largest power of frequencies, which are apart by a factor of millions.
LEAST_RIDGE, LARGEST_POWER = 1e-6, 10.0


def check_settings(model: Any) -> None:
    """Raise where a setting is not what it may be."""
    if at_least("MatrixCompletion(p=...)", model.p, 1.0) >= 2.0:
        raise ValueError(
            f"`MatrixCompletion(p=...)` must be below 2, got {shown(model.p)}: beyond, the answer says nothing "
            "about entries that were not observed; `minimize` over a SchattenBall solves it."
        )
    for name in ("radius", "time_limit"):
        if getattr(model, name) is not None:
            positive(f"MatrixCompletion({name}=...)", getattr(model, name))
    _check_weights(model)
    if model.tol is not None:
        _from_zero("MatrixCompletion(tol=...)", model.tol)
    _check_tuples(model)
    counts = ("rank", "max_iter", "n_iter_no_change", "max_sweeps")
    for name in counts if model.max_sweeps is not None else counts[:-1]:
        count(f"MatrixCompletion({name}=...)", getattr(model, name))
    share = positive("MatrixCompletion(validation_fraction=...)", model.validation_fraction)
    if share >= 1.0:
        raise ValueError(f"`MatrixCompletion(validation_fraction=...)` must be below 1, got {shown(share)}.")
    for name in ("early_stopping", "clip"):
        flag(f"MatrixCompletion({name}=...)", getattr(model, name))
    if not isinstance(model.certify, bool | np.bool_) and not _is_text(model.certify, "sharp"):
        raise ValueError(f"`MatrixCompletion(certify=...)` must be a bool or 'sharp', got {shown(model.certify)}.")
    if model.solver is not None and not isinstance(model.solver, Solver) and not _is_text(model.solver, "auto"):
        raise TypeError(
            "`MatrixCompletion(solver=...)` must be None or a Solver such as `CorrectivePrimalAveraging()`, got "
            f"{shown(model.solver)}."
        )
    _check_seed(model.random_state)


#: The settings that state the problem, which `partial_fit` goes on with.
STATED = ("p", "loss", "offsets", "ridge", "implicit", "weight_power", "features_weight")


def stated(model: Any) -> dict[str, Any]:
    """The settings that state the problem."""
    return {name: getattr(model, name) for name in STATED}


def refuse_changes(model: Any) -> None:
    """Raise where a setting that states the problem is not that of the fit."""
    for name, value in model.stated_.items():
        now = getattr(model, name)
        if now is not value and now != value:
            raise ValueError(
                f"`partial_fit` goes on with the problem of the fit, which had {name}={shown(value)}, got "
                f"{name}={shown(now)}; call `fit` for another one."
            )


def three(values: Any, *kinds: type) -> bool:
    """Whether there are three values of such kinds, in a tuple or a list."""
    return isinstance(values, tuple | list) and len(values) == 3 and all(isinstance(value, kinds) for value in values)


def _is_text(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text


def _from_zero(name: str, value: Any, most: float = math.inf) -> float:
    """The number, or a sentence where it is negative, infinite or too large."""
    number = at_least(name, value, 0.0)
    if number == math.inf:
        raise ValueError(f"`{name}` must be finite, got {shown(value)}.")
    if number > most:
        raise ValueError(f"`{name}` must be at most {most:g}, got {shown(value)}.")
    return number


def _check_weights(model: Any) -> None:
    """Penalties, weights and powers."""
    ridge = positive("MatrixCompletion(ridge=...)", model.ridge)
    if not LEAST_RIDGE <= ridge <= 1.0 / LEAST_RIDGE**2:
        raise ValueError(
            f"`MatrixCompletion(ridge=...)` must be between {LEAST_RIDGE:g} and {1.0 / LEAST_RIDGE**2:g}, got "
            f"{shown(model.ridge)}; `offsets=False` leaves offsets out."
        )
    _check_weight("features_weight", positive("MatrixCompletion(features_weight=...)", model.features_weight), "")
    if not isinstance(model.implicit, str):
        weight = _from_zero("MatrixCompletion(implicit=...)", model.implicit)
        _check_weight("implicit", weight or LEAST_WEIGHT, ", or 0 for none")
    elif model.implicit != "auto":
        raise ValueError(
            f"`MatrixCompletion(implicit=...)` must be 'auto' or a weight, 0 for none, got {shown(model.implicit)}."
        )
    _from_zero("MatrixCompletion(weight_power=...)", model.weight_power, LARGEST_POWER)


def _check_weight(name: str, weight: float, otherwise: str) -> None:
    if not LEAST_WEIGHT <= weight <= LARGEST_WEIGHT:
        raise ValueError(
            f"`MatrixCompletion({name}=...)` must be between {LEAST_WEIGHT:g} and {LARGEST_WEIGHT:g}{otherwise}, got "
            f"{weight:g}."
        )


def _check_tuples(model: Any) -> None:
    if not isinstance(model.offsets, bool) and not three(model.offsets, bool):
        raise ValueError(
            "`MatrixCompletion(offsets=...)` must be a bool or three: for all, for each user, for each item; got "
            f"{shown(model.offsets)}."
        )
    if not three(model.columns, str, int):
        raise ValueError(
            "`MatrixCompletion(columns=...)` must be the names of three columns, of users, items and ratings, got "
            f"{shown(model.columns)}."
        )


def _check_seed(seed: Any) -> None:
    try:
        check_random_state(seed)
    except ValueError as error:
        raise ValueError(
            "`MatrixCompletion(random_state=...)` must be None, a whole number from 0 to 2**32 - 1 or a RandomState, "
            f"got {shown(seed)}."
        ) from error
