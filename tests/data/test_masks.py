"""Masked arrays: an entry that is masked is missing, so it is refused like NaN; a mask that hides nothing is fine."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import (
    Entries,
    Logistic,
    Softmax,
    Squared,
    as_data,
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
