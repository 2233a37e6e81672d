"""Saving and loading of fitted models: a folder of JSON and npz files, versioned, without pickle.

`projfree.persist` writes the tree ``{"class", "parameters", "fitted"}``, and ``"encoder"`` for a pipeline with an
encoder of `projfree.estimators.encoding`. Losses, sets, solvers and results are saved as ``{"type": name, "fields":
{...}}``. Loading creates only the types listed in `TYPES`, so a file cannot create any other object.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from projfree import losses, persist, sampling, sets, solvers, steps
from projfree.algebra import Point
from projfree.checks import Array, shown
from projfree.estimators.encoding import pack_encoder, unpack_encoder
from projfree.estimators.paths import RadiusPath
from projfree.losses.base import Loss
from projfree.run import Certificate, Result, Status, Trace
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import State

KIND = "model"
ESTIMATORS = (
    "ConstrainedRegressor",
    "ConstrainedClassifier",
    "ConstrainedRegressorCV",
    "ConstrainedClassifierCV",
    "MatrixCompletion",
    "MatrixCompletionCV",
)
#: Parameters that only `fit` uses: saved if they are plain values, else omitted.
FIT_ONLY = ("cv", "scoring", "random_state")
#: Fields of a result that are not saved.
OMITTED_FIELDS = ("state", "plan")

#: Parameters that are neither saved nor loaded: objects of the user, output settings, and tables that the fitted
#: attributes contain in another form.
NEVER_SAVED = ("callbacks", "verbose", "user_features", "item_features")
#: Classes that a file may name; an estimator adds its own in ``_saved_types``.
TYPES: dict[str, type] = {
    name: value
    for module in (losses, sets, solvers, steps, sampling)
    for name, value in ((name, getattr(module, name)) for name in dir(module))
    if isinstance(value, type) and is_dataclass(value)
} | {cls.__name__: cls for cls in (Result, Certificate, RadiusPath)}


def _types_of(model: Any) -> dict[str, type]:
    return TYPES | {cls.__name__: cls for cls in getattr(model, "_saved_types", ())}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to the folder ``path``; an earlier model there is replaced atomically.

    Parameters
    ----------
    model : estimator
        A fitted estimator of the package, or a `Pipeline` of the encoder of the command line and one. Losses, sets and
        solvers must be classes of the package. Splitters, scorers and random states that are objects are omitted: the
        loaded model has the same predictions and the same result, but not these parameters.
    path : path-like
        A new or empty folder, or one written by `save`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from projfree import ConstrainedRegressor
    >>> from projfree.estimators import load, save
    >>> model = ConstrainedRegressor().fit(np.eye(3), [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, folder)
    ...     load(folder)
    ConstrainedRegressor()
    """
    encoder = None
    if getattr(model, "steps", None) and hasattr(model.steps[0][1], "transformers_"):
        (_, encoder), (_, model) = model.steps
    name, types = type(model).__name__, _types_of(model)
    if name not in ESTIMATORS or not (hasattr(model, "result_") or hasattr(model, "factors_")):
        raise TypeError(f"`save` takes a fitted model, one of {', '.join(ESTIMATORS)}, got {shown(model)}.")
    parameters = {key: value for key, value in model.get_params(deep=False).items() if key not in NEVER_SAVED}
    for key in set(FIT_ONLY) & set(parameters):
        parameters[key] = parameters[key] if isinstance(parameters[key], bool | int | float | str) else None
    fitted = {key: value for key, value in vars(model).items() if key.endswith("_") and key[0] != "_"}
    tree: dict[str, Any] = {"class": name}
    for part, values in (("parameters", parameters), ("fitted", fitted)):
        tree[part] = {key: encode(value, key, types) for key, value in values.items()}
    persist.save(path, tree if encoder is None else {**tree, "encoder": pack_encoder(encoder)}, kind=KIND)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model from a folder written by `save` or by the command `projfree`.

    A model that the command saved with an encoder is returned as a scikit-learn `Pipeline`. The file is not trusted:
    types, shapes and finiteness are checked, no code in the file is run, and a loaded model does not write to paths
    that the file names.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    ValueError
        If the folder is damaged, contains something else, or has the format of another version.

    Examples
    --------
    >>> import tempfile
    >>> from projfree import ConstrainedRegressor, load
    >>> model = ConstrainedRegressor(radius=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     again = load(f"{folder}/model")
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    tree = persist.load(path, kind=KIND)
    try:
        return _build_model(tree)
    except _UnknownTypeError as error:
        message = f"{str(path)!r} needs {error}, which this projfree does not know; upgrade projfree."
        raise ValueError(message) from error
    except Exception as error:  # constructors raise errors of any type
        why = error if isinstance(error, InvalidModelError) else f"it holds no model ({type(error).__name__})"
        message = f"{str(path)!r} is damaged: {why}; restore it from a copy, or save again."
        raise ValueError(message) from error


def _build_model(tree: Any) -> Any:
    require(isinstance(tree, dict) and tree.get("class") in ESTIMATORS, "it holds no model")
    cls = getattr(importlib.import_module("projfree.estimators"), tree["class"])
    types, parameters, fitted = _types_of(cls), tree["parameters"], tree["fitted"]
    require(isinstance(parameters, dict), "its parameters are no mapping")
    require(isinstance(fitted, dict), "its fitted attributes are no mapping")
    for name in parameters:
        known = name in cls._get_param_names() or name in NEVER_SAVED
        require(known, f"{cls.__name__} has no parameter {shown(name)}")
    model = cls(**{name: decode(value, types) for name, value in parameters.items() if name not in NEVER_SAVED})
    for name, value in fitted.items():  # fitted attributes only: no methods, properties or private attributes
        plain = name.isidentifier() and name.endswith("_") and not name.startswith("_")
        require(plain and not hasattr(cls, name), f"{shown(name)} is no fitted attribute")
        setattr(model, name, decode(value, types))
    getattr(model, "_check_fitted", partial(check_linear_model, model))()
    if tree.get("encoder") is None:
        return model
    from sklearn.pipeline import Pipeline

    encoder = unpack_encoder(tree["encoder"])
    names = list(encoder.get_feature_names_out())
    require(names == list(getattr(model, "feature_names_in_", ())), "its encoder belongs to another model")
    return Pipeline([("encoder", encoder), ("model", model)])


class _UnknownTypeError(Exception):
    """The file names a class that this version does not have."""


def encode(value: Any, where: str, types: dict[str, type]) -> Any:
    """Convert a value to the types that `projfree.persist` can write."""
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return value
    if isinstance(value, np.ndarray):
        objects = value.dtype.hasobject
        return _tag("objects", [encode(v, where, types) for v in value.tolist()]) if objects else value
    if isinstance(value, list | tuple):
        return type(value)(encode(item, where, types) for item in value)
    if isinstance(value, dict):
        return _tag("pairs", [(encode(k, where, types), encode(v, where, types)) for k, v in value.items()])
    if isinstance(value, Status):
        return _tag("status", value.name)
    if isinstance(value, Trace):
        return _tag("trace", value.columns())
    if types.get(type(value).__name__) is type(value):
        left_out = OMITTED_FIELDS if isinstance(value, Result) else ()
        names = [each.name for each in fields(cast("Any", value)) if each.name not in left_out]
        return _tag(type(value).__name__, {name: encode(getattr(value, name), where, types) for name in names})
    raise TypeError(
        f"`save` cannot write `{where}` = {shown(value)}; it writes numbers, strings, arrays, and losses, sets and "
        "solvers of projfree."
    )


def decode(value: Any, types: dict[str, type]) -> Any:
    """Convert a value that `encode` has made back to its type."""
    if isinstance(value, list | tuple):
        return type(value)(decode(item, types) for item in value)
    if not isinstance(value, dict):
        return value
    name, content = value.get("type"), value["fields"]
    if name == "status":
        return Status[content]
    if name == "trace":
        return Trace(content)
    if name == "pairs":
        return {decode(key, types): decode(item, types) for key, item in content}
    if name == "objects":
        out = np.empty(len(content), dtype=object)
        out[:] = [decode(item, types) for item in content]
        return out
    if name not in types:
        raise _UnknownTypeError(shown(name))
    decoded = {key: decode(item, types) for key, item in content.items()}
    if name == "Result":
        decoded["state"] = State(t=decoded["n_iter"], x=Point(decoded["w"]))
    return types[name](**decoded)


def _tag(name: str, content: Any) -> dict[str, Any]:
    return {"type": name, "fields": content}


# ---------------------------------------------------------------------- checks of loaded models


class InvalidModelError(ValueError):
    """The content of a saved model is invalid; the message completes a sentence about its folder."""


def require(condition: Any, what: str) -> None:
    """Raise InvalidModelError with this message unless the condition holds."""
    if not condition:
        raise InvalidModelError(what)


def check_finite(name: str, value: Any, *shapes: tuple[int, ...]) -> Array:
    """Check that a value is a finite numeric array of one of the given shapes, and return it."""
    require(isinstance(value, np.ndarray | float | int | np.generic), f"{name} is no array of numbers")
    array = np.asarray(value)
    require(
        array.dtype.kind in "fiu" and bool(np.isfinite(array).all()), f"{name} has entries that are no finite numbers"
    )
    require(
        not shapes or array.shape in shapes, f"{name} has the shape {array.shape}, not {' or '.join(map(str, shapes))}"
    )
    return array


def check_linear_model(model: Any) -> None:
    """Check the types, shapes and consistency of the fitted attributes of a linear model."""
    held = vars(model)
    for name, kind in {"loss_": Loss, "ball_": ConstraintSet, "result_": Result}.items():
        require(isinstance(held.get(name), kind), f"{name} is no {kind.__name__}")
    d = held.get("n_features_in_")
    require(isinstance(d, int) and d > 0, "n_features_in_ is no number of features")
    coef = check_finite("coef_", held.get("coef_"))
    require(coef.ndim in (1, 2) and coef.shape[-1] == d, f"coef_ has the shape {coef.shape} for {d} features")
    check_finite("intercept_", held.get("intercept_"), (), coef.shape[:-1])
    names = held.get("feature_names_in_", ["x"] * d)
    require(len(names) == d and all(isinstance(name, str) for name in names), f"feature_names_in_ has not {d} names")
    rows = coef.shape[:-1]
    for name in {"classes_", "tasks_"} & set(held):
        labels = held[name]
        several = isinstance(labels, np.ndarray) and labels.ndim == 1 and len({*labels.tolist()}) == len(labels) > 0
        require(several, f"{name} is no array of different labels")
        if name == "tasks_" or "tasks_" not in held:
            own = ((2,), (1,)) if name == "classes_" and len(labels) == 2 else (labels.shape,)
            require(rows in own, f"coef_ has not a row for each of {name}")
    result, proof = held["result_"], held["result_"].certificate
    require(held["ball_"].contains(check_finite("result_.w", result.w)), "result_.w lies outside the ball")
    require(
        np.array_equal(result.w, check_finite("its certificate", proof.w)),
        "its certificate is about another point than result_",
    )
    check_finite("the witness", proof.witness, result.w.shape)
    bound, value = result.bound, float(check_finite("result_.value", result.value, ()))
    require(bound is None or bound <= value + 1e-6 * abs(value) + 1e-12, "result_.bound is above the value")
