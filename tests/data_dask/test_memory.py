"""Workers whose memory is full: Dask pauses them, and a run ends with a sentence or goes on elsewhere."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import dask.array as da
import numpy as np
import pytest

from projfree import Checkpoint, Logistic, LpBall, Objective, PrimalAveraging, Status, as_data, minimize
from projfree.data.base import RowsLostError
from projfree.data.dask.calling import RETRIES, Call, Caller, Waiting
from projfree.data.dask.cluster import ClusterRounds

SETTINGS = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1, "silence_logs": False}
PAUSED = r"nothing went on at .* for 1 seconds \(`patience`\), because 2 of its 2 workers are paused"


@pytest.fixture
def two() -> Iterator[object]:
    """A client of two workers in this process, which nobody but the tests pauses."""
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            LocalCluster(n_workers=2, memory_limit=0, **SETTINGS) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client


def turn(client, status, **which):
    """Have workers paused, or running again."""
    from distributed import Status as State

    def own(dask_worker):
        dask_worker.status = State[status]

    client.run(own, **which)


def made(table, client, patience=1.0):
    X, y, _ = table
    return as_data(da.from_array(X, chunks=(40, 5)), y, client=client, patience=patience)


def run(data, callbacks=(), **settings):
    f = Objective(Logistic(), data)
    return minimize(f, LpBall(1.5, radius=2.0), PrimalAveraging(), tol=0.0, max_iter=6, callbacks=callbacks, **settings)


def test_a_run_on_paused_workers_ends_and_goes_on_later(two, table, tmp_path):
    data = made(table, two)
    whole = run(data)

    def pause(at):
        if at.iteration == 3:
            turn(two, "paused")

    short = run(data, [pause, Checkpoint(tmp_path / "run", 100)])
    assert (short.status, short.n_iter) == (Status.ROWS_LOST, 3)
    with pytest.raises(RowsLostError, match=PAUSED):
        data.mean_row()
    turn(two, "running")
    resumed = run(data, state=tmp_path / "run")
    assert resumed.n_iter == 6
    np.testing.assert_allclose(resumed.w, whole.w, rtol=1e-10, atol=1e-12)


def test_rows_are_not_waited_for_for_ever_where_no_worker_makes_them(two, table):
    turn(two, "paused")
    with pytest.raises(RowsLostError, match=PAUSED):
        made(table, two)


def occupy():
    """Take the only thread of a worker, which is paused before its next task begins."""
    from distributed import Status as State
    from distributed import get_worker

    worker = get_worker()
    time.sleep(0.5)
    worker.loop.add_callback(setattr, worker, "status", State.paused)
    time.sleep(0.3)


def test_what_waits_on_a_paused_worker_is_called_elsewhere(two, table):
    """It was sent there while another task ran, and Dask leaves it there."""
    data = made(table, two, patience=8.0)
    (address,) = data.rounds._placement.groups([0])
    expected = made(table, two).mean_row()
    other = two.submit(occupy, workers=[address], pure=False)
    np.testing.assert_array_equal(data.mean_row(), expected)
    other.result(timeout=20.0)


def test_tasks_that_kill_their_workers_again_and_again_are_given_up(threads):
    waiting = Waiting(Caller(threads, 1.0), "projfree-fold", len, [Call(tuple)])

    class KilledWorker(Exception):  # noqa: N818 - as Dask calls it
        pass

    class Dead:
        status, key = "error", "projfree-fold-1"

        def exception(self, timeout):
            return KilledWorker()

    waiting.futures[0], waiting.deaths[0] = Dead(), RETRIES
    with pytest.raises(RowsLostError, match=r"Dask has given up 6 times on task 'projfree-fold-1', because"):
        waiting._refuse_errors()


@pytest.mark.parametrize(("limit", "warned"), [(9_000, True), (19_200, False), (0, False)])
def test_rows_that_do_not_fit_into_memory_are_warned_about(client, table, monkeypatch, limit, warned):
    """240 rows of six numbers are 11.5 kB, and two workers keep 0.6 times their limits."""
    monkeypatch.setattr(ClusterRounds, "limits", lambda self: {"one": limit, "two": limit})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made(table, client)
    texts = [str(one.message) for one in seen if "every round reads from the disk" in str(one.message)]
    assert len(texts) == warned
