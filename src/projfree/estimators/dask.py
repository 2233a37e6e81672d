"""Predictions for Dask collections: a collection again, block by block and only when it is computed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from projfree.data.convert import is_dask, is_dask_block


def lazy_on_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a fitted model that answers a Dask collection with one."""

    @functools.wraps(method)
    def either(self: Any, X: Any) -> Any:
        return blockwise(self, method.__name__, X) if is_dask(X) else method(self, X)

    return either


def blockwise(model: Any, method: str, X: Any) -> Any:
    """What a method of a model says about each block of rows, without computing anything now.

    Arrays and frames give a Dask array, whose chunks are unknown where those of ``X`` are; a list of blocks gives a
    list of delayed arrays, and a single one a delayed array.
    """
    from dask import delayed

    if is_dask_block(X):
        return blockwise(model, method, [X])[0]
    example = _called(model, method, _row(model, X))
    light = delayed(_light(model))
    if isinstance(X, list | tuple):
        return [delayed(_called)(light, method, block) for block in X]
    import dask.array as da

    if hasattr(X, "chunks"):
        parts, rows = X.rechunk({1: -1}).to_delayed().ravel(), X.chunks[0]
    else:
        parts, rows = X.to_delayed(optimize_graph=False), (np.nan,) * X.npartitions
    answers = [
        da.from_delayed(delayed(_called)(light, method, part), (n, *example.shape[1:]), dtype=example.dtype)
        for part, n in zip(parts, rows, strict=True)
    ]
    return da.concatenate(answers, allow_unknown_chunksizes=True)


def refuse_other_columns(model: Any, data: Any) -> None:
    """Raise what scikit-learn raises where data have other columns than those of the fit."""
    width, names, own = data.shape(())[0], data.feature_names, getattr(model, "feature_names_in_", None)
    if width != model.n_features_in_ or not (names is None or own is None or list(names) == list(own)):
        _called(model, "predict", row_of_zeros(width, names))


def row_of_zeros(width: int, names: Any) -> Any:
    """A row that has the columns of a table, with their names where they have some."""
    row = np.zeros((1, width))
    if names is None:
        return row
    import pandas as pd

    return pd.DataFrame(row, columns=list(names))


def _row(model: Any, X: Any) -> Any:
    """A row with the columns of a collection, so that others than those of the fit are refused at once."""
    if hasattr(X, "columns"):
        return row_of_zeros(len(X.columns), X.columns)
    width = X.shape[1] if hasattr(X, "chunks") and X.ndim == 2 else model.n_features_in_
    return row_of_zeros(model.n_features_in_ if np.isnan(width) else int(width), None)


def _called(model: Any, method: str, block: Any) -> Any:
    if block.shape[0] == 0:  # partitions of frames may have no rows
        return getattr(model, method)(np.zeros((1, model.n_features_in_)))[:0]
    names = getattr(model, "feature_names_in_", None)
    plain = names is not None and not hasattr(block, "columns")
    return getattr(_light(model, nameless=True) if plain else model, method)(block)


def _light(model: Any, *, nameless: bool = False) -> Any:
    """The model without what predictions do not need, which would travel to every worker."""
    light = copy.copy(model)
    for name in ("result_", "path_", "cv_results_", "callbacks", *(("feature_names_in_",) if nameless else ())):
        if name in vars(light):
            delattr(light, name)
    return light
