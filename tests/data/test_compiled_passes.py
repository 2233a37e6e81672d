"""Compiled passes agree with the NumPy steps they stand for to 1e-13 of the absolute terms, whatever the storage."""

from __future__ import annotations

import numpy as np
import pytest
from data.passes import (
    BLOCKS,
    ELEMENTWISE,
    ROWS,
    STORAGES,
    Case,
    N,
    X,
    agrees,
    prepare,
)

from projfree.losses import (
    Huber,
    Logistic,
    Softmax,
)


@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_one_output(loss):
    agrees(Case(loss).build(), X)


@pytest.mark.parametrize("storage", STORAGES)
def test_storages(storage):
    agrees(Case(Logistic()).build(), STORAGES[storage])
    if not storage.startswith("CSR"):
        agrees(Case(Logistic(), 5).build(), STORAGES[storage])


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_every_loss_on_every_storage(loss, storage):
    agrees(Case(loss).build(), STORAGES[storage])


@pytest.mark.parametrize("k", [1, pytest.param(3, marks=pytest.mark.slow), 5, 30])
@pytest.mark.parametrize("loss", [*ELEMENTWISE, Softmax()], ids=repr)
def test_several_outputs(loss, k):
    if not (loss.coupled and k == 1):
        agrees(Case(loss, k).build(), X)


@pytest.mark.parametrize("k", [0, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercepts", [False, True])
@pytest.mark.parametrize("points", [1, 2, 3])
@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_what_a_pass_may_have(k, weighted, intercepts, points, m):
    for known in (False, True):
        for offsets in (False, True):
            agrees(Case(Huber(0.8), k, weighted, intercepts, points, m, known, offsets).build(), X)


@pytest.mark.parametrize("size", [1e-6, 30.0, 1e4])
def test_softmax_of_any_size(size):
    """Beyond 280 exponentials would leave the range; rows are then shifted by their largest entry."""
    agrees(Case(Softmax(), 5, size=size).build(), X)


@pytest.mark.parametrize(("k", "storage"), [(0, "C"), (5, "C"), (0, "F"), (5, "F")])
def test_chunks_add_up_and_may_begin_within_a_block(k, storage):
    pass_, table = Case(Logistic(), k).build(), STORAGES[storage]
    whole, parts = (prepare(pass_) for _ in range(2))
    whole.over(table, 0)(0, BLOCKS)
    for first, last in ((0, 512), (512, 1_536), (1_536, N)):
        chunk = np.array(table[first:last], order=storage)
        parts.over(chunk, first)(first // ROWS, -(-last // ROWS))
    for one, two in zip(whole.total(), parts.total(), strict=True):
        np.testing.assert_array_equal(one, two)
