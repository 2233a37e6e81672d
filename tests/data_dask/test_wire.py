"""What travels in a round: O(d) numbers for each sum that comes back, and nothing that grows with the rows."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest

from projfree import CorrectivePrimalAveraging, Logistic, LpBall, Objective, as_data, minimize
from projfree.data.dask.rounds import ClusterRounds

#: Messages of Dask about a task that have nothing to do with what it carries, all hops together, for each worker.
MESSAGES = 40_000
WORKERS, PARTITIONS = 2, 8


@pytest.fixture(scope="module")
def wire():
    """A client whose cluster speaks TCP with it and between workers, in one process, so that all bytes are seen."""
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {
            "processes": False,
            "dashboard_address": ":0",
            "threads_per_worker": 1,
            "protocol": "tcp://",
            "silence_logs": 50,
        }
        with LocalCluster(n_workers=WORKERS, **settings) as cluster, Client(cluster, set_as_default=False) as client:
            yield client


@pytest.fixture
def rounds(monkeypatch):
    """The bytes on the wire of each round, with its name."""
    from distributed.comm.tcp import TCP

    sent, found, write, run = [0], [], TCP.write, ClusterRounds.run

    async def counting(self, *args, **settings):
        nbytes = await write(self, *args, **settings)
        sent[0] += nbytes
        return nbytes

    def noting(self, name, *job):
        before = sent[0]
        answer = run(self, name, *job)
        found.append((name, sent[0] - before))
        return answer

    monkeypatch.setattr(TCP, "write", counting)
    monkeypatch.setattr(ClusterRounds, "run", noting)
    return found


def fit(wire, n, d, solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    data = as_data(da.from_array(X, chunks=(n // PARTITIONS, d)), y, client=wire)
    f = Objective(Logistic(), data, fit_intercept=True)
    return minimize(f, LpBall(1.5, radius=2.0), solver, max_iter=2, tol=0.0)


def test_bytes_do_not_grow_with_the_rows(wire, rounds):
    fit(wire, 800, 5, CorrectivePrimalAveraging())
    few = sorted(nbytes for _, nbytes in rounds)
    rounds.clear()
    fit(wire, 80_000, 5, CorrectivePrimalAveraging())
    many = sorted(nbytes for _, nbytes in rounds)
    assert np.median(many) <= 1.3 * np.median(few)
    assert max(many) <= WORKERS * MESSAGES  # an image of the rows would take 640 kB
