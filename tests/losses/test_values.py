"""Values against textbook formulas in 60 digits, the exact constants, and the edge cases by name."""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest

from projfree.losses import (
    LOSSES,
    BiWeight,
    Gamma,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
)

DIGITS = decimal.Context(prec=60, Emax=10**9, Emin=-(10**9))
SIMPLE = [Squared(), Huber(1.0), BiWeight(1.0), Logistic(), SquaredSigmoid(), SquaredHinge(), Quantile(0.5, 0.25)]

both_types = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])


def log1p(x):
    return x - x**2 / 2 + x**3 / 3 if x < Decimal("1e-25") else (1 + x).ln()


def reference(loss, u, y):
    """Value and derivative as one writes them on paper."""
    r, e = u - y, (-u * y).exp() if loss.labels else None
    match loss:
        case Squared():
            return r**2, 2 * r
        case Huber(delta):
            d = Decimal(delta)
            return (r**2, 2 * r) if abs(r) <= d else (2 * d * abs(r) - d**2, (2 * d).copy_sign(r))
        case BiWeight(scale):
            c2 = Decimal(scale) ** 2
            return r**2 / (c2 + r**2), 2 * r * c2 / (c2 + r**2) ** 2
        case Logistic():
            return log1p(e), -y * e / (1 + e)
        case SquaredSigmoid():
            s = e / (1 + e)  # 1 - sigma(u) for y = 1, and sigma(u) for y = -1
            return s**2, -2 * y * s**2 / (1 + e)
        case SquaredHinge():
            h = max(Decimal(0), 1 - y * u)
            return h**2, -2 * y * h
        case Quantile(q, delta):
            theta = min(max(-r / Decimal(delta), Decimal(q) - 1), Decimal(q))
            return -theta * r - Decimal(delta) / 2 * theta**2, -theta


def softmax_reference(u, y):
    others = sum((x - u[y]).exp() for j, x in enumerate(u) if j != y)
    total = sum((x - u[y]).exp() for x in u)
    return log1p(others), [-others / total if j == y else (x - u[y]).exp() / total for j, x in enumerate(u)]


def both(loss, u, y):
    return loss.value(u, y), loss.derivative(u, y)


def relative_error(found, exact):
    """In units of eps; zero where the exact result is below the normal numbers."""
    info = np.finfo(found.dtype)
    if abs(exact) < Decimal(float(info.tiny)) * 4:
        return 0.0
    return float(abs((Decimal(float(found)) - exact) / exact)) / float(info.eps)


@both_types
@pytest.mark.parametrize("loss", [*SIMPLE, Huber(0.3), BiWeight(0.3)], ids=repr)
def test_accuracy_against_60_digits(loss, dtype):
    rng = np.random.default_rng(0)
    reach = 700 if dtype == np.float64 else 85
    u = np.concatenate([3 * rng.normal(size=300), rng.uniform(-reach, reach, 300), 10.0 ** rng.uniform(-12, 3, 100)])
    u = u.astype(dtype)
    y = (rng.choice([-1, 1], u.size) if loss.labels else rng.normal(size=u.size)).astype(dtype)
    value, derivative = both(loss, u, y)
    with decimal.localcontext(DIGITS):
        exact = [reference(loss, Decimal(float(a)), Decimal(float(b))) for a, b in zip(u, y, strict=True)]
        assert max(relative_error(v, e[0]) for v, e in zip(value, exact, strict=True)) <= loss.rounding
        assert max(relative_error(d, e[1]) for d, e in zip(derivative, exact, strict=True)) <= loss.rounding


@both_types
@pytest.mark.parametrize("k", [2, 5, 40])
@pytest.mark.parametrize("spread", [1, 30, 250, 2000])
def test_softmax_accuracy_against_60_digits(k, spread, dtype):
    # The spreads meet plain exponentials, shifted ones, and true classes so far below that they are raised.
    rng = np.random.default_rng(k)
    u, y = (spread * rng.normal(size=(20, k))).astype(dtype), rng.integers(0, k, 20)
    y[::2] = u[::2].argmax(axis=1)
    value, derivative = both(Softmax(), u, y)
    with decimal.localcontext(DIGITS):
        for i in range(len(u)):
            exact, slopes = softmax_reference([Decimal(float(x)) for x in u[i]], y[i])
            errors = [relative_error(value[i], exact), *map(relative_error, derivative[i], slopes)]
            assert max(errors) <= Softmax().rounding


