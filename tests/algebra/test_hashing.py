"""Short hashes of arrays: whatever changes in an array changes them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from projfree.algebra.hashing import short_hash

X = np.random.default_rng(0).standard_normal((70, 6))


@given(st.integers(0, X.nbytes - 1), st.integers(0, 7))
def test_each_bit_counts(place, bit):
    other = X.copy()
    other.view(np.uint8).reshape(-1)[place] ^= np.uint8(1 << bit)
    assert short_hash("", other) != short_hash("", X)


def test_it_is_the_same_everywhere():
    """For it is stored with checkpoints; single precision, columns first and short arrays are fine."""
    assert short_hash("", np.arange(20_000, dtype=np.uint32)) == "bc995f75a4732ad8"
    assert short_hash("", np.asfortranarray(X)) == short_hash("", X)
    assert len({short_hash("", np.zeros(n, dtype=np.float32)) for n in (0, 1, 8192, 8193)}) == 4
    assert short_hash("a", X) != short_hash("b", X)
    assert short_hash("", None, absent=b"-") != short_hash("", None)
