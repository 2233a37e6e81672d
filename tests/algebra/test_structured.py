"""Matrices that are never formed agree with the dense ones they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree.algebra import (
    LowRank,
    OnPattern,
    Pattern,
    Structured,
    inner,
    pack,
    size,
    square,
    unpack,
)

SHAPE = (7, 5)


def patterned(rng, count=12, pattern=None):
    if pattern is None:
        flat = np.sort(rng.choice(35, count, replace=False))
        pattern = Pattern.of(flat // 5, flat % 5, SHAPE)[0]
    return OnPattern(pattern, rng.standard_normal(pattern.count))


def low(rng, rank=2):
    return LowRank.of(rng.standard_normal((7, rank)), rng.standard_normal((5, rank)))


def every_kind(rng):
    on = patterned(rng)
    return [low(rng), on, low(rng) + on, LowRank(SHAPE, ()), low(rng, 1) - 2.0 * low(rng, 3)]


@given(st.integers(0, 2**32 - 1))
def test_operations_agree_with_dense_ones(seed):
    rng = np.random.default_rng(seed)
    block, other = rng.standard_normal((5, 3)), rng.standard_normal((7, 2))
    rows, cols = rng.integers(0, 7, 9), rng.integers(0, 5, 9)
    d, e = rng.uniform(0.5, 2.0, 7), rng.uniform(0.5, 2.0, 5)
    for w in every_kind(rng):
        dense = w.toarray()
        close = {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(w.times(block), dense @ block, **close)
        np.testing.assert_allclose(w.transposed_times(other), dense.T @ other, **close)
        np.testing.assert_allclose(w.of_pairs(rows, cols), dense[rows, cols], **close)
        np.testing.assert_allclose(w.slab(2, 5), dense[2:5], **close)
        np.testing.assert_allclose(w.scaled(d, e).toarray(), d[:, None] * dense * e, **close)
        np.testing.assert_allclose((-w / 4.0).toarray(), -dense / 4.0, **close)
        np.testing.assert_allclose(w + dense, 2.0 * dense, **close)
        np.testing.assert_allclose(dense - w, 0.0 * dense, **close)
        assert size(w) == pytest.approx(np.linalg.norm(dense), abs=1e-7)
        assert square(w) == pytest.approx(np.sum(dense**2), abs=1e-7)
        assert w.any() == dense.any()
        for v in every_kind(rng):
            np.testing.assert_allclose((0.5 * w + 2.0 * v).toarray(), 0.5 * dense + 2.0 * v.toarray(), **close)
            assert inner(w, v) == pytest.approx(np.sum(dense * v.toarray()), abs=1e-10)
            assert inner(w, v.toarray()) == pytest.approx(inner(w.toarray(), v), abs=1e-10)


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 0.9))
def test_what_compression_cuts_is_bounded_and_no_norm_grows(seed, cut):
    rng = np.random.default_rng(seed)
    w = LowRank.of(rng.standard_normal((7, 5)) * np.logspace(0, -4, 5), rng.standard_normal((5, 5)))
    short = w.compressed(cut)
    away = np.linalg.norm(short.toarray() - w.toarray())
    assert away <= short.cut <= cut * size(w) + 1e-12 * size(w)
    kept, all_of_them = short.singular_values(), w.singular_values()
    assert (kept <= all_of_them[: len(kept)] + 1e-14 * all_of_them[0]).all()  # up to the rounding of the largest
    assert (3.0 * short).cut == pytest.approx(3.0 * short.cut)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.sampled_from([1e-3, 1.0, 1e6]))
def test_what_memory_cuts_is_bounded_and_no_norm_grows(seed, columns, scale):
    rng = np.random.default_rng(seed)
    # Terms of very unequal size, among them one twice and one almost in the span of another.
    first = LowRank.of(scale * rng.standard_normal((9, 4)), rng.standard_normal((8, 4)))
    second = LowRank.of(*(f + 1e-9 * rng.standard_normal(f.shape) for f in first.factors()))
    w = 0.5 * first + 0.3 * first + 0.2 * second + 1e-7 * LowRank.of(np.eye(9)[:, :5], np.eye(8)[:, :5])
    short = w.compressed(0.0, columns)
    sigma, ours = np.linalg.svd(w.toarray())[1], np.linalg.svd(short.toarray())[1]
    distance = np.linalg.norm(w.toarray() - short.toarray())
    assert short.rank <= columns
    assert np.linalg.norm(sigma[columns:]) * (1 - 1e-6) <= distance + 1e-5 * sigma[0]
    assert distance <= short.cut
    assert short.cut <= np.linalg.norm(sigma[columns:]) + 2e-5 * sigma[0]
    for p in (1.0, 1.2, 2.0, np.inf):
        assert np.linalg.norm(ours, p) <= np.linalg.norm(sigma, p)


def test_repeated_places():
    rows, cols = np.array([2, 0, 2, 2]), np.array([1, 0, 1, 3])
    pattern, order, place = Pattern.of(rows, cols, (3, 4))
    assert pattern.count == 3
    np.testing.assert_array_equal(place, [0, 1, 1, 2])
    np.testing.assert_array_equal(pattern.rows[place], rows[order])
    np.testing.assert_array_equal(pattern.indices[place], cols[order])


@pytest.mark.parametrize("seed", range(3))
def test_gram_of_the_smaller_side(seed):
    on = patterned(np.random.default_rng(seed), 20)
    dense = on.toarray()
    np.testing.assert_allclose(on.gram(), dense.T @ dense, atol=1e-13)


@pytest.mark.parametrize("kind", range(5))
def test_packing(kind):
    w = every_kind(np.random.default_rng(1))[kind]
    again = unpack(pack(w), w.on.pattern if w.on is not None else None)
    np.testing.assert_allclose(again.toarray(), w.toarray(), rtol=1e-14, atol=1e-15)
    assert isinstance(again, Structured)
    if w.on is not None:
        assert again.on.pattern is w.on.pattern
        assert unpack(pack(w)).on.pattern is not w.on.pattern


def test_a_dense_giant_is_refused():
    giant = LowRank((100_000, 100_000), ())
    with pytest.raises(ValueError, match="a dense 100000 x 100000 matrix has 10,000,000,000 entries"):
        giant.toarray()
    assert repr(giant) == "<100000 x 100000 matrix: rank 0 at most>"
    assert giant.copy() is giant


@given(st.integers(0, 2**16), st.integers(1, 30), st.integers(1, 9), st.integers(1, 9))
def test_pairs_are_sorted_and_stable(seed, count, m, n):
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, m, count), rng.integers(0, n, count).astype(np.int32)
    plain, order, place = Pattern.of(rows, cols, (m, n))
    np.testing.assert_array_equal(plain.by_column[2], np.argsort(plain.indices, kind="stable"))
    np.testing.assert_array_equal(order, np.lexsort((cols, rows)))  # which is stable
    distinct, inverse = np.unique(rows * n + cols, return_inverse=True)
    np.testing.assert_array_equal(plain.rows * n + plain.indices, distinct)
    assert (place is None) == (len(distinct) == count)
    if place is not None:
        np.testing.assert_array_equal(place, inverse[order])


def test_a_block_has_no_components_that_are_zero_there():
    left, right = np.zeros((6, 3)), np.ones((5, 3))
    left[:2, 0], left[2:, 1], right[3:, 1] = 1.0, 2.0, 0.0
    low = 2.0 * LowRank.of(left, right) + LowRank.of(np.ones((6, 1)), np.ones((5, 1)))
    for rows, cols, rank in ((slice(2), slice(5), 2), (slice(2, 6), slice(3), 2), (slice(2, 6), slice(3, 5), 1)):
        part = low.block(rows, cols)
        assert part.rank == rank
        np.testing.assert_allclose(part.toarray(), low.toarray()[rows, cols])
    assert LowRank((6, 5), ()).block(slice(2), slice(3)).toarray().shape == (2, 3)
