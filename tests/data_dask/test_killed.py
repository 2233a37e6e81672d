"""Workers of their own processes, killed in the middle of runs: each run ends with the answer of an undisturbed one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings

import dask
import dask.array as da
import numpy as np
import pytest

from projfree import (
    Checkpoint,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    as_data,
    minimize,
)
from projfree.data.base import RowsLostError

BALL = LpBall(1.5, radius=2.0)
ITERATIONS = 12
#: Seconds that a run may take longer than an undisturbed one for each kill.
PATIENCE = 30.0

SETTINGS = {
    "distributed.deploy.lost-worker-timeout": "1 hour",  # else a local cluster gives up on workers that start slowly
    "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    "distributed.logging": {"distributed": "critical"},
}


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with dask.config.set(SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster:
            yield cluster


@pytest.fixture
def processes(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        yield client


def made(client, chunks=8):
    rng = da.random.RandomState(3)  # on the workers
    X = rng.normal(size=(4000, 6), chunks=(4000 // chunks, 6))
    y = da.where(X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=4000, chunks=4000 // chunks) > 0.0, 1.0, -1.0)
    return as_data(X, y, client=client)


def run(data, callbacks=(), solver=None, *, intercept=True, **settings):
    f = Objective(Logistic(), data, fit_intercept=intercept)
    return minimize(f, BALL, solver or FrankWolfe(), tol=0.0, max_iter=ITERATIONS, callbacks=callbacks, **settings)


def pids(client):
    try:
        return list(client.run(os.getpid).values())
    except OSError:  # one of them is just dying
        return []


def kill_one(client, rng, killed=None):
    """Kill a worker, as soon as there is one, and note which."""
    deadline = time.monotonic() + PATIENCE
    while not (found := pids(client)) and time.monotonic() < deadline:
        time.sleep(0.05)
    pid = found[int(rng.integers(len(found)))]
    os.kill(pid, signal.SIGKILL)
    if killed is not None:
        killed.append(pid)


def test_a_killed_worker_changes_no_bit(processes):
    data, rng = made(processes), np.random.default_rng(0)
    undisturbed = run(data, solver=PrimalAveraging(), intercept=False)
    begun = time.monotonic()

    def kill(at):
        return kill_one(processes, rng) if at.iteration == 5 else None

    disturbed = run(data, kill, PrimalAveraging(), intercept=False)
    assert time.monotonic() - begun < PATIENCE
    np.testing.assert_array_equal(disturbed.w, undisturbed.w)
    assert (disturbed.value, disturbed.bound) == (undisturbed.value, undisturbed.bound)


@pytest.mark.slow
def test_a_run_with_ten_kills(processes):
    data, rng, killed = made(processes), np.random.default_rng(2), []
    begun = time.monotonic()
    undisturbed = run(data)
    took = time.monotonic() - begun

    def kill(at):
        if len(killed) < 10:
            kill_one(processes, rng, killed)

    begun = time.monotonic()
    disturbed = run(data, kill)
    assert time.monotonic() - begun < 2.0 * took + 10 * PATIENCE
    assert disturbed.status.name == "MAX_ITER"
    assert len(set(killed)) == 10
    np.testing.assert_array_equal(disturbed.w, undisturbed.w)


@pytest.mark.slow
def test_all_workers_killed_and_new_ones_joined(processes):
    data = made(processes)
    undisturbed = run(data)

    def kill(at):
        if at.iteration == 4:
            for pid in pids(processes):
                os.kill(pid, signal.SIGKILL)

    np.testing.assert_array_equal(run(data, kill).w, undisturbed.w)


def rows_of(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1000, 6))
    return X, np.where(X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(1000) > 0.0, "yes", "no")


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_given_up(processes):
    def fatal(block):  # local, so that it travels by value
        os._exit(1)

    X, y = np.ones((40, 3)), np.ones(40)
    with pytest.raises(RowsLostError, match=r"start workers with more memory or cut the data into smaller partitions"):
        as_data([dask.delayed(fatal)(X)], [dask.delayed(y)], client=processes)


KILLED_CLIENT = """
import os, sys
from distributed import Client
import dask.array as da
from projfree import Checkpoint, Logistic, LpBall, Objective, PrimalAveraging, as_data, minimize
with Client(sys.argv[1]) as client:
    rng = da.random.RandomState(3)
    X = rng.normal(size=(4000, 6), chunks=(500, 6))
    y = da.where(X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=4000, chunks=500) > 0.0, 1.0, -1.0)
    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    die = lambda run: os._exit(9) if run.iteration == 8 else None
    callbacks = [Checkpoint(sys.argv[2], 3), die]
    minimize(f, LpBall(1.5, radius=2.0), PrimalAveraging(), tol=0.0, max_iter=12, callbacks=callbacks)
"""


@pytest.mark.slow
def test_a_killed_client_is_resumed_by_another(processes, tmp_path):
    address, folder = processes.scheduler.address, str(tmp_path / "run")
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", KILLED_CLIENT, address, folder], check=False)
    assert ended.returncode == 9
    data = made(processes)
    undisturbed = run(data, [Checkpoint(tmp_path / "other", 3)], PrimalAveraging())
    resumed = run(data, [Checkpoint(folder, 3)], PrimalAveraging(), state=folder)
    assert resumed.n_iter == ITERATIONS
    np.testing.assert_array_equal(resumed.w, undisturbed.w)
