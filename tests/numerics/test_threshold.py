"""Projections onto the simplex against exact arithmetic."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree.numerics.projections import simplex_rows

EPS = Fraction(np.finfo(np.float64).eps)


def exact(z, radius, d):
    """The projection onto {x >= 0, <d, x> = radius} by sorting, in fractions, and the size of what enters its sums."""
    z, d, radius = [Fraction(v) for v in z.tolist()], [Fraction(v) for v in d.tolist()], Fraction(radius)
    moment = mass = terms = Fraction(0)
    mu = None
    for ratio, a, b in sorted(((a / b, a, b) for a, b in zip(z, d, strict=True)), reverse=True):
        if mu is not None and ratio <= mu:
            break
        moment, mass, terms = moment + a * b, mass + b * b, terms + abs(a * b)
        mu = (moment - radius) / mass
    return [max(a - mu * b, Fraction(0)) for a, b in zip(z, d, strict=True)], terms


#: Rows whose largest entry is of order one.
ROWS = {
    "plain": lambda n, rng: rng.standard_normal(n),
    "ties": lambda n, rng: np.round(2.0 * rng.standard_normal(n)) / 2.0,
    "equal": lambda n, rng: np.full(n, rng.standard_normal()),
    "nearly equal": lambda n, rng: 1.0 + 1e-15 * np.round(20.0 * rng.standard_normal(n)),
    "graded": lambda n, rng: rng.choice([-1.0, 1.0], n) * np.exp(-300.0 * rng.random(n)),
    "sparse": lambda n, rng: np.where(rng.random(n) < 0.98, 0.0, rng.standard_normal(n)),
    "one far above": lambda n, rng: np.where(np.arange(n) == n // 2, 1.0, 1e-12 * rng.standard_normal(n)),
}
LENGTHS = st.sampled_from([1, 3, 40, 2300])
SHARES = st.one_of(st.floats(-300.0, 2.0), st.floats(-18.0, 2.0), st.floats(-3.0, 0.0)).map(lambda e: 10.0**e)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(list(ROWS)),
    LENGTHS,
    SHARES,
    st.sampled_from([1e-310, 1e-290, 1.0, 1e297]),
    st.booleans(),
    st.integers(0, 99),
)
def test_threshold_agrees_with_exact_arithmetic(kind, n, share, scale, weighted, seed):
    rng = np.random.default_rng(seed)
    z, d = ROWS[kind](n, rng) * scale, np.exp(rng.standard_normal(n)) if weighted else np.ones(n)
    radius = min(max(float(np.abs(z * 1e-8).sum()) * 1e8 * share, 5e-324), 1e300)
    x = simplex_rows(z[None], radius, d[None] if weighted else None)[0]
    right, terms = exact(z, radius, d)
    error = sum(b * abs(Fraction(a) - c) for a, b, c in zip(x.tolist(), map(Fraction, d.tolist()), right, strict=True))
    # Without weights the error is relative to the radius. The ratios of weighted entries are rounded to begin with.
    allowed = 16 * EPS * (Fraction(radius) + (terms if weighted else 0))
    assert error <= allowed + Fraction(5e-324) * n * max(map(Fraction, d.tolist()))
    assert (x >= 0.0).all()


def test_no_sum_overflows_and_no_row_spoils_another():
    z = np.array([[1.7e308, -1.7e308, 1.6e308], [1.0, 2.0, 3.0], [1e-300, 2e-300, 3e-300]])
    x = simplex_rows(z, np.array([1e308, 1.0, 1e-300]))
    np.testing.assert_allclose(x, [[5.5e307, 0, 4.5e307], [0, 0, 1], [0, 0, 1e-300]], rtol=1e-15)
    long = np.zeros((2, 5000))
    long[0, :] = 1.7e308
    np.testing.assert_allclose(simplex_rows(long, 1e308), np.full((2, 5000), 2e304), rtol=1e-15)
