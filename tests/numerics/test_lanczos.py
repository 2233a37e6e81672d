"""Krylov spaces: orthonormal, monotone, and exact once they hold the answer."""

from __future__ import annotations

import numpy as np
import pytest
from numerics.quadratics import draw, gap, rounding, value

from projfree.numerics.lanczos import Krylov
from projfree.numerics.lp_quadratic import minimise_quadratic


def grown(H, b, radius, dimensions, keep=None):
    """The spaces met on the way, and the minimisers over them; a full space is shrunk to ``keep`` vectors."""
    space, direction, met = Krylov.empty(len(b)), b, []
    for _ in range(dimensions):
        q = space.next(direction, 1e-14 * np.linalg.norm(b))
        if q is None:
            break
        space = space.extended(q, H @ q)
        found = space.minimise(b, radius)
        met.append((space, found))
        direction = found.direction
        if keep is not None and space.size >= 3 * keep:
            space = space.shrunk(found.h, keep)
    return met


@pytest.mark.parametrize("rho", [0.05, 0.5, 0.95, 2.0])
def test_spaces_and_minimisers(rho):
    H, b, radius = draw(np.random.default_rng(1), 40, 1e3, 2.0, rho)
    met = grown(H, b, radius, 40)
    for space, found in met:
        np.testing.assert_allclose(space.Q.T @ space.Q, np.eye(space.size), atol=1e-13)
        np.testing.assert_allclose(space.T, space.Q.T @ H @ space.Q, atol=1e-13)
        np.testing.assert_allclose(found.gradient, H @ found.x - b, atol=1e-13)
        assert found.gap(radius) == pytest.approx(gap(H, b, 2.0, radius, found.x), abs=1e-13)
        assert np.linalg.norm(found.x) <= radius * (1.0 + 1e-14)
    values = [value(H, b, found.x) for _, found in met]
    assert np.all(np.diff(values) <= 1e-14 * np.abs(values[-1]))
    least = value(H, b, minimise_quadratic(H, b, 2.0, radius).w)
    assert values[-1] == pytest.approx(least, rel=1e-12)


def test_the_space_closes_where_b_has_few_directions():
    """With three distinct eigenvalues three dimensions hold the answer."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    H = (Q * np.repeat([3.0, 1.0, 0.0], 10)) @ Q.T
    b = rng.standard_normal(30)
    met = grown(H, b, 0.7, 10)
    assert len(met) <= 4
    x = met[-1][1].x
    assert gap(H, b, 2.0, 0.7, x) <= 200.0 * rounding(H, b, 2.0, 0.7, x)


def test_a_shrunk_space_still_gets_there():
    H, b, radius = draw(np.random.default_rng(3), 60, 1e3, 2.0, 0.9)
    met = grown(H, b, radius, 450, keep=6)
    assert max(space.size for space, _ in met) == 18
    values = [value(H, b, found.x) for _, found in met]
    assert np.all(np.diff(values) <= 1e-13 * np.abs(values[-1]))
    assert values[-1] == pytest.approx(value(H, b, minimise_quadratic(H, b, 2.0, radius).w), rel=1e-9)


def test_a_direction_in_the_space_is_none():
    space = Krylov.empty(3).extended(np.array([1.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0]))
    assert space.next(np.array([5.0, 0.0, 0.0])) is None
