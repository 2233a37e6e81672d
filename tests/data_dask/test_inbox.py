"""What a round says to the scheduler: one graph for all workers, and short answers that nobody has to fetch."""

from __future__ import annotations

from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest

from projfree import Logistic, LpBall, Objective, PrimalAveraging, as_data, minimize
from projfree.data.dask import inbox
from projfree.data.dask.cluster import ClusterRounds
from projfree.data.dask.made import noted


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
    assert not gathered
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
    assert loaded[0] - before[0] == 2  # one makes the partitions, one asks each worker for what was made there
    f = Objective(Logistic(), data)
    f.evaluate(f.point(np.ones(5)))
    after = graphs(threads)
    assert after[0] - loaded[0] == 1
    assert after[1] - loaded[1] == 2


def test_what_was_not_found_where_it_was_made_is_adopted_by_itself(threads, table, monkeypatch):
    """Partitions without rows, and one that has gone to another worker or to the disk."""
    X, y, _ = table
    cuts = [0, 0, 80, 100, 240]
    blocks = [[dask.delayed(part)[i:j] for i, j in pairwise(cuts)] for part in (X + 1.0, y)]
    alone, adopting = [], ClusterRounds._adopting
    monkeypatch.setattr(ClusterRounds, "_adopting", lambda self, k: alone.append(k) or adopting(self, k))
    monkeypatch.setattr("projfree.data.dask.making.noted", lambda rows: rows if rows.facts.number == 2 else noted(rows))
    data = as_data(*blocks, client=threads)
    assert alone == [0, 2]
    assert [one.n for one in data.facts] == [80, 20, 140]
    f, g = Objective(Logistic(), data), Objective(Logistic(), as_data(X + 1.0, y))
    ours, theirs = (h.evaluate(h.point(np.ones(5))).slope.gradient for h in (f, g))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
