"""Leading singular triples from a Krylov space."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree.algebra import LowRank
from projfree.deadline import deadline
from projfree.numerics.krylov import krylov
from projfree.numerics.subspace import leading


def matrix(values, shape, seed):
    rng = np.random.default_rng(seed)
    u, v = (np.linalg.qr(rng.standard_normal((side, len(values))))[0] for side in shape)
    return LowRank.of(u * values, v)


@given(m=st.integers(1, 30), n=st.integers(1, 30), steps=st.integers(1, 40), seed=st.integers(0, 99))
def test_the_triples_are_a_compression(m, n, steps, seed):
    values = np.sort(np.random.default_rng(seed).random(min(m, n)))[::-1] + 0.1
    g = matrix(values, (m, n), seed)
    found = krylov(g, steps)
    k = len(found.values)
    assert k <= min(m, n, steps)
    assert not found.whole
    assert (found.values <= values[:k] * (1.0 + 1e-9)).all()
    np.testing.assert_allclose(found.left.T @ found.left, np.eye(k), atol=1e-7)
    np.testing.assert_allclose(found.right.T @ found.right, np.eye(k), atol=1e-9)
    np.testing.assert_allclose(g.times(found.right), found.left * found.values, atol=1e-9)
    if steps >= n <= m:
        np.testing.assert_allclose(found.values, values, rtol=1e-7)


def test_values_that_lie_close_together_are_told_apart():
    values = np.concatenate([1.03 - 0.002 * np.arange(5), np.linspace(1.0, 0.5, 395)])
    g = matrix(values, (500, 400), 0)
    np.testing.assert_allclose(krylov(g, 100).values[:3], values[:3], rtol=1e-3)
    assert leading(g, np.ones_like, None).values[0] < 1.025  # block iterations do not get there


def test_a_matrix_of_zeros_has_none_and_a_deadline_ends_the_steps():
    assert len(krylov(LowRank.of(np.zeros((4, 1)), np.ones((3, 1))), 5).values) == 0
    with deadline(0.0):
        assert len(krylov(matrix(np.ones(4), (6, 5), 0), 4).values) == 1


@pytest.mark.parametrize("rank", [1, 3])
def test_a_space_that_is_closed_ends_the_steps(rank):
    found = krylov(matrix(np.arange(rank, 0.0, -1.0), (20, 12), 1), 12)
    np.testing.assert_allclose(found.values, np.arange(rank, 0.0, -1.0))
