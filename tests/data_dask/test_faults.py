"""What is lost on the way is made again, to the same bits; what cannot be is said in a sentence."""

from __future__ import annotations

import _thread
import pickle
import threading
import time
import warnings
from dataclasses import dataclass, replace

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from projfree import (
    Checkpoint,
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    as_data,
    minimize,
)
from projfree.algebra import Point
from projfree.data.base import RowsLostError
from projfree.data.dask.rounds import ClusterRounds
from projfree.data.rows import Rows, Step
from projfree.data.sources import ChangedError

BALL = LpBall(1.5, radius=2.0)
#: Of clusters in this process.
SETTINGS = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1, "silence_logs": 50}


def made(table, chunk=40, **settings):
    X, y, _ = table
    return as_data(da.from_array(X, chunks=(chunk, X.shape[1])), y, **settings)


def run(data, solver, callbacks=(), **settings):
    f = Objective(Logistic(), data, fit_intercept=True)
    return minimize(f, BALL, solver, tol=0.0, callbacks=callbacks, **{"max_iter": 5, **settings})


def test_the_number_of_workers_changes_no_bit(client, table):
    from distributed import Client, LocalCluster

    two = run(made(table), FrankWolfe())
    with (
        dask.config.set(scheduler="synchronous"),
        client.as_current(),
        LocalCluster(n_workers=1, **{**SETTINGS, "threads_per_worker": 2}) as cluster,
        Client(cluster) as other,
    ):
        data = made(table, client=other)
        one = run(data, FrankWolfe())
        cluster.scale(3)
        other.wait_for_workers(3)
        three = run(data, FrankWolfe())
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(three.w, two.w)


def test_without_workers_a_run_raises_and_goes_on_later_from_its_checkpoint(table, tmp_path):
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(n_workers=1, **SETTINGS) as cluster, Client(cluster, set_as_default=False) as client:
            data = made(table, client=client, patience=0.2)
            solver, whole = PrimalAveraging(), run(made(table, client=client), PrimalAveraging(), max_iter=8)

            def leave(at):
                if at.iteration == 4:
                    cluster.scale(0)
                    while client.nthreads():
                        time.sleep(0.02)

            with pytest.raises(RowsLostError, match="start some, and go on from the checkpoint"):
                run(data, solver, [leave, Checkpoint(tmp_path / "run", 3)], max_iter=8)
            cluster.scale(1)
            client.wait_for_workers(1)
            resumed = run(made(table, client=client), None, max_iter=8, state=tmp_path / "run")
    assert resumed.n_iter == 8
    np.testing.assert_allclose(resumed.w, whole.w, rtol=1e-10, atol=1e-12)


def test_bad_partitions_are_named(table):
    X, y, weight = (np.array(part) for part in table)
    holes = X.copy()
    holes[57, 2], weight[81] = np.nan, -1.0
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(
            ValueError, match=r"partition 1 of the data: `X` must be finite, got nan at index \(17, 2\)"
        ):
            made((holes, y, None))
        with pytest.raises(ValueError, match=r"partition 2 of .*: `sample_weight` must be non-negative .*, got -1"):
            as_data(da.from_array(X, chunks=(40, 5)), y, weight)
        wide = [dask.delayed(X[:100]), dask.delayed(X[100:, :4])]
        with pytest.raises(
            ValueError, match=r"partition 1 of the data .* must have the same columns as partition 0, 5"
        ):
            as_data(wide, [dask.delayed(y[:100]), dask.delayed(y[100:])])
        single = [dask.delayed(X[:100]), dask.delayed(X[100:].astype(np.float32))]
        with pytest.raises(ValueError, match=r"must have the same dtype as partition 0, float64, got float32"):
            as_data(single, [dask.delayed(y[:100]), dask.delayed(y[100:])])
        wrong = y.copy()
        wrong[130] = 3.0
        with pytest.raises(ValueError, match=r"partition 3 of the data: `y` must hold the labels -1 and \+1, got 3.0"):
            Objective(Logistic(), as_data(da.from_array(X, chunks=(40, 5)), wrong))


