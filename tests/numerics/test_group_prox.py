"""Shrinking by a norm, and projections onto sums of norms: the conditions for their minima hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree.numerics.group_prox import project_groups, shrink
from projfree.numerics.lp_norm import conjugate, lp_norm
from projfree.numerics.projections import project_groups as by_rows

EXPONENTS = (1.01, 1.3, 2.0, 3.0, 40.0, np.inf)


@pytest.mark.parametrize("p", EXPONENTS)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 12),
    share=st.sampled_from([0.0, 1e-9, 0.3, 0.999999, 1.5]),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
)
@settings(max_examples=30, deadline=None)
def test_shrinking_satisfies_its_conditions(p, seed, size, share, scale):
    """The residual has at most the dual norm t, and is aligned with the answer."""
    rng = np.random.default_rng(seed)
    z = scale * rng.standard_normal((2, size)) * (rng.random((2, size)) < 0.8)
    t, x = share * lp_norm(z, conjugate(p)), z.copy()
    shrink(x, t, p)
    size = max(lp_norm(z, conjugate(p)), 1e-300)
    assert lp_norm(z - x, conjugate(p)) <= t + 1e-11 * size
    assert np.vdot(z - x, x) == pytest.approx(t * lp_norm(x, p), abs=1e-10 * size * max(lp_norm(z, p), 1e-300))
    if share > 1.0:
        assert not x.any()


@pytest.mark.parametrize("p", [*EXPONENTS, 1e4, 1e12])
def test_nothing_is_shrunk_by_nothing(p):
    """Where the minimum lies inside the set the multiplier of its norm is zero."""
    z = np.random.default_rng(0).standard_normal((20, 3))
    for row in z:
        x = row[None].copy()
        shrink(x, 0.0, p)
        np.testing.assert_array_equal(x[0], row)


@pytest.mark.parametrize("p", EXPONENTS)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 6), share=st.sampled_from([1e-6, 0.2, 0.9]))
@settings(max_examples=15, deadline=None)
def test_projections_are_those_of_rows_of_a_matrix(p, seed, rows, share):
    z = np.random.default_rng(seed).standard_normal((rows, 4))
    radius = share * sum(lp_norm(row, p) for row in z)
    near = project_groups(z.reshape(1, -1), 4 * np.arange(rows + 1), np.ones(rows), radius, p)
    np.testing.assert_allclose(near.reshape(rows, 4), by_rows(z, p, 1.0, radius), atol=1e-9)
