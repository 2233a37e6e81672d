"""Compiled passes agree with the NumPy steps they stand for to 1e-13 of the absolute terms, whatever the storage."""

from __future__ import annotations

import numpy as np
import pytest
from data.passes import (
    BLOCKS,
    ELEMENTWISE,
    ROWS,
    STORAGES,
    TOL,
    Case,
    D,
    N,
    X,
    agrees,
    in_numpy,
    work_on,
)

from projfree.data import native
from projfree.data.native.arguments import MOST_OUTPUTS
from projfree.data.rows import FormImages, Pass
from projfree.losses import (
    Huber,
    Logistic,
    Softmax,
    Squared,
)
from projfree.objectives.row_steps import SlopeSums, ValueSum


@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_one_output(loss):
    agrees(Case(loss).build(), X)


@pytest.mark.parametrize("storage", STORAGES)
def test_storages(storage):
    agrees(Case(Logistic()).build(), STORAGES[storage])


@pytest.mark.slow  # one kernel after the other is compiled
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_every_loss_on_every_storage(loss, storage):
    agrees(Case(loss).build(), STORAGES[storage])


@pytest.mark.parametrize("k", [1, pytest.param(3, marks=pytest.mark.slow), 5, MOST_OUTPUTS])
@pytest.mark.parametrize("loss", [*ELEMENTWISE, Softmax()], ids=repr)
def test_several_outputs(loss, k):
    if not (loss.coupled and k == 1):
        agrees(Case(loss, k).build(), X)


@pytest.mark.parametrize("storage", ["F", "C single", "F single"])
def test_several_outputs_of_other_layouts(storage):
    agrees(Case(Huber(0.8), 5).build(), STORAGES[storage])


def test_several_outputs_do_not_depend_on_the_layout():
    """A tile that is copied and one that is read where it is give the same bits."""
    found = []
    for storage in ("C", "F"):
        prepared = native.prepare(Case(Huber(0.8), 5).build(), D, ROWS, BLOCKS)
        prepared.dense(STORAGES[storage])(0, BLOCKS)
        found.append(prepared.total())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("k", [0, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercepts", [False, True])
@pytest.mark.parametrize("points", [1, 2, 3])
@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_what_a_pass_may_have(k, weighted, intercepts, points, m):
    for base in (False, True):
        for offsets in (False, True):
            agrees(Case(Huber(0.8), k, weighted, intercepts, points, m, base, offsets).build(), X)


@pytest.mark.parametrize("size", [1e-6, 30.0, 1e4])
def test_softmax_of_any_size(size):
    """Beyond 280 exponentials would leave the range; rows are then shifted by their largest entry."""
    agrees(Case(Softmax(), 5, size=size).build(), X)


@pytest.mark.parametrize("storage", ["C", "F", "CSR"])
@pytest.mark.parametrize(("step", "loss"), [(FormImages, Squared()), (ValueSum, Logistic()), (SlopeSums, Logistic())])
def test_steps_without_adjoint(step, loss, storage):
    pass_ = Case(loss).build(step)
    agrees(pass_, STORAGES[storage])
    sums = in_numpy(pass_, STORAGES[storage])[0]
    prepared = native.prepare(pass_, D, ROWS, BLOCKS)
    work_on(prepared, STORAGES[storage])(0, BLOCKS)
    np.testing.assert_allclose(prepared.total()[0], sums, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize(
    ("step", "loss", "k"),
    [(ValueSum, loss, k) for loss in ELEMENTWISE for k in (0, 5)]
    + [(ValueSum, Huber(0.8), 1), (ValueSum, Softmax(), 5), (FormImages, Squared(), 0), (FormImages, Squared(), 3)]
    + [(SlopeSums, loss, k) for loss in (Logistic(), Huber(0.8)) for k in (0, 3, 20)],
)
def test_folds_over_known_images(step, loss, k, m, weighted):
    pass_ = Case(loss, k, weighted, m=m).build(step)
    images = [np.random.default_rng(q).standard_normal((N, *pass_.outputs)) for q in range(m)]
    _, due = pass_(slice(0, N), *images)
    kept = [None if store is None else store.copy() for store in pass_.keep]
    prepared = native.prepare(pass_, D, ROWS, BLOCKS)
    prepared.fold(images)(0, BLOCKS)
    sums, adjoint = prepared.total()
    assert adjoint is None
    size = np.abs(due)
    if step is SlopeSums:
        size = np.concatenate([np.split(size, 3)[2], *np.split(size, 3)[1:]])
    assert (np.abs(sums - due) <= 2 * TOL * size).all()
    for store, own in zip(pass_.keep, kept, strict=True):
        if store is not None:
            np.testing.assert_allclose(store, own, rtol=0, atol=TOL * np.abs(own).max())


@pytest.mark.parametrize("storage", ["C", "F"])
@pytest.mark.parametrize("k", [0, 5])
def test_chunks_add_up_and_may_begin_within_a_block(k, storage):
    pass_, table = Case(Logistic(), k).build(), STORAGES[storage]
    whole, parts = (native.prepare(pass_, D, ROWS, BLOCKS) for _ in range(2))
    whole.dense(table)(0, BLOCKS)
    for first, last in ((0, 512), (512, 1_536), (1_536, N)):
        chunk = np.array(table[first:last], order=storage)
        parts.dense(chunk, first)(first // ROWS, -(-last // ROWS))
    for one, two in zip(whole.total(), parts.total(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_read_only_data_are_compiled_once():
    pass_ = Case(Logistic()).build()
    agrees(pass_, X)
    (kernel,) = (own for key, own in native.passes._KERNELS.items() if key[:3] == ("c_blocks", "tangent", Logistic))
    known = list(kernel.signatures)
    frozen, y, base = X.copy(), pass_.y.copy(), pass_.base.copy()
    for array in (frozen, y, base):
        array.flags.writeable = False
    agrees(Pass(**{**vars(pass_), "y": y, "base": base}), frozen)
    assert kernel.signatures == known
