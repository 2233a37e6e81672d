"""A certificate convinces someone who has nothing but the data, and no one if it was tampered with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from solvers.catalogue import BENT, CONVEX, PROBLEMS, X, Y, pairs, problem, solver

from projfree import Certificate, FrankWolfe, LpBall, Objective, Softmax, Squared, as_data, minimize
from projfree.data import DenseData

BALL = LpBall(1.5, 1.0)
WITH_DATA = [name for name in PROBLEMS if name not in ("form", "calls")]
SOME = dict.fromkeys(pairs(problems=("squares, intercept", "biweight")) + pairs(("PA", "FW, exact"), WITH_DATA))


def data_of(f):
    f = f.reported
    return f.data.X, f.data.y


@pytest.mark.parametrize(("name", "case"), SOME)
def test_honest_results_are_verified(name, case):
    f = problem(case)
    result = minimize(f, BALL, solver(name), max_iter=15, tol=1e-4)
    found = result.certificate.verify(*data_of(f))
    assert found.ok, found
    assert found.feasible
    assert found.value == pytest.approx(result.value, rel=1e-12)
    if case in BENT:
        assert found.bound is None
        assert found.gap == pytest.approx(result.gap, rel=1e-6, abs=1e-10)
    else:
        assert found.bound == pytest.approx(result.certificate.bound, rel=1e-10, abs=1e-12)
        assert found.gap == found.value - found.bound


def test_data_are_needed():
    with pytest.raises(TypeError, match=r"`verify` needs the data"):
        minimize(problem("squares"), BALL, max_iter=1).certificate.verify()


@pytest.mark.parametrize("case", ["squares", "squares, intercept", "logistic", "logistic, intercept", "biweight"])
def test_one_read(case, monkeypatch):
    f = problem(case)
    certificate, reads = minimize(f, BALL, max_iter=9).certificate, []
    run = DenseData.run
    monkeypatch.setattr(DenseData, "run", lambda self, work: (reads.append(self.n), run(self, work))[1])
    assert certificate.verify(*data_of(f)).ok
    assert reads == [60]


@pytest.mark.parametrize("case", ["squares, intercept", "logistic, intercept"])
def test_another_order_of_rows_will_do(case):
    f = problem(case)
    certificate = minimize(f, BALL, tol=1e-9, max_iter=300).certificate
    order = np.random.default_rng(0).permutation(60)
    X, y = data_of(f)
    assert certificate.verify(X[order], y[order]).ok
    assert certificate.verify(np.asfortranarray(X), y).ok


def test_weights_and_several_outputs():
    weight, y = np.arange(1.0, 61.0), np.arange(60) % 3
    f = Objective(Softmax(), as_data(X, y, weight), fit_intercept=True)
    certificate = minimize(f, BALL, tol=1e-4).certificate
    assert certificate.verify(X, y, weight).ok
    assert not certificate.verify(X, y).ok


TAMPERED = {
    "a better value": lambda c: replace(c, value=c.value * 0.99),
    "a worse value": lambda c: replace(c, value=c.value * 1.01),
    "another point": lambda c: replace(c, w=c.w * 0.9),
    "a point outside": lambda c: replace(c, w=c.w * 1.5),
    "a higher bound": lambda c: replace(c, bound=c.bound + 0.01 * abs(c.value)),
    "a higher bound and smaller gap": lambda c: replace(c, bound=c.value - 1e-12, gap=1e-12),
    "a smaller gap": lambda c: replace(c, gap=c.gap / 10, tolerance=0.0),
    "another witness": lambda c: replace(c, witness=0.5 * c.witness),
    "a bound beyond the value": lambda c: replace(c, bound=2 * c.value, gap=-c.value),
    "a smaller set": lambda c: replace(c, ball=LpBall(1.5, 0.5)),
    "a larger set": lambda c: replace(c, ball=LpBall(1.5, 2.0)),
}


@pytest.mark.parametrize("case", ["squares", "logistic, intercept"])
@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_tampering_shows(case, tamper):
    f = problem(case)
    certificate = minimize(f, BALL, FrankWolfe(), max_iter=3, tol=0.0).certificate
    assert certificate.verify(*data_of(f)).ok
    assert not tamper(certificate).verify(*data_of(f)).ok


@pytest.mark.parametrize("case", ["biweight"])
@pytest.mark.parametrize("how", ["a better value", "another point", "a point outside", "a smaller gap"])
def test_tampering_shows_without_convexity(case, how):
    f = problem(case)
    certificate = minimize(f, BALL, max_iter=4, tol=0.0).certificate
    assert certificate.verify(*data_of(f)).ok
    assert not TAMPERED[how](certificate).verify(*data_of(f)).ok


@pytest.mark.parametrize("case", ["squares", "logistic, intercept"])
def test_other_data_show(case):
    f = problem(case)
    certificate = minimize(f, BALL, tol=1e-4).certificate
    X, y = data_of(f)
    assert not certificate.verify(X * 1.001, y).ok
    assert not certificate.verify(X, np.roll(y, 1)).ok
    assert not certificate.verify(X[:-1], y[:-1]).ok


@pytest.mark.parametrize("case", ["squares", "squares, intercept", "logistic, intercept"])
def test_a_point_outside_is_no_answer_whatever_its_value(case):
    """All that is claimed of the point is true, but that it lies in the set."""
    f, beyond = problem(case), LpBall(1.5, 3.0)
    certificate = minimize(f, BALL, FrankWolfe(), max_iter=3, tol=0.0).certificate
    far = max((beyond.lmo(sign * np.eye(f.shape[0])[j]) for j in range(f.shape[0]) for sign in (-1, 1)), key=f_of(f))
    looked = f.evaluate(f.point(far), tangent=False)
    claim = {"w": far, "intercept": looked.intercept, "value": looked.value, "gap": looked.value - certificate.bound}
    outside = replace(certificate, **claim)
    assert not outside.verify(*data_of(f)).ok
    assert outside.verify(*data_of(f)).feasible is False
    assert replace(outside, ball=beyond, bound=-1e3, gap=looked.value + 1e3).verify(*data_of(f)).feasible


def f_of(f):
    return lambda w: f(f.point(w))


def test_a_modest_claim_is_true_too():
    certificate = minimize(problem("squares"), BALL, max_iter=5, tol=0.0).certificate
    assert replace(certificate, bound=certificate.bound - 1.0, gap=certificate.gap + 1.0).verify(X, Y).ok


@pytest.mark.parametrize("case", CONVEX)
def test_the_certified_bound_is_at_most_the_best(case):
    result = minimize(problem(case), BALL, solver("PA"), max_iter=12, tol=0.0)
    assert isinstance(result.certificate, Certificate)
    assert result.certificate.bound <= result.bound
    assert result.certificate.gap >= result.gap


def test_the_data_are_checked_like_any():
    certificate = minimize(problem("squares"), BALL, max_iter=2).certificate
    with pytest.raises(ValueError, match=r"`y` must have one row for each of the 60 rows"):
        certificate.verify(X, Y[:-1])
    assert isinstance(certificate.loss, Squared)
