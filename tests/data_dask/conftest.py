"""Clusters for the tests of Dask data: one in this process for speed, and one of processes that can be killed."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")

QUIET = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.admin.log-format": "%(message)s",
    "distributed.logging": {"distributed": "critical"},
}


@pytest.fixture(scope="session")
def threads() -> Iterator[object]:
    """A client of two workers that live in this process."""
    import dask
    from distributed import Client, LocalCluster

    with dask.config.set(QUIET), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A cluster that silences logs would mute what pytest records for all later tests of the session.
        settings = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1, "silence_logs": False}
        with LocalCluster(n_workers=2, **settings) as cluster, Client(cluster, set_as_default=False) as client:
            yield client


@pytest.fixture
def client(threads):
    """The same client as the active one."""
    with threads.as_current():
        yield threads


@pytest.fixture(scope="session")
def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 5)) + 0.2
    y = np.where(X @ rng.standard_normal(5) + rng.standard_normal(240) > 0.0, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 2.0, 240)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Jobs in the background ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
