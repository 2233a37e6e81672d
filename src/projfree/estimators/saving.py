"""Saving and loading of fitted models: a folder of JSON and npz files, versioned, without pickle.

`projfree.persist` writes the tree ``{"class", "parameters", "fitted"}``, and ``"encoder"`` for a pipeline with an
encoder of `projfree.estimators.encoding`. `persist.pack` converts losses, sets, solvers and results. Loading creates
only what `TYPES` and `MAKERS` list, so a file cannot create any other object.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from projfree import persist
from projfree.algebra import Point
from projfree.checks import Array, shown
from projfree.estimators.encoding import pack_encoder, unpack_encoder
from projfree.estimators.paths import RadiusPath
from projfree.losses.base import Loss
from projfree.run import Certificate, Result, Status, Trace
from projfree.run.checkpoint import CLASSES as SETTINGS
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
#: Parameters that are neither saved nor loaded: objects of the user, output settings, and tables that the fitted
#: attributes contain in another form.
NEVER_SAVED = ("callbacks", "verbose", "user_features", "item_features")
#: Classes that a file may name; an estimator adds its own in ``_saved_types``.
TYPES = SETTINGS | {cls.__name__: cls for cls in (Result, Certificate, RadiusPath)}


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
        tree[part] = {
            key: persist.pack(value, types, partial(_convert, where=key, types=types)) for key, value in values.items()
        }
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
    except persist.UnknownClassError as error:
        message = f"{str(path)!r} is of another version: {error}; upgrade projfree."
        raise ValueError(message) from error
    except Exception as error:  # constructors raise errors of any type
        why = error if isinstance(error, InvalidModelError) else f"it holds no model ({type(error).__name__})"
        message = f"{str(path)!r} is damaged: {why}; restore it from a copy, or save again."
        raise ValueError(message) from error


def _build_model(tree: Any) -> Any:
    require(isinstance(tree, dict) and tree.get("class") in ESTIMATORS, "it holds no model")
    cls = getattr(importlib.import_module("projfree.estimators"), tree["class"])
    types, parameters, fitted = _types_of(cls) | MAKERS, tree["parameters"], tree["fitted"]
    require(isinstance(parameters, dict), "its parameters are no mapping")
    require(isinstance(fitted, dict), "its fitted attributes are no mapping")
    for name in parameters:
        known = name in cls._get_param_names() or name in NEVER_SAVED
        require(known, f"{cls.__name__} has no parameter {shown(name)}")
    model = cls(**{name: persist.unpack(value, types) for name, value in parameters.items() if name not in NEVER_SAVED})
    for name, value in fitted.items():  # fitted attributes only: no methods, properties or private attributes
        plain = name.isidentifier() and name.endswith("_") and not name.startswith("_")
        require(plain and not hasattr(cls, name), f"{shown(name)} is no fitted attribute")
        setattr(model, name, persist.unpack(value, types))
    getattr(model, "_check_fitted", partial(check_linear_model, model))()
    if tree.get("encoder") is None:
        return model
    from sklearn.pipeline import Pipeline

    encoder = unpack_encoder(tree["encoder"])
    names = list(encoder.get_feature_names_out())
    require(names == list(getattr(model, "feature_names_in_", ())), "its encoder belongs to another model")
    return Pipeline([("encoder", encoder), ("model", model)])


def _convert(value: Any, where: str, types: dict[str, type]) -> Any:
    """Convert a value that is no dataclass to one that `persist.pack` can write; raise TypeError if there is none."""
    if isinstance(value, Status):
        return {"class": "Status", "name": value.name}
    if isinstance(value, Trace):
        return {"class": "Trace", **value.columns()}
    if isinstance(value, dict):
        return {"class": "dict", "pairs": list(value.items())}
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return {"class": "objects", "items": value.tolist()}
    plain = value is None or isinstance(value, bool | int | float | str | np.generic | np.ndarray | list | tuple)
    if plain or types.get(type(value).__name__) is type(value):
        return value
    raise TypeError(
        f"`save` cannot write `{where}` = {shown(value)}; it writes numbers, strings, arrays, and losses, sets and "
        "solvers of projfree."
    )


def _make_result(**parts: Any) -> Result:
    return Result(**parts, state=State(t=parts["n_iter"], x=Point(parts["w"])))


def _make_objects(items: list[Any]) -> Array:
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out


#: Constructors of what is no dataclass, or needs more than its fields.
MAKERS: dict[str, Callable[..., Any]] = {
    "Status": lambda name: Status[name],
    "Trace": lambda **columns: Trace(columns),
    "dict": lambda pairs: dict(pairs),
    "objects": _make_objects,
    "Result": _make_result,
}


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
