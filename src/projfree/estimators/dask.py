"""Lazy predictions for Dask collections, computed block by block."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from projfree.data.convert import is_dask, is_dask_block


def dask_aware(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a prediction method so that it maps Dask collections to Dask collections.

    Arrays and data frames give a Dask array; its chunk sizes are unknown if those of ``X`` are. A list of blocks gives
    a list of delayed arrays, and a single block a delayed array.
    """

    @functools.wraps(method)
    def wrapper(self: Any, X: Any) -> Any:
        return _blockwise(self, method.__name__, X) if is_dask(X) else method(self, X)

    return wrapper


def _blockwise(model: Any, method: str, X: Any) -> Any:
    from dask import delayed

    small_model = copy.copy(model)  # without the attributes that predictions do not need, to send less to workers
    for name in {"result_", "path_", "cv_results_", "callbacks"} & set(vars(small_model)):
        delattr(small_model, name)
    call, small_model = delayed(_call_on_block), delayed(small_model)
    if is_dask_block(X):
        return call(small_model, method, X)
    if isinstance(X, list | tuple):
        return [call(small_model, method, block) for block in X]
    import dask.array as da

    if hasattr(X, "chunks"):
        parts, rows, width, names = X.rechunk({1: -1}).to_delayed().ravel(), X.chunks[0], X.shape[1], None
    else:
        parts, rows = X.to_delayed(optimize_graph=False), (np.nan,) * X.npartitions
        width, names = len(X.columns), X.columns
    # Predict one row now, to check the columns and to find the shape and type of the output.
    example = _call_on_block(model, method, zero_row(model.n_features_in_ if np.isnan(width) else width, names))
    blocks = [
        da.from_delayed(call(small_model, method, part), (n, *example.shape[1:]), dtype=example.dtype)
        for part, n in zip(parts, rows, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def refuse_other_columns(model: Any, data: Any) -> None:
    """Raise the error of scikit-learn if ``data`` has other columns than the fit."""
    width, names, own = data.shape(())[0], data.feature_names, getattr(model, "feature_names_in_", None)
    if width != model.n_features_in_ or not (names is None or own is None or list(names) == list(own)):
        _call_on_block(model, "predict", zero_row(width, names))


def zero_row(width: int, names: Any) -> Any:
    """Return a row of zeros, as a data frame if the columns have names."""
    row = np.zeros((1, width))
    if names is None:
        return row
    import pandas as pd

    return pd.DataFrame(row, columns=list(names))


def _call_on_block(model: Any, method: str, block: Any) -> Any:
    """Call a method on a block, which may be an empty partition or an array without feature names."""
    if block.shape[0] == 0:
        return _call_on_block(model, method, np.zeros((1, model.n_features_in_)))[:0]
    if hasattr(model, "feature_names_in_") and not hasattr(block, "columns"):
        model = copy.copy(model)
        del model.feature_names_in_
    return getattr(model, method)(block)