def test_odd_labels_are_named(table):
    X, y = table[0], np.where(table[1] > 0.0, "yes", "no").astype(object)
    blocks = [dask.delayed(X[:100]), dask.delayed(X[100:])]
    holes = y.copy()
    holes[130] = None
    mixed = [dask.delayed(y[:100]), dask.delayed(np.arange(140) % 2)]
    with dask.config.set(scheduler="synchronous"):
        text = r"partition 1 of the data: `y` must hold labels of one kind: '<' not supported between instances of"
        with pytest.raises(ValueError, match=text):
            as_data(blocks, [dask.delayed(holes[:100]), dask.delayed(holes[100:])])
        with pytest.raises(ValueError, match=r"must have the same kind of targets as partition 0, labels, got numbers"):
            as_data(blocks, mixed)


def test_a_closed_client_is_named_and_data_do_not_travel(client, table):
    from distributed import Client

    with Client(client.scheduler.address, set_as_default=False) as other:
        data = made(table, client=other)
        with pytest.raises(TypeError, match="Dask data cannot be pickled, because their rows belong to a client"):
            pickle.dumps(data)
    with pytest.raises(RowsLostError, match=r"the client is closed or has lost its scheduler, .* connect anew"):
        Objective(Logistic(), data).evaluate(Point(np.zeros(5)))
    with pytest.raises(
        TypeError, match=r"`client` must be a synchronous `distributed.Client`, .* got str; use `Client\(address\)`"
    ):
        made(table, client="tcp://nowhere:1")
    with pytest.raises(RowsLostError, match=r"the client is closed or has lost its scheduler, .* connect anew"):
        made(table, client=other)


def test_errors_arrive_from_workers(client, table):
    holes = table[0].copy()
    holes[57, 2] = np.inf
    with pytest.raises(ValueError, match=r"partition 1 of the data: `X` must be finite, got inf at index \(17, 2\)"):
        made((holes, table[1], None))


def test_a_source_that_changes_is_refused(table):
    X, y, _ = table
    calls = []

    def moving():
        calls.append(1)
        return X + (1e-9 if len(calls) > 2 else 0.0)

    with dask.config.set(scheduler="synchronous"):
        data = as_data([dask.delayed(moving)()], [dask.delayed(y)], memory=1)
        with pytest.raises(ChangedError, match="partition 0 of the data was computed again to other numbers"):
            run(data, PrimalAveraging())


def test_a_recomputed_partition_is_checked_on_a_cluster(client, table):
    data = made(table)
    data.rounds.facts[2] = replace(data.rounds.facts[2], checksum="another")
    with pytest.raises(ChangedError, match="partition 2 of the data"):
        run(data, PrimalAveraging())


@dataclass(frozen=True)
class Slow(Step):
    """A step that takes its time."""

    def block(self, rows: Rows, *images):
        time.sleep(0.4)
        return None, np.zeros(1)


def tasks(client):
    return client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])


def test_an_interrupt_leaves_no_task_behind(client, table, interruptible):
    data = made(table)
    f = Objective(Logistic(), data)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f.workspace.fold(Slow(), (f.point(np.zeros(5)),))
    deadline = time.monotonic() + 5.0
    while any("projfree-fold" in key for key in tasks(client)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [key for key in tasks(client) if "projfree-fold" in key]
    assert run(data, PrimalAveraging()).n_iter == 5


def slowly(block):
    time.sleep(0.5)
    return block


@pytest.fixture
def on_cluster(monkeypatch):
    """The names of the jobs that workers have done."""
    names, before = [], ClusterRounds.run
    monkeypatch.setattr(ClusterRounds, "run", lambda self, name, *job: names.append(name) or before(self, name, *job))
    return names


MODELS = [
    ConstrainedClassifier(radius=1.0),
    ConstrainedRegressor(radius=0.3),
    ConstrainedRegressorCV(radii=[0.1, 0.3], cv=2),
    pytest.param(ConstrainedClassifierCV(radii=[0.1, 1.0], cv=2), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_estimators_take_a_client(threads, table, on_cluster, model):
    """A client that is not the active one; what is fitted does not hold it."""
    X, y = da.from_array(table[0], chunks=(120, 5)), table[1]
    with dask.config.set(scheduler="synchronous"):
        alone = clone(model).fit(X, y)
        assert not on_cluster
    there = clone(model).fit(X, y, client=threads)
    assert on_cluster
    np.testing.assert_array_equal(there.coef_, alone.coef_)
    on_cluster.clear()
    assert there.score(X, y, client=threads) == pytest.approx(alone.score(table[0], y))
    assert on_cluster
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(there)).coef_, alone.coef_)
