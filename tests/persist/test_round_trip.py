"""What goes in comes out, bit for bit and of the same type."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from projfree import persist

ARRAYS = [
    np.array(1.5),
    np.array(True),
    np.zeros((0, 3), dtype=np.float32),
    np.empty((), dtype=np.int8),
    np.arange(6, dtype=np.int16).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(12.0)[::-2],
    np.array([np.nan, -0.0, np.inf, -np.inf, 5e-324]),
    np.array([2**64 - 1], dtype=np.uint64),
    np.array([True, False]),
    np.array([1 + 2j], dtype=np.complex64),
    np.array(["a", "ünï"]),
    np.array([1, 2], dtype=">i4"),
]


def same(a: object, b: object) -> bool:
    """Equal in type, dtype, order and every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return a.hex() == b.hex()
    return a == b


def round_trip(path, tree):
    persist.save(path, tree, kind="test")
    return persist.load(path, kind="test")


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}-{a.shape}")
def test_arrays(tmp_path, array):
    assert same(round_trip(tmp_path, {"a": array}), {"a": array})


SCALARS = [
    None,
    True,
    False,
    0,
    -1,
    2**200,
    0.0,
    -0.0,
    0.1,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
    "",
    "ü\ud800\n",
    "$float",
]


def test_scalars(tmp_path):
    assert same(round_trip(tmp_path, SCALARS), SCALARS)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    hnp.arrays(st.sampled_from([np.float64, np.float32, np.int64, np.bool_]), hnp.array_shapes(min_dims=0, min_side=0)),
)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("$ab", max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25)
@given(tree=trees)
def test_any_tree(tmp_path_factory, tree):
    assert same(round_trip(tmp_path_factory.mktemp("tree"), tree), tree)
