"""Short forms of arrays: whatever changes in an array changes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree.algebra.hashing import WORDS, condensed, short_hash


def short(array):
    return short_hash("", *condensed(array))


X = np.random.default_rng(0).standard_normal((700, 60))  # ten blocks and some more


@given(st.integers(0, X.nbytes - 1), st.integers(0, 7))
def test_each_bit_counts(place, bit):
    other = X.copy()
    other.view(np.uint8).reshape(-1)[place] ^= np.uint8(1 << bit)
    assert short(other) != short(X)


@pytest.mark.parametrize("columns", [[0], [3, 4], list(range(60))])
def test_signs_of_columns_count(columns):
    """Where pairs of signs cancelled, a source that flips the signs of components would pass."""
    other = X.copy()
    other[:, columns] *= -1.0
    numbers = [condensed(array)[0] for array in (X, other)]
    assert (numbers[0] != numbers[1]).all()


def test_the_order_of_rows_and_blocks_counts():
    rows = 4 * WORDS // (8 * 60)
    turned = np.concatenate([X[rows:], X[:rows]])
    swapped = X.copy()
    swapped[[0, 1]] = X[[1, 0]]
    blocks = X.reshape(-1)[: 8 * WORDS // 2].reshape(2, -1)
    same = np.concatenate([blocks[::-1].reshape(-1), X.reshape(-1)[8 * WORDS // 2 :]])
    assert len({short(array) for array in (X, turned, swapped, same)}) == 4


def test_it_is_the_same_everywhere():
    """For it is stored with checkpoints; single precision, columns first, short and empty arrays are fine."""
    assert short(np.arange(20_000, dtype=np.uint32)) == "28652bd34c97b6a5"
    assert short(np.asfortranarray(X)) == short(X)
    assert len({short(np.zeros(n, dtype=np.float32)) for n in (0, 1, WORDS, WORDS + 1)}) == 4
