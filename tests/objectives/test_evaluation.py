"""`evaluate` tells what was found and changes nothing; what a workspace remembers is never another function's."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    BlackBox,
    Huber,
    Logistic,
    Objective,
    Perturbed,
    QuadraticForm,
    Quantile,
    Squared,
    as_data,
)

RNG = np.random.default_rng(6)
N, D = 25, 3
X, Y = RNG.standard_normal((N, D)), RNG.standard_normal(N)
SIGNS, H = np.where(Y > 0, 1.0, -1.0), X.T @ X

FUNCTIONS = {
    "squares": lambda: Objective(Squared(), as_data(X, Y)),
    "squares, intercept": lambda: Objective(Squared(), as_data(X, Y), fit_intercept=True),
    "squares, sparse": lambda: Objective(Squared(), as_data(sp.csr_array(X), Y), fit_intercept=True),
    "logistic": lambda: Objective(Logistic(), as_data(X, SIGNS)),
    "logistic, intercept": lambda: Objective(Logistic(), as_data(X, SIGNS), fit_intercept=True),
    "logistic, sparse": lambda: Objective(Logistic(), as_data(sp.csr_array(X), SIGNS), fit_intercept=True),
    "form": lambda: QuadraticForm(H, X.T @ Y),
    "calls": lambda: BlackBox(lambda w: (np.cosh(w).sum(), np.sinh(w)), D, convex=True),
    "perturbed": lambda: Perturbed(Objective(Logistic(), as_data(X, SIGNS), fit_intercept=True), 0.3, np.ones(D)),
}
every = pytest.mark.parametrize("name", FUNCTIONS)
#: Reads of a tangent at a new point, and of a value there.
READS = {name: (2 if "logistic, " in name or name == "perturbed" else 1, 1) for name in FUNCTIONS}


@every
def test_the_point_stays_as_it_is(name):
    f = FUNCTIONS[name]()
    x = f.point(np.ones(D))
    found = f.evaluate(x)
    assert (x.intercept, x.of) == (None, ())
    assert found.point.handle is x.handle
    np.testing.assert_array_equal(found.point.w, np.ones(D))
    for part in ("point", "value", "tangent", "also", "inner"):
        with pytest.raises(FrozenInstanceError):
            setattr(found, part, None)


@every
def test_an_opened_function_remembers_and_counts_for_itself(name):
    f = FUNCTIONS[name]()
    x = f.point(np.ones(D))
    value = f(x)
    g = f.open()
    assert type(g) is type(f)
    assert g.passes == 0
    assert np.isnan(g.evaluate(x, tangent=False, read=False).value)
    assert g(x) == value
    assert f.passes == g.passes == READS[name][1]
    g.evaluate(f.point(np.zeros(D) + 0.5))
    assert f.passes == READS[name][1]
    assert g.fingerprint() == f.fingerprint()


@every
@pytest.mark.parametrize("of", [name for name in FUNCTIONS if name not in ("squares", "form")])
def test_a_point_of_another_function_gives_the_value_here(name, of):
    f, g, w = FUNCTIONS[name](), FUNCTIONS[of](), np.array([0.3, -1.0, 0.5])
    there = g.evaluate(g.point(w)).point
    expected = f.open().evaluate(f.point(w))
    found = f.evaluate(there)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(found.slope.gradient, expected.slope.gradient, rtol=1e-7, atol=1e-9)
    z = 0.5 * there + 0.5 * g.evaluate(g.point(2 * w)).point
    assert f(z) == pytest.approx(f(f.point(1.5 * w)), rel=1e-12)
    assert g(there) == pytest.approx(g.open()(g.point(w)), rel=1e-12), "and still its own value there"


@pytest.mark.parametrize("name", ["squares", "logistic", "logistic, intercept", "logistic, sparse", "perturbed"])
def test_further_values_come_with_the_read(name):
    f = FUNCTIONS[name]()
    z, x = f.point(np.ones(D)), f.point(np.array([0.5, 0.0, -1.0]))
    y = 0.5 * z + 0.5 * x
    found = f.evaluate(z, also=(x, y))
    assert f.passes == READS[name][0]
    for point, value in zip((x, y), found.also, strict=True):
        assert value.point.handle is point.handle
        assert value.tangent is None
        assert value.value == pytest.approx(f.open()(f.point(point.w)), rel=1e-12)
        assert not np.isnan(f.evaluate(point, tangent=False, read=False).value)
        assert f(point) == value.value
    assert found.value == pytest.approx(f.open()(f.point(z.w)), rel=1e-12)
    assert f.passes == READS[name][0]


@pytest.mark.parametrize("name", ["squares, sparse", "logistic, sparse", "logistic, intercept"])
def test_values_of_mixtures_are_free(name):
    f = FUNCTIONS[name]()
    x, v = f.point(np.ones(D)), f.point(np.array([0.5, 0.0, -1.0]))
    x, v = f.evaluate(x).point, f.evaluate(v).point
    before = f.passes
    for g in (0.0, 0.25, 1.0):
        z = (1 - g) * x + g * v
        assert not np.isnan(f.evaluate(z, tangent=False, read=False).value)
        assert f(z) == pytest.approx(f.open()(f.point(z.w)), rel=1e-12)
    assert f.passes == before


class Failing(Huber):
    """A loss that is interrupted when it is told to."""

    armed = False

    def value(self, u, y):
        if Failing.armed:
            raise KeyboardInterrupt
        return super().value(u, y)


@pytest.mark.parametrize("table", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_an_interrupted_pass_leaves_nothing_behind(table, monkeypatch):
    f = Objective(Failing(1.0), as_data(table, Y))
    x, v = f.point(np.ones(D)), f.point(np.full(D, 2.0))
    value = f.evaluate(x).value
    before = f.passes
    monkeypatch.setattr(Failing, "armed", True)
    with pytest.raises(KeyboardInterrupt):
        f.evaluate(v)
    monkeypatch.setattr(Failing, "armed", False)
    assert np.isnan(f.evaluate(v, tangent=False, read=False).value)
    assert f.passes == before
    assert f(x) == value
    assert f.evaluate(v).value == pytest.approx(Objective(Huber(1.0), as_data(X, Y))(v), rel=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_values_of_further_points_under_a_smoothed_loss(intercept):
    """They are those of the loss that is reported, and come with the same read."""
    f = Objective(Quantile(0.3, delta=0.5), as_data(X, Y), fit_intercept=intercept).reported
    x, other = f.point(np.full(D, 0.2)), f.point(np.full(D, -0.4))
    opened = f.open()
    found = opened.evaluate(x, (other,))
    assert opened.passes <= 1 + intercept  # an intercept is searched for on images
    assert [one.value for one in (found, *found.also)] == [f(x), f(other)]
