"""Predictions for Dask collections: a collection again, block by block and only when it is computed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from projfree.data.convert import is_dask, is_dask_block


def dask_aware(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a fitted model that answers a Dask collection with one.

    Arrays and frames give a Dask array, whose chunks are unknown where those of ``X`` are; a list of blocks gives a
    list of delayed arrays, and a single one a delayed array.
    """

    @functools.wraps(method)
    def wrapper(self: Any, X: Any) -> Any:
        return _blockwise(self, method.__name__, X) if is_dask(X) else method(self, X)

    return wrapper


def _blockwise(model: Any, method: str, X: Any) -> Any:
    from dask import delayed

    small_model = copy.copy(model)  # without what predictions do not need, which would travel to every worker
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
    # Its columns are checked at once.
    example = _call_on_block(model, method, zero_row(model.n_features_in_ if np.isnan(width) else width, names))
    blocks = [
        da.from_delayed(call(small_model, method, part), (n, *example.shape[1:]), dtype=example.dtype)
        for part, n in zip(parts, rows, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def refuse_other_columns(model: Any, data: Any) -> None:
    """Raise what scikit-learn raises where data have other columns than those of the fit."""
    width, names, own = data.shape(())[0], data.feature_names, getattr(model, "feature_names_in_", None)
    if width != model.n_features_in_ or not (names is None or own is None or list(names) == list(own)):
        _call_on_block(model, "predict", zero_row(width, names))


def zero_row(width: int, names: Any) -> Any:
    """A row that has the columns of a table, with their names where they have some."""
    row = np.zeros((1, width))
    if names is None:
        return row
    import pandas as pd

    return pd.DataFrame(row, columns=list(names))


def _call_on_block(model: Any, method: str, block: Any) -> Any:
    """What a method says about a block, which may have no rows, as partitions of frames do, and no names."""
    if block.shape[0] == 0:
        return _call_on_block(model, method, np.zeros((1, model.n_features_in_)))[:0]
    if hasattr(model, "feature_names_in_") and not hasattr(block, "columns"):
        model = copy.copy(model)
        del model.feature_names_in_
    return getattr(model, method)(block)