def test_exact_smoothness():
    assert Squared().smoothness == Huber(0.1).smoothness == 2
    assert Logistic().smoothness == 0.25
    assert Softmax().smoothness == 0.5
    assert BiWeight(0.5).smoothness == 8
    with decimal.localcontext(DIGITS):
        s = (15 - Decimal(33).sqrt()) / 24
        exact = 2 * s**2 * (1 - s) * (2 - 3 * s)
        assert abs(Decimal(SquaredSigmoid().smoothness) - exact) <= Decimal(math.ulp(0.15))
    assert SquaredSigmoid().smoothness == pytest.approx(0.1540585701, abs=5e-11)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("delta", [1e-6, 0.3, 20.0])
def test_the_quantile_loss_lies_between_its_smoothed_form_and_that_plus_the_excess(quantile, delta):
    u = np.concatenate([np.linspace(-40, 40, 2001), delta * np.linspace(-2, 2, 2001)])
    y, loss = np.zeros_like(u), Quantile(quantile, delta)
    exact, smooth = loss.exact(u, y), loss.value(u, y)
    np.testing.assert_allclose(exact, np.where(u < 0, -quantile * u, (1 - quantile) * u), rtol=1e-14)
    assert np.all(smooth <= exact * (1 + 1e-14))
    assert np.all(exact <= smooth + loss.smoothing_error * (1 + 1e-12) + 1e-13)
    assert np.max(exact - smooth) == pytest.approx(loss.smoothing_error, rel=1e-3)


@pytest.mark.parametrize("cls", LOSSES)
def test_values_are_never_negative(cls):
    """Certificates compare values with zero."""
    assert cls().lower_bound == 0.0


@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=repr)
def test_deviances_against_scipy_and_their_minimum(loss):
    from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

    rng = np.random.default_rng(0)
    u, y = rng.normal(size=50), rng.gamma(2.0, size=50)
    deviance = mean_poisson_deviance if isinstance(loss, Poisson) else mean_gamma_deviance
    assert loss.value(u, y).mean() == pytest.approx(0.5 * deviance(y, np.exp(u)), rel=1e-13)
    assert np.all(loss.value(np.log(y), y) <= 1e-14 * loss.floor(y))
    np.testing.assert_allclose(loss.mean(u), np.exp(u))


@pytest.mark.parametrize(("loss", "end", "sign"), [(Poisson(), 80.0, 1.0), (Gamma(), -45.0, -1.0)])
def test_deviances_are_continued_by_their_tangents(loss, end, sign):
    y, at = np.ones(1), np.array([end])
    value, slope = both(loss, at, y)
    for beyond in (1e-3, 1.0, 1e3, 1e100):
        found = both(loss, at + sign * beyond, y)
        assert found[0] == pytest.approx(value + sign * slope * beyond, rel=1e-12)
        assert found[1] == slope
        assert loss.second(at + sign * beyond, y) == loss.second(at, y)


@pytest.mark.parametrize("order", ["C", "F"])
def test_softmax_sums_many_small_terms(order):
    # Added one by one to 1, terms of eps / 4 would vanish; pairwise they do not, in either memory order.
    u = np.full((3, 4000), -54 * math.log(2), order=order)
    u[:, 0], u[:, 1] = 30, 0
    value = Softmax().value(u, np.zeros(3, int))
    exact = math.log1p(math.exp(-30) * (1 + 3998 * math.exp(u[0, 2])))
    np.testing.assert_allclose(value, exact, rtol=Softmax().rounding * np.finfo(float).eps)


def test_bounded_and_linear_losses_at_the_end_of_the_range():
    u, y = np.array([1e300, -1e300]), np.ones(2)
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(BiWeight().value(u, y), [1, 1])
        np.testing.assert_array_equal(BiWeight().derivative(u, y), [0, 0])
        np.testing.assert_array_equal(Huber(1.0).value(u, y), [2e300, 2e300])
        np.testing.assert_array_equal(Logistic().value(u, y), [0, 1e300])
        np.testing.assert_array_equal(Logistic().derivative(u, y), [0, -1])
        np.testing.assert_array_equal(SquaredSigmoid().value(u, y), [0, 1])
        np.testing.assert_array_equal(Squared().value(u, y), [np.inf, np.inf])
        np.testing.assert_array_equal(Squared().derivative(u, y), [2e300, -2e300])
