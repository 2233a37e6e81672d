"""Fitted models on disk: a folder of JSON and npz, versioned, without pickle.

The tree that `projfree.persist` writes is ``{"class", "parameters", "fitted"}``, and ``"encoder"`` where
`projfree.estimators.encoding` comes first. Losses, sets, solvers, results and their parts stand in it as
``{"type": name, "fields": {...}}``; only names of `TYPES` are read back, so a file can make nothing else.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from projfree import losses, persist, sampling, sets, solvers, steps
from projfree.algebra import Point
from projfree.checks import shown
from projfree.completion.factors import Factors
from projfree.completion.features import FeatureTable
from projfree.completion.prediction import OffsetModel
from projfree.completion.problem import Settings
from projfree.completion.ratings import Ratings
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.encoding import pack_encoder, unpack_encoder
from projfree.estimators.paths import RadiusPath
from projfree.estimators.saved_model import (
    NEVER_SAVED,
    DamageError,
    check_linear,
    checked_names,
    checked_parameters,
    need,
)
from projfree.run import Certificate, Result, Status, Trace
from projfree.solvers.base import State

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from projfree.completion.recommend import Recommender

KIND = "model"
CLASSES = (
    "ConstrainedRegressor",
    "ConstrainedClassifier",
    "ConstrainedRegressorCV",
    "ConstrainedClassifierCV",
    "MatrixCompletion",
    "MatrixCompletionCV",
)
#: What only a fit needs: written where it is plain, left out where it is an object.
FOR_FITS = ("cv", "scoring", "random_state")
#: Parts of a result that no saved model has.
DROPPED = {Result: ("state", "plan"), Certificate: ()}

TYPES: dict[str, type] = {
    name: value
    for module in (losses, sets, solvers, steps, sampling)
    for name, value in ((name, getattr(module, name)) for name in dir(module))
    if isinstance(value, type) and is_dataclass(value)
} | {
    cls.__name__: cls
    for cls in (Result, Certificate, RadiusPath, Factors, FeatureTable, OffsetModel, Ratings, Settings)
}


def save(model: ConstrainedModel | Recommender | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to the folder ``path``, replacing atomically a model that was saved there before.

    Parameters
    ----------
    model : estimator
        One of the package, fitted, or a `Pipeline` of the encoder of the command and one of them. Losses, sets and
        solvers must be of the package too. Splitters, scorers
        and random states that are objects are left out: a loaded model predicts the same and has the same result, but
        a search would be set up anew.
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
    encoder, model = _parts(model)
    name = type(model).__name__
    if name not in CLASSES or not (hasattr(model, "result_") or hasattr(model, "factors_")):
        raise TypeError(f"`save` takes a fitted model, one of {', '.join(CLASSES)}, got {shown(model)}.")
    given = {key: value for key, value in model.get_params(deep=False).items() if key not in NEVER_SAVED}
    parameters = {key: _plain_or_none(value) if key in FOR_FITS else encode(value, key) for key, value in given.items()}
    kept = {key: value for key, value in vars(model).items() if key.endswith("_") and key[0] != "_"}
    fitted = {key: encode(value, key) for key, value in kept.items()}
    tree = {"class": name, "parameters": parameters, "fitted": fitted}
    persist.save(path, tree if encoder is None else {**tree, "encoder": pack_encoder(encoder)}, kind=KIND)


def _parts(model: Any) -> tuple[Any, Any]:
    """The encoder, if the model is a pipeline that begins with one, and the model itself."""
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and len(steps) == 2 and hasattr(steps[0][1], "transformers_"):
        return steps[0][1], steps[1][1]
    return None, model


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model back from the folder that `save` or the command `projfree` wrote.

    A model that the command saved after an encoder comes back as a scikit-learn `Pipeline` of the two. Nothing that is
    read is trusted: types, shapes and finiteness are checked, no code of the file runs, and a loaded model writes to no
    place that the file names.

    Raises
    ------
    FileNotFoundError
        Where there is none.
    ValueError
        Where the folder is damaged, holds something else, or was written by a version with another format.

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
        return _model(tree)
    except _UnknownError as error:
        raise ValueError(
            f"{str(path)!r} needs {error}, which this projfree does not know; upgrade projfree."
        ) from error
    except DamageError as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}; restore it from a copy, or save again.") from error
    except Exception as error:  # settings are checked where they are made, each in its own way
        raise ValueError(
            f"{str(path)!r} is damaged: it holds no model ({type(error).__name__}); restore it from a copy, or save "
            "again."
        ) from error


def _model(tree: Any) -> Any:
    need(isinstance(tree, dict) and tree.get("class") in CLASSES, "it holds no model")
    cls = getattr(importlib.import_module("projfree.estimators"), tree["class"])
    given, fitted = checked_parameters(cls, tree["parameters"]), checked_names(cls, tree["fitted"])
    model = cls(**{key: decode(value) for key, value in given.items()})
    for key, value in fitted.items():
        setattr(model, key, decode(value))
    getattr(model, "_check_parts", partial(check_linear, model))()
    if tree.get("encoder") is None:
        return model
    from sklearn.pipeline import Pipeline

    encoder = unpack_encoder(tree["encoder"])
    names = list(encoder.get_feature_names_out())
    need(names == list(getattr(model, "feature_names_in_", ())), "its encoder belongs to another model")
    return Pipeline([("encoder", encoder), ("model", model)])


class _UnknownError(Exception):
    """A class that only a newer projfree has."""


def encode(value: Any, where: str) -> Any:
    """``value`` in the terms of `projfree.persist`."""
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return value
    if isinstance(value, np.ndarray):
        return value if not value.dtype.hasobject else _tagged("objects", [encode(v, where) for v in value.tolist()])
    if isinstance(value, list | tuple):
        return type(value)(encode(item, where) for item in value)
    if isinstance(value, dict):
        return _tagged("pairs", [(encode(k, where), encode(v, where)) for k, v in value.items()])
    if isinstance(value, Status):
        return _tagged("status", value.name)
    if isinstance(value, Trace):
        return _tagged("trace", value.columns())
    if TYPES.get(type(value).__name__) is type(value):
        left_out = DROPPED.get(type(value), ())
        inside = {
            f.name: encode(getattr(value, f.name), where) for f in fields(cast("Any", value)) if f.name not in left_out
        }
        return {"type": type(value).__name__, "fields": inside}
    raise TypeError(
        f"`save` cannot write `{where}` = {shown(value)}; it writes numbers, strings, arrays, and losses, sets and "
        "solvers of projfree."
    )


def decode(value: Any) -> Any:
    """Undo `encode`."""
    if isinstance(value, list | tuple):
        return type(value)(decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    name = value.get("type")
    if name in _READERS:
        return _READERS[name](value["fields"])
    if name not in TYPES:
        raise _UnknownError(shown(name))
    inside = {key: decode(item) for key, item in value["fields"].items()}
    if name == "Result":
        inside["state"] = State(t=inside["n_iter"], x=Point(inside["w"]))
    return TYPES[name](**inside)


def _objects(items: Any) -> Any:
    out = np.empty(len(items), dtype=object)
    out[:] = [decode(item) for item in items]
    return out


_READERS: dict[str, Any] = {
    "objects": _objects,
    "pairs": lambda pairs: {decode(k): decode(v) for k, v in pairs},
    "status": lambda name: Status[name],
    "trace": Trace,
}


def _tagged(name: str, content: Any) -> dict[str, Any]:
    return {"type": name, "fields": content}


def _plain_or_none(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else None
