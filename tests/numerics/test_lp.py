"""The kernels behind the balls: norms against exact arithmetic, projections by their optimality conditions."""

import math
from decimal import Context, Decimal

import numpy as np
import pytest

from projfree.numerics.lp_norm import conjugate, lp_norm, norming, row_norms
from projfree.numerics.projections import project, project_groups

DIGITS = Context(prec=50, Emax=10**9, Emin=-(10**9))
EXPONENTS = [1, 1 + 1e-10, 1.001, 1.05, 1.3, 1.9, 2, 2.2, 4, 20, 500, 1e6, 1e12, math.inf]


def exact_norm(x, p):
    with_digits = [DIGITS.create_decimal(Decimal(abs(float(v)))) for v in x]
    if math.isinf(p):
        return max(with_digits)
    power = DIGITS.create_decimal(Decimal(p))
    total = sum((DIGITS.power(v, power) for v in with_digits if v), Decimal(0))
    return DIGITS.power(total, DIGITS.divide(Decimal(1), power)) if total else Decimal(0)


@pytest.mark.parametrize("p", [1, 1.001, 1.5, 2, 7.5, 500, math.inf])
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_norms_to_the_last_digits(p, scale):
    x = np.random.default_rng(0).standard_normal(30) * scale
    exact = exact_norm(x, p)
    assert abs(Decimal(lp_norm(x, p)) - exact) <= Decimal("4e-16") * exact
    dual = exact_norm(x, conjugate(p))
    v = norming(x[None], p)[0]
    assert abs(lp_norm(v, p) - 1) <= 4e-15
    assert abs(float(np.dot(x / scale, v)) - float(dual / Decimal(scale))) <= 1e-14 * float(dual / Decimal(scale))


def test_norms_of_nothing_and_of_what_is_not_a_number():
    assert lp_norm(np.zeros(0), 1.5) == 0 == lp_norm(np.zeros(3), 1.5)
    for p in (1.0, 1.5, 2.0, math.inf):
        assert math.isnan(lp_norm(np.array([1.0, math.nan]), p))
        assert lp_norm(np.array([1.0, -math.inf]), p) == math.inf
    assert lp_norm(np.full(4, 1.7e308), 2.0) == math.inf
    assert not norming(np.zeros((2, 3)), 1.0).any()
    assert conjugate(1) == math.inf
    assert conjugate(math.inf) == 1


def points(d, rng):
    """Plain, graded over tens of orders of magnitude, half zero, and all equal; largest entry 1."""
    w = rng.standard_normal(d)
    graded = w * np.exp(20 * rng.standard_normal(d))
    sparse = np.where(rng.random(d) < 0.5, 0.0, w)
    return [v / np.max(np.abs(v)) for v in (w, graded, sparse, np.sign(w)) if v.any()]


def excess(w, x, p, radius):
    """How far ``x`` is from solving the projection: max <w - x, v - x> over the ball, in units of |w| times reach."""
    g = w / np.max(np.abs(w)) - x / np.max(np.abs(w))
    reach = max(1.0, w.size ** (0.5 - 1 / p))
    return (lp_norm(g, conjugate(p)) - float(np.vdot(g, x / radius))) / reach / np.linalg.norm(w / np.max(np.abs(w)))


@pytest.mark.parametrize("p", EXPONENTS)
def test_projection_solves_its_problem(p):
    """At every scale, for radii from far smaller than the point to within rounding of it: to 1e-14."""
    rng = np.random.default_rng(1)
    for d in (1, 2, 30):
        for w in points(d, rng):
            for share in (1e-200, 1e-10, 0.1, 0.9, 1 - 1e-6, 1 - 1e-15):
                for scale in (1e-290, 1.0, 1e290):
                    radius = lp_norm(w * scale, p) * share
                    if 1e-300 < radius < 1e300:
                        x = project(w * scale, p, radius)
                        assert lp_norm(x, p) <= radius * (1 + 1e-15)
                        assert excess(w * scale, x, p, radius) <= 1e-14


@pytest.mark.parametrize("p", [1, 1.01, 1.5, 2, 3, 100, math.inf])
def test_weighted_projection_solves_its_problem(p):
    rng = np.random.default_rng(2)
    d = np.exp(3 * rng.standard_normal(40))
    for w in points(40, rng):
        for share in (1e-6, 0.1, 0.9, 1 - 1e-9):
            radius = lp_norm(d * w, p) * share
            x = project(w, p, radius, d)
            assert lp_norm(d * x, p) <= radius * (1 + 1e-14)
            g = w - x
            gap = radius * lp_norm(g / d, conjugate(p)) - float(g @ x)
            assert gap <= 1e-13 * radius * lp_norm(w / d, conjugate(p))


MIXED = [(1, 1.1), (1.1, 1), (1.5, 3), (3, 1.5), (math.inf, 1), (math.inf, 2), (1, 20), (20, 1.1), (1.3, math.inf)]


@pytest.mark.parametrize(("p", "q"), MIXED)
def test_group_projection_solves_its_problem(p, q):
    rng = np.random.default_rng(4)
    for shape in ((4, 1), (4, 3)):
        w = rng.standard_normal(shape)
        w[::2] *= 1e-3
        for share in (1e-10, 0.1, 0.99):
            radius = lp_norm(row_norms(w, p), q) * share
            x = project_groups(w, p, q, radius)
            assert lp_norm(row_norms(x, p), q) <= radius * (1 + 1e-14)
            g = w - x
            gap = radius * lp_norm(row_norms(g, conjugate(p)), conjugate(q)) - float(np.vdot(g, x))
            reach = radius * max(1, shape[1] ** (0.5 - 1 / p)) * max(1, shape[0] ** (0.5 - 1 / q))
            assert gap <= 1e-13 * reach * np.linalg.norm(w)
