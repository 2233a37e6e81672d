"""The spectral oracle on gradients that live on a pattern: feasible vertices, supports never too small."""

from __future__ import annotations

import math

import numpy as np
import pytest

from projfree.algebra import LowRank, OnPattern, Pattern, inner
from projfree.sets import SchattenBall

PS = (1.0, 1.1, 1.2, 4.0 / 3.0, 1.5, 2.0, 3.0, math.inf)


def gradient(kind, seed, m=12, n=9):
    rng = np.random.default_rng(seed)
    if kind == "row":
        m = 1
    elif kind == "column":
        n = 1
    dense = rng.standard_normal((m, n))
    if kind == "zero":
        dense[:] = 0.0
    elif kind == "rank one":
        dense = np.outer(dense[:, 0], dense[0])
    elif kind == "clustered":
        u, _, vt = np.linalg.svd(dense, full_matrices=False)
        dense = u * np.where(np.arange(min(m, n)) < 6, 1.0, 1e-3) @ vt
    elif kind == "sparse":
        dense *= rng.random((m, n)) < 0.3
    elif kind == "tiny":
        dense *= 1e-200
    rows, cols = np.nonzero(np.ones((m, n)) if kind != "sparse" else dense)
    if not len(rows):
        rows, cols = np.array([0]), np.array([0])
    pattern = Pattern.of(rows, cols, (m, n))[0]
    return OnPattern(pattern, dense[pattern.rows, pattern.indices]), dense


KINDS = ("plain", "zero", "rank one", "clustered", "sparse", "row", "column", "tiny")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", PS)
def test_vertices_and_supports(tier, kind, p):
    g, dense = gradient(kind, 1)
    ball = SchattenBall(p, 1.5)
    exact = ball.support(dense)
    v, support, _ = ball.oracle(g)
    assert ball.contains(v)
    assert ball.contains(v.toarray(), 1e-9)
    reached = -inner(g, v)
    assert reached <= exact * (1 + 1e-9)
    # The support that a bound is made of is an upper bound, up to the allowance that the bound adds.
    slack = 1.0 - ball.support_error(dense, 1.0)
    for upper in (support, ball.support(g), ball.dual_norm(g) * ball.radius):
        assert upper >= exact * slack
    if tier != "subspace":
        assert reached == pytest.approx(exact, rel=1e-5)
        assert ball.support(g) == pytest.approx(exact, rel=1e-5)
    elif p <= 1.5:
        assert reached >= 0.97 * exact


@pytest.mark.parametrize("p", [1.0, 1.2, 1.7, 2.0, 3.0])
def test_projections(tier, p):
    rng = np.random.default_rng(0)
    g, _ = gradient("sparse", 2)
    low = LowRank.of(rng.standard_normal((12, 2)), rng.standard_normal((9, 2)))
    ball = SchattenBall(p, 2.0)
    for w in (low + g, low, g, 1e-3 * low):
        found, exact = ball.project(w), ball.project(w.toarray())
        assert ball.contains(found)
        if tier != "subspace":
            np.testing.assert_allclose(found.toarray(), exact, atol=1e-6)
        elif p <= 1.2:
            assert np.linalg.norm(found.toarray() - exact) <= 0.05 * np.linalg.norm(exact)


def test_overflow_is_named():
    g, _ = gradient("plain", 0)
    bad = OnPattern(g.pattern, np.full(g.pattern.count, np.inf))
    with pytest.raises(ValueError, match="needs finite entries"):
        SchattenBall(1.2, 1.0).lmo(bad)


@pytest.fixture(scope="module")
def large():
    """A gradient whose leading singular vectors only are computed: 1,200 x 1,200 with 20,000 places."""
    rng = np.random.default_rng(0)
    pattern = Pattern.of(rng.integers(0, 1200, 20_000), rng.integers(0, 1200, 20_000), (1200, 1200))[0]
    return OnPattern(pattern, rng.standard_normal(pattern.count))


@pytest.mark.parametrize("p", [1.0, 1.2])
def test_the_oracle_is_a_function(large, p):
    """Whatever was asked before, of this set or another, of this gradient or another."""
    other = OnPattern(large.pattern, np.random.default_rng(1).standard_normal(large.pattern.count))
    ball = SchattenBall(p, 1.0)
    vertex, support, warm = ball.oracle(large)
    for g in (large, other):
        ball.oracle(g, warm)
        ball.oracle(g)
    again = ball.oracle(large)
    np.testing.assert_array_equal(again.vertex.toarray(), vertex.toarray())
    np.testing.assert_array_equal(again.warm, warm)
    assert again.support == support
    warmed, once_more = ball.oracle(large, warm), ball.oracle(large, warm)
    np.testing.assert_array_equal(warmed.vertex.toarray(), once_more.vertex.toarray())
