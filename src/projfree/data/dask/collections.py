"""From Dask collections, lists of blocks and folders of Parquet files to partitions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from projfree.checks import positive
from projfree.data.dask.clients import usable_client
from projfree.data.dask.cluster import ClusterRounds
from projfree.data.dask.dask_data import DaskData
from projfree.data.dask.making import make_partition, read_partition
from projfree.data.dask.rounds import LocalRounds
from projfree.data.dask.sizes import warn_about_sizes
from projfree.data.frames import is_dask, is_dask_block

#: Seconds that a round waits while there is no worker, by default.
PATIENCE = 60.0


def from_dask(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    client: Any = None,
    patience: float = PATIENCE,
    columns: Sequence[str] | None = None,
    memory: int = 1 << 27,
) -> DaskData:
    """The data of a Dask collection, of lists of blocks, or of a folder of Parquet files.

    Parameters
    ----------
    X : dask array, dask data frame, list of delayed or future blocks, single block, or path
        Blocks are arrays, SciPy sparse or data frames, cut along the rows.
    y, sample_weight : like ``X``, arrays, or with Parquet names of columns
    client : distributed.Client, optional
        The cluster; by default the active client. Without one blocks are computed on this machine, one at a time.
    patience : float
        Seconds that a round waits while the cluster has no worker, or paused ones only.
    columns : sequence of str, optional
        With Parquet, the features.
    memory : int
        Bytes for buffers of Parquet files, and without a client for blocks that are kept between two rounds.
    """
    client, patience = usable_client(client), positive("patience", patience)
    if isinstance(X, str | os.PathLike):
        blocks = _files(X, y, sample_weight, columns, memory)
    else:
        blocks = _blocks(X, y, sample_weight)
    if client is None:
        return DaskData(LocalRounds(blocks, memory))
    rounds = ClusterRounds(client, blocks, patience)
    data = DaskData(rounds)
    warn_about_sizes(rounds)
    return data


def _blocks(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Tasks that make partitions."""
    from dask import delayed
    from dask.base import tokenize

    parts, lengths = _delayed("X", X)
    targets = _alike("y", y, parts, lengths)
    weights = [None] * len(parts) if sample_weight is None else _alike("sample_weight", sample_weight, parts, lengths)
    made = []
    for k, three in enumerate(zip(parts, targets, weights, strict=True)):
        key = f"projfree-partition-{tokenize(*[getattr(one, 'key', one) for one in three])}-{k}"
        made.append(delayed(make_partition)(k, *three, dask_key_name=key))
    return made


def _files(path: Any, y: Any, sample_weight: Any, columns: Sequence[str] | None, memory: int) -> list[Any]:
    from dask import delayed

    from projfree.data.sources import existing_path, parquet_files

    if not isinstance(y, str | list | tuple) or not isinstance(sample_weight, str | None):
        raise TypeError("`y` and `sample_weight` must be names of columns where `X` is a folder and there is a client.")
    files = [os.path.abspath(file) for file in parquet_files(existing_path(path))]
    settings = (y, sample_weight, None if columns is None else list(columns), memory)
    return [delayed(read_partition, pure=True)(k, file, *settings) for k, file in enumerate(files)]


def _delayed(name: str, X: Any) -> tuple[list[Any], list[int | None]]:
    """The blocks of rows of a collection and how many rows each has, None where that is not known."""
    if isinstance(X, list | tuple) or is_dask_block(X):
        blocks = [X] if is_dask_block(X) else list(X)
        return blocks, [None] * len(blocks)
    if hasattr(X, "to_dask_array") and hasattr(X, "npartitions"):
        parts = list(X.to_delayed())
        return parts, [None] * len(parts)
    if not hasattr(X, "chunks"):
        raise TypeError(
            f"`{name}` must be a Dask array or data frame, or a list of blocks, got {type(X).__name__}; convert it "
            "with `.to_dataframe()` or `dask.array.from_delayed`."
        )
    if X.ndim not in (1, 2) or (name == "X" and X.ndim != 2):
        raise ValueError(f"`{name}` must be a table with two dimensions, got shape {X.shape}.")
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    lengths = [None if np.isnan(rows) else int(rows) for rows in X.chunks[0]]
    return list(X.to_delayed().ravel()), lengths


def _alike(name: str, values: Any, parts: list[Any], lengths: list[int | None]) -> list[Any]:
    """Targets or weights in blocks that go with those of the features."""
    if is_dask(values) or (None in lengths and isinstance(values, list | tuple)):
        known = [rows for rows in lengths if rows is not None]
        if hasattr(values, "rechunk") and len(known) == len(parts) and values.ndim and values.shape[0] == sum(known):
            values = values.rechunk({0: tuple(known)})
        found = _delayed(name, values)[0]
        if len(found) != len(parts):
            raise ValueError(
                f"`{name}` must have a block for each of the {len(parts)} blocks of `X`, got {len(found)}; cut both "
                "alike."
            )
        return found
    if None in lengths:
        raise ValueError(
            f"`{name}` must be a Dask collection or a list of blocks where the sizes of the blocks of `X` are not "
            f"known, got {type(values).__name__}; see `compute_chunk_sizes`."
        )
    whole = values if hasattr(values, "iloc") else np.asarray(values)
    ends = np.cumsum([0, *lengths])
    if len(whole) != ends[-1]:
        raise ValueError(f"`{name}` must have one entry for each of the {ends[-1]} rows of `X`, got {len(whole)}.")
    cut = getattr(whole, "iloc", whole)
    return [cut[first:last] for first, last in pairwise(ends)]
