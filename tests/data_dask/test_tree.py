"""Sums over partitions form one tree, whoever adds which of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from projfree.data.dask.placing import Placement
from projfree.data.dask.tree import added, put, total


def said(a, b):
    return f"({a}+{b})"


def roots(places, count):
    """The roots that are left when leaves are added in some order."""
    nodes = {}
    for k in places:
        put(nodes, (0, k), str(k), count, said)
    return nodes


@given(
    count=st.integers(1, 40),
    owners=st.lists(st.integers(0, 4), min_size=40, max_size=40),
    order=st.permutations(range(40)),
)
def test_every_division_of_work_gives_the_same_tree(count, owners, order):
    alone = total(roots(range(count), count))
    parts = {}
    for worker in range(5):
        for node, value in roots([k for k in order if k < count and owners[k] == worker], count).items():
            put(parts, node, value, count, said)
    assert total(parts) == alone
    numbers = [int(k) for k in alone.replace("(", " ").replace(")", " ").replace("+", " ").split()]
    assert numbers == list(range(count))


@given(count=st.integers(1, 200), first=st.integers(0, 199), length=st.integers(1, 200))
def test_neighbours_come_back_as_few_roots(count, first, length):
    own = range(min(first, count - 1), min(first + length, count))
    assert len(roots(own, count)) <= 2 * np.ceil(np.log2(len(own) + 1))


def test_nothing_is_added_as_nothing():
    assert added(None, (np.ones(2), None))[0].tolist() == [1.0, 1.0]
    assert added((np.ones(2), None), (np.ones(2), None))[1] is None


@given(workers=st.integers(1, 6), joining=st.integers(0, 4), count=st.integers(1, 60))
def test_workers_that_join_get_a_share(workers, joining, count):
    placement = Placement()
    for place in range(count):
        placement.put(place, f"w{place % workers}")
    everybody = sorted({f"w{place % workers}" for place in range(count)} | {f"new{k}" for k in range(joining)})
    moves = placement.moves(everybody)
    for place, address in moves.items():
        placement.put(place, address)
    sizes = [len(own) for own in placement.groups(range(count)).values()]
    assert sum(sizes) == count
    assert max(sizes) <= max(-(-count // workers), 1)
    if joining and count >= len(everybody):
        assert placement.workers() == len(everybody)
    assert not placement.moves(everybody) or count < len(everybody)
