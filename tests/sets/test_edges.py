"""Edge cases by name: extreme exponents and scales, zeros, ties, thin and degenerate matrices, exact values."""

import math

import numpy as np
import pytest

from projfree.sets import Box, GroupBall, LpBall, OracleSet, SchattenBall, Simplex, Weighted
from projfree.testing import sets as laws

INF = math.inf


def test_ties_and_zeros():
    g = np.array([1.0, -2.0, 2.0, 0.0])
    np.testing.assert_array_equal(LpBall(1, 3).lmo(g), [0, 3, 0, 0])
    np.testing.assert_array_equal(LpBall(INF, 3).lmo(g), [-3, 3, -3, 0])
    np.testing.assert_array_equal(Simplex().lmo(np.array([1.0, 0.0, 0.0])), [0, 1, 0])
    np.testing.assert_array_equal(Box(-1, 3).lmo(g), [-1, 3, -1, 1])
    for C in (LpBall(1.5, 1), LpBall(1, 1), LpBall(INF, 1)):
        assert not np.signbit(C.lmo(np.zeros(3))).any()


def test_group_oracle_with_zero_rows():
    """The corrected formula, row by row; zero rows stay zero."""
    p, q, r = 1.5, 1.2, 2.0
    z, s = p / (p - 1), q / (q - 1)
    G = np.random.default_rng(0).standard_normal((4, 3))
    G[1] = 0.0
    rows = np.linalg.norm(G, z, axis=1)
    live = np.where(rows > 0, rows, 1.0)[:, None]
    expected = -r * np.linalg.norm(rows, s) ** (1 - s) * live ** (s - z) * np.sign(G) * np.abs(G) ** (z - 1)
    C = GroupBall(p, q, r)
    np.testing.assert_allclose(C.lmo(G), expected, rtol=1e-12)
    assert not C.lmo(G)[1].any()
    # The formula as the paper prints it, with the s-norm of the rows, falls short of the sphere.
    printed = expected * (np.linalg.norm(G, s, axis=1)[:, None] / live) ** (s - z)
    assert abs(C.norm(printed) / r - 1) > 0.01


@pytest.mark.parametrize("p", [1, 1 + 1e-9, 1.001, 1.5, 2, 3, 500, 1e9, INF])
def test_repeated_singular_values_and_low_rank(p):
    C = SchattenBall(p, 1.0)
    q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))
    np.testing.assert_allclose(C.norm(q), 4.0 ** (1 / p), rtol=1e-13)
    assert abs(np.vdot(q, C.lmo(q)) + C.dual_norm(q)) <= 1e-13 * C.dual_norm(q)
    if p > 1.0001:  # all singular values are equal, so the vertex is a multiple of the matrix
        np.testing.assert_allclose(C.lmo(q), -q / 4.0 ** (1 / p), atol=1e-13)
    rank_one = np.outer([1.0, 2.0, 2.0], [3.0, 0.0, 4.0])
    np.testing.assert_allclose(C.lmo(rank_one), -rank_one / 15.0, atol=1e-14)
    assert not C.lmo(np.zeros((3, 2))).any()


def test_singular_values_when_divide_and_conquer_fails(monkeypatch):
    w = np.random.default_rng(2).standard_normal((3, 4))
    expected = SchattenBall(1, 1.0).oracle(w)

    def refuse(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", refuse)
    found = SchattenBall(1, 1.0).oracle(w)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-14)
    assert abs(found[1] - expected[1]) <= 1e-14
    assert abs(SchattenBall(1, 1.0).dual_norm(w) - expected[1]) <= 1e-14


def test_diameters_and_reach():
    assert LpBall(1.5, 3).diameter((10,)) == 6
    assert LpBall(INF, 3).diameter((4,)) == 12
    np.testing.assert_allclose(LpBall(4, 1).reach((16,)), 2.0)
    np.testing.assert_allclose(GroupBall(INF, 4, 1).reach((16, 9)), 6.0)
    np.testing.assert_allclose(SchattenBall(INF, 1).reach((9, 20)), 3.0)
    assert Simplex(2).diameter((5,)) == 2 * math.sqrt(2)
    assert Simplex().diameter((1,)) == 0
    np.testing.assert_allclose(Box(-1, [2.0, 3.0]).reach((2,)), math.hypot(2, 3))
    assert Box(-1, [2.0, 3.0]).diameter((2,)) == 5
    np.testing.assert_allclose(Weighted(LpBall(INF, 1), [0.5, 2.0]).reach((2,)), math.hypot(2, 0.5))
    np.testing.assert_allclose(Weighted(LpBall(1, 1), [0.5, 2.0]).reach((2,)), 2)
    assert Weighted(GroupBall(INF, 1, 1), [3.0, 4.0]).reach((5, 2)) >= math.hypot(1 / 3, 1 / 4)


