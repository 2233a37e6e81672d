"""What a saved model must look like: types, shapes and finite numbers, checked before anything predicts with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.losses.base import Loss
from projfree.run import Result
from projfree.sets.base import ConstraintSet

#: Parameters that are never written, and never taken from a file: objects of the user's, places to write to, and tables
#: that a fit has kept in its own form.
NEVER_SAVED = ("callbacks", "checkpoint", "verbose", "user_features", "item_features")


class DamageError(ValueError):
    """What is wrong with a saved model, for the sentence about its folder."""


def need(condition: Any, what: str) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise DamageError(what)


def finite(name: str, value: Any, *shapes: tuple[int, ...]) -> Array:
    """An array of finite floats with one of the given shapes."""
    need(isinstance(value, np.ndarray | float | int | np.generic), f"{name} is no array of numbers")
    array = np.asarray(value)
    need(array.dtype.kind in "fiu" and bool(np.isfinite(array).all()), f"{name} has entries that are no finite numbers")
    need(
        not shapes or array.shape in shapes, f"{name} has the shape {array.shape}, not {' or '.join(map(str, shapes))}"
    )
    return array


def checked_names(cls: type, fitted: Any) -> dict[str, Any]:
    """The fitted attributes, whose names must be those of attributes and not of methods or properties."""
    need(isinstance(fitted, dict), "its fitted attributes are no mapping")
    for name in fitted:
        plain = name.isidentifier() and name.endswith("_") and not name.startswith("_")
        need(plain and not hasattr(cls, name), f"{shown(name)} is no fitted attribute")
    return dict(fitted)


def checked_parameters(cls: type, parameters: Any) -> dict[str, Any]:
    """The parameters of an estimator, without those that a file must not set."""
    need(isinstance(parameters, dict), "its parameters are no mapping")
    known = set(cls._get_param_names())  # type: ignore[attr-defined]  # estimators of scikit-learn have it
    for name in parameters:
        need(name in known or name in NEVER_SAVED, f"{cls.__name__} has no parameter {shown(name)}")
    return {name: value for name, value in parameters.items() if name not in NEVER_SAVED}


def check_linear(model: Any) -> None:
    """Raise where the parts of a linear model are not what a fit leaves, or do not fit each other."""
    held = vars(model)
    for name, kind in {"loss_": Loss, "ball_": ConstraintSet, "result_": Result}.items():
        need(isinstance(held.get(name), kind), f"{name} is no {kind.__name__}")
    d = held.get("n_features_in_")
    need(isinstance(d, int) and d > 0, "n_features_in_ is no number of features")
    coef = finite("coef_", held.get("coef_"))
    need(coef.ndim in (1, 2) and coef.shape[-1] == d, f"coef_ has the shape {coef.shape} for {d} features")
    outputs = coef.shape[:-1]
    finite("intercept_", held.get("intercept_"), (), outputs)
    names = held.get("feature_names_in_")
    if names is not None:
        need(len(names) == d and all(isinstance(name, str) for name in names), f"feature_names_in_ has not {d} names")
    for name in ("classes_", "tasks_"):
        need(name not in held or _labels(held[name]), f"{name} is no array of different labels")
    if "tasks_" in held:
        need(outputs == held["tasks_"].shape, "coef_ has not a row for each task")
    elif hasattr(type(model), "decision_function"):
        k = len(held.get("classes_", ()))
        need(k >= 2 and outputs in ((k,), (1,) if k == 2 else (k,)), "coef_ has not a row for each class")
    _check_result(held["result_"], held["ball_"], d)


def _labels(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and len({*value.tolist()}) == len(value) > 0


def _check_result(result: Result, ball: ConstraintSet, d: int) -> None:
    w, certificate = finite("result_.w", result.w), result.certificate
    need(w.ndim in (1, 2) and w.shape[0] <= d + 1, f"result_.w has the shape {w.shape} for {d} features")
    need(ball.contains(w), "result_.w lies outside the ball")
    finite("result_.value", result.value, ())
    for name in ("w", "witness"):
        finite(f"certificate_.{name}", getattr(certificate, name), w.shape)
    need(np.array_equal(certificate.w, w), "certificate_ is about another point than result_")
    intercepts = {
        "result_.intercept": result.intercept,
        "certificate_.intercept": certificate.intercept,
        "certificate_.witness_intercept": certificate.witness_intercept,
    }
    for name, offset in intercepts.items():
        if offset is not None:
            finite(name, offset, w.shape[1:])
    if result.bound is not None:
        bound, value = float(result.bound), float(result.value)
        need(not np.isnan(bound) and bound <= value + 1e-6 * abs(value) + 1e-12, "result_.bound is above the value")
