"""Every term of a rounding allowance is needed: each case has an error that no other term covers.

Sums are compared with fractions, so nothing here has a tolerance.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import Logistic, LpBall, Objective, Squared, as_data
from projfree.algebra import UNIT
from projfree.data import rows as layout
from projfree.data import sparse, tables
from projfree.data.rows import PER_OUTPUT, SCALARS, Rows
from projfree.objectives.rounding import Rounding
from projfree.objectives.row_steps import Sums, TangentSums

N = 40
RNG = np.random.default_rng(11)


def exact_constant(full, b, y):
    """The constant of the tangent of squares at the predictions that were formed, weights 1/n as they are stored."""
    s, b = Fraction(1.0 / len(y)), Fraction(b)
    total = Fraction(0)
    for t, target in zip(map(Fraction, full.tolist()), map(Fraction, y.tolist()), strict=True):
        total += s * ((t - target) ** 2 - 2 * (t - target) * (t - b))
    return total


def constant_and_error(u, b, y, units=60.0):
    offset = None if b is None else np.asarray(b)
    packed = TangentSums(Squared(), (offset,)).block(Rows(y, 1.0 / len(y)), u)[1]
    sums = Sums(*packed[:SCALARS].tolist(), *packed[SCALARS:].reshape(PER_OUTPUT, -1))
    rounding = Rounding(Squared(), SimpleNamespace(column_stats=SimpleNamespace(mean_square=1.0, row_norm=1.0)), units)
    return sums.value - sums.along, rounding.of_tangent(sums)[0]


CONSTANTS = {
    "the losses": lambda: (np.zeros(N), None, RNG.standard_normal(N)),
    "the products with images": lambda: (
        (y := RNG.standard_normal(N)) * (1.0 + 1e-6 * RNG.standard_normal(N)),
        None,
        y,
    ),
    "the addition of the intercept": lambda: (
        (u := RNG.uniform(0.0, 1e-3, N)),
        1e8 / 3.0,
        u + 1e8 / 3.0 + 1e-4 * RNG.standard_normal(N),
    ),
    "underflow": lambda: (np.zeros(N), None, 1e-160 * RNG.uniform(1.0, 2.0, N)),
}


@pytest.mark.parametrize("case", CONSTANTS)
def test_the_constant(case):
    u, b, y = CONSTANTS[case]()
    constant, error = constant_and_error(u, b, y)
    off = abs(Fraction(constant) - exact_constant(u if b is None else u + b, 0.0 if b is None else b, y))
    assert 0 < off <= Fraction(error)


def exact_gradient(X, r):
    s = Fraction(1.0 / len(r))
    return [sum(Fraction(x) * Fraction(a) * s for x, a in zip(column, r, strict=True)) for column in X.T.tolist()]


GRADIENTS = {
    "plain": (1.0, 1.0),
    "derivatives whose squares underflow": (1.0, 1e-170),
    "derivatives whose squares lose digits": (1.0, 1e-161),
    "small rows and derivatives": (1e-150, 1e-158),
    "products that underflow": (1e-140, 1e-175),
    "large": (1e80, 1e80),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "CSR", "CSC"])
@pytest.mark.parametrize("native", [False, True], ids=["NumPy", "compiled"])
@pytest.mark.parametrize("case", GRADIENTS)
def test_the_gradient(case, native, form, monkeypatch):
    monkeypatch.setattr(tables, "NATIVE_BYTES", 0 if native else 1 << 60)
    x_scale, y_scale = GRADIENTS[case]
    X, y = RNG.standard_normal((N, 3)) * x_scale, RNG.standard_normal(N) * y_scale
    f = Objective(Squared(), as_data(form(X), y))
    m = f.evaluate(f.point(np.zeros(3))).slope
    exact = exact_gradient(X, (-2.0 * y).tolist())
    off = sum((Fraction(float(g)) - e) ** 2 for g, e in zip(m.gradient, exact, strict=True))
    assert np.isfinite(m.gradient_error)
    assert 0 < off <= Fraction(m.gradient_error) ** 2


@pytest.mark.parametrize("native", [False, True], ids=["NumPy", "compiled"])
@pytest.mark.parametrize("scale", [1e-80, 1e80, 1e100])
def test_bounds_of_large_and_small_squares(scale, native, monkeypatch):
    monkeypatch.setattr(tables, "NATIVE_BYTES", 0 if native else 1 << 60)
    X, y = RNG.standard_normal((N, 3)) * scale, RNG.standard_normal(N) * scale
    f = Objective(Squared(), as_data(X, y), fit_intercept=True)
    x = f.point(np.full(3, 0.1))
    assert f(x) * 0.1 > f.evaluate(x).slope.minimum(LpBall(2, 1.0))[1] > 0.0


def test_derivatives_below_the_normal_numbers_times_large_rows():
    """exp(-720) has about ten bits less than a normal number, and rows of 1e100 carry the error into the range."""
    f = Objective(Logistic(), as_data(np.array([[1e100, 1.0]]), [1.0]))
    m = f.evaluate(f.point([0.0, 720.0])).slope
    with localcontext(prec=60):
        exact = -Fraction(1 / (1 + Decimal(720).exp()))
    off = abs(Fraction(float(m.gradient[0])) - exact * Fraction(1e100))
    assert 0 < off <= Fraction(m.gradient_error)


def test_the_gradient_with_a_centred_intercept():
    """Squares with an intercept that was off are moved to the best one; the move is rounded too."""
    X, y = RNG.standard_normal((N, 3)) + 1e6, RNG.standard_normal(N)
    f = Objective(Squared(), as_data(X, y), fit_intercept=True)
    x = f.point(np.zeros(3))
    b = np.asarray(1e5)
    m = f._minorant(*f.workspace.sweep(TangentSums(Squared(), (b,)), (x,)), b)[1]
    b = sum(map(Fraction, y.tolist())) / N
    exact = exact_gradient(X, [2 * (b - Fraction(t)) for t in y.tolist()])
    off = sum((Fraction(float(g)) - e) ** 2 for g, e in zip(m.gradient, exact, strict=True))
    assert 0 < off <= Fraction(m.gradient_error) ** 2


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_sums_of_sparse_rows_over_blocks(outputs, monkeypatch):
    """Each entry of an adjoint errs by at most `summation` units of its absolute terms, however rows are cut."""
    for name, number in (("BLOCK_ENTRIES", 64), ("ADJOINT_ENTRIES", 1)):
        monkeypatch.setattr(sparse, name, number)
    monkeypatch.setattr(layout, "BLOCK_ROWS", 64)
    rng = np.random.default_rng(3)
    X = np.where(rng.random((500, 3)) < 0.6, rng.standard_normal((500, 3)), 0.0)
    r = 10.0 ** rng.uniform(-8, 8, (500, outputs)) * rng.standard_normal((500, outputs))
    data = as_data(sp.csr_array(X), np.zeros(500))
    assert data.cut.count > 4
    found, units = data.adjoint(r), Fraction(data.rounding_units) * Fraction(UNIT)
    for j in range(3):
        for c in range(outputs):
            terms = [Fraction(x) * Fraction(a) for x, a in zip(X[:, j].tolist(), r[:, c].tolist(), strict=True)]
            assert abs(Fraction(float(found[j, c])) - sum(terms)) <= units * sum(map(abs, terms))
