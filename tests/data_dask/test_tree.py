"""Sums over partitions form one tree, whoever adds which of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from projfree.data.dask.dask_data import add_results
from projfree.data.dask.rounds import put


def said(a, b):
    return f"({a}+{b})"


def total(nodes):
    (root,) = nodes.values()
    return root


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
    assert add_results((np.ones(2), None), (np.ones(2), None))[1] is None
    nodes = {}
    for number, value in enumerate([None, "b", None, None, "e"]):  # partitions without rows
        put(nodes, (0, number), value, 5, said)
    assert total(nodes) == "(b+e)"