def test_moduli():
    assert LpBall(1, 2).strong_convexity((3,)) == LpBall(2.1, 2).strong_convexity((3,)) == 0
    np.testing.assert_allclose(LpBall(1.1, 1).strong_convexity((20,)), 0.1 * 20 ** (0.5 - 1 / 1.1))
    np.testing.assert_allclose(SchattenBall(1.5, 2).strong_convexity((7, 4)), 0.25 * 4 ** (0.5 - 1 / 1.5))
    for p, q in [(1.5, 1.2), (1.2, 2), (1.7, 1.7)]:
        literature = (p - 1) * (q - 1) / (p + q - 2)
        assert literature <= GroupBall(p, q, 1).strong_convexity((1, 1)) == min(p, q) - 1
    assert GroupBall(2, 1, 1).strong_convexity((2, 2)) == GroupBall(3, 1.5, 1).strong_convexity((2, 2)) == 0


def test_laws_catch_a_wrong_set():
    """A set that overstates itself in any one respect is found out."""

    class Wrong(LpBall):
        pass

    g, h = np.array([1.0, 0.3, -0.2]), np.array([0.9, -0.3, -0.2])
    faults = {
        "lmo": (lambda self, g: 0.9 * LpBall.lmo(self, g), laws.support_is_attained, 1),
        "support": (lambda self, g: 0.999 * LpBall.support(self, g), laws.support_is_attained, 1),
        "reach": (lambda self, shape: 0.5, laws.reach_and_diameter_are_upper_bounds, 2),
        "strong_convexity": (lambda self, shape: 4.0, laws.vertices_move_slowly, 2),
        "project": (lambda self, w: w * (self.radius / self.norm(w)), laws.projection_is_the_nearest_point, 1),
    }
    for method, (fault, law, count) in faults.items():
        law(LpBall(1.5, 1.0), *(4 * g, 4 * h)[:count])
        C = type("Broken", (Wrong,), {method: fault})(1.5, 1.0)
        with pytest.raises(AssertionError):
            law(C, *(4 * g, 4 * h)[:count])


def test_oracle_set_from_bare_functions():
    calls = []

    def support(g):
        calls.append(1)
        return float(np.abs(g).sum())

    C = OracleSet(LpBall(INF, 1).lmo, support)
    assert C.reach((4,)) == 2 == C.diameter((4,)) / 2
    before = len(calls)
    assert C.reach((4,)) == 2
    assert len(calls) == before == 8
    assert OracleSet(LpBall(2, 1).lmo, diameter=2.0).reach((4,)) == 2
    assert C.structure((4,)).projection == "none"
    assert repr(OracleSet(support, name="Mine")) == "Mine"
    np.testing.assert_array_equal(OracleSet(Simplex().lmo, start=[0.0, 1.0]).centre((2,)), [0, 1])


def test_functions_that_write_to_what_they_are_given_do_no_harm():
    def lmo(g):
        g *= -1.0
        return np.sign(g)

    def support(g):
        np.abs(g, out=g)
        return float(g.sum())

    def project(w):
        return np.clip(w, -1.0, 1.0, out=w)

    cube, g = OracleSet(lmo, support, project=project), np.array([3.0, -0.5])
    np.testing.assert_array_equal(cube.lmo(g), [-1.0, 1.0])
    assert cube.support(g) == 3.5
    assert math.isnan(cube.oracle(g).support)  # a call of its own
    np.testing.assert_array_equal(cube.project(g), [1.0, -0.5])
    np.testing.assert_array_equal(g, [3.0, -0.5])
    assert OracleSet(lmo).support(g) == 3.5
