"""Masked arrays: an entry that is masked is missing, so it is refused like NaN; a mask that hides nothing is fine."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import (
    Entries,
    Logistic,
    LpBall,
    Objective,
    QuadraticForm,
    Softmax,
    Squared,
    as_data,
    minimize,
)
from projfree.data.sparse import TaskData

X, Y = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 1.0])
SENTENCE = r"`{}` must not have masked entries, got .* at index {}; drop those rows or fill them first"


def masked(array, at):
    out = np.ma.array(array)
    out[at] = np.ma.masked
    return out


def refused(name, at):
    return pytest.raises(ValueError, match=SENTENCE.format(name, at))


@pytest.mark.parametrize(
    ("name", "at", "given"),
    [
        ("X", r"\(1, 0\)", (masked(X, (1, 0)), Y)),
        ("y", "2", (X, masked(Y, 2))),
        ("y", "1", (X, masked(Y.astype(int), 1))),
        ("y", r"\(2, 1\)", (X, masked(X, (2, 1)))),
        ("sample_weight", "0", (X, Y, masked(np.ones(3), 0))),
        ("y", "1", (Entries([0, 1], [0, 1], (2, 2)), masked(Y[:2], 1))),
    ],
    ids=["X", "y", "whole numbers", "outputs", "weight", "entries"],
)
def test_data(name, at, given):
    with refused(name, at):
        as_data(*given)


def test_data_outside_memory(tmp_path):
    np.save(tmp_path / "X.npy", X)
    with refused("y", "2"):
        as_data(tmp_path / "X.npy", masked(Y, 2))
    with refused("sample_weight", "1"):
        as_data(tmp_path / "X.npy", Y, masked(np.ones(3), 1))


def test_places_and_tasks():
    whole = np.array([0, 1, 1])
    with refused("cols", "2"):
        Entries(whole, masked(whole, 2), (2, 2))
    with refused("task", "0"):
        TaskData(X, Y, masked(whole, 0))


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(2)], ids=repr)
def test_targets_of_a_loss(loss):
    with refused("y", "1"):
        loss.targets(masked(np.array([1, 1, 1]), 1))


def test_start_and_forms():
    f = Objective(Squared(), as_data(X, Y))
    with refused("start", "0"):
        minimize(f, LpBall(2, 1.0), start=masked(np.zeros(2), 0))
    with refused("b", "1"):
        QuadraticForm(np.eye(2), masked(np.ones(2), 1))


def test_a_mask_that_hides_nothing():
    plain, other = as_data(X, Y, np.ones(3)), as_data(np.ma.array(X), np.ma.array(Y), np.ma.array(np.ones(3)))
    assert plain.fingerprint() == other.fingerprint()
    assert type(other.X) is type(other.y) is np.ndarray
