"""Local clusters of Dask for benchmarks, and rows that are generated on their workers."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from projfree import as_data

FEATURES, PARTITIONS = 90, 16


def no_other_sparse():
    """Dask looks for the package `sparse`, and must not find the benchmark of that name."""
    before = list(sys.path)
    sys.path = [folder for folder in before if Path(folder or ".").resolve() != Path(__file__).parent.resolve()]
    try:
        importlib.import_module("sparse")
    except ImportError:
        sys.modules["sparse"] = None
    sys.path = before


no_other_sparse()


def block(rows, seed, features=FEATURES):
    """Features with mean 0 and variance 1, and labels; without a second array of their size."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, features), dtype=np.float32)
    X -= 0.5
    X *= np.sqrt(np.float32(12.0))
    u = X[:, :10].sum(axis=1) * 0.3 + rng.standard_normal(rows, dtype=np.float32)
    return X, np.where(u > 0, 1.0, -1.0)


@contextmanager
def workers(count):
    """So many worker processes with one thread each, without a limit of memory."""
    from distributed import Client, LocalCluster

    settings = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(memory_limit=0, **settings) as cluster, Client(cluster) as client:
        yield client


def delayed_blocks(rows, partitions=PARTITIONS, features=FEATURES):
    """Features and labels as lists of delayed blocks."""
    from dask import delayed

    made = [delayed(block, nout=2)(rows // partitions, seed, features) for seed in range(partitions)]
    return [X for X, _ in made], [y for _, y in made]


def on_workers(rows, partitions=PARTITIONS, features=FEATURES):
    """The data of so many rows on the active cluster."""
    return as_data(*delayed_blocks(rows, partitions, features))
