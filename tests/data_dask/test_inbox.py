"""What a round says to the scheduler: one graph for all workers, and short answers that nobody has to fetch."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from projfree import Logistic, LpBall, Objective, PrimalAveraging, as_data, minimize
from projfree.data.dask import inbox


def run(client, table, **settings):
    X, y, _ = table
    f = Objective(Logistic(), as_data(da.from_array(X, chunks=(30, 5)), y, client=client, **settings))
    return minimize(f, LpBall(1.5, radius=2.0), PrimalAveraging(), tol=0.0, max_iter=4)


@pytest.fixture
def gathered(monkeypatch):
    """The numbers of results that were fetched at a time."""
    from distributed import Client

    found, before = [], Client.gather

    def noting(self, futures, *args, **settings):
        found.append(len(futures))
        return before(self, futures, *args, **settings)

    monkeypatch.setattr(Client, "gather", noting)
    return found


def test_short_answers_come_by_themselves(threads, table, gathered):
    run(threads, table)
    assert gathered == [8]  # what there is to know about the partitions
    assert not inbox.inbox_of(threads)._answers


def test_answers_that_are_long_or_do_not_come_are_fetched(threads, table, gathered, monkeypatch):
    expected = run(threads, table)
    gathered.clear()
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "SHORT", 100)
        long = run(threads, table)
    assert len(gathered) > 5
    gathered.clear()
    monkeypatch.setattr(inbox.Inbox, "_take", lambda self, event: None)
    monkeypatch.setattr(inbox, "_INBOXES", type(inbox._INBOXES)())
    lost = run(threads, table)
    assert len(gathered) > 5
    for other in (long, lost):
        np.testing.assert_array_equal(other.w, expected.w)
        assert (other.value, other.bound) == (expected.value, expected.bound)


def graphs(client):
    """How many graphs the scheduler has been sent, and their tasks."""
    events = [event for _, event in client.get_events(client.id) if event.get("action") == "update-graph"]
    return len(events), sum(event["metrics"]["tasks"] for event in events)


def test_a_round_is_one_graph_for_all_workers(threads, table):
    X, y, _ = table
    before = graphs(threads)
    data = as_data(da.from_array(X, chunks=(30, 5)), y, client=threads)
    loaded = graphs(threads)
    assert loaded[0] - before[0] == 2  # one makes the partitions, one adopts them
    f = Objective(Logistic(), data)
    f.evaluate(f.point(np.ones(5)))
    after = graphs(threads)
    assert after[0] - loaded[0] == 1
    assert after[1] - loaded[1] == 2
