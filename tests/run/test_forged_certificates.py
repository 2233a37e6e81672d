"""Forged certificates are refused however large the intercept is, and honest ones are accepted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    ConstrainedClassifier,
    ConstrainedRegressor,
    FrankWolfe,
    Huber,
    LpBall,
    Objective,
    Quantile,
    Squared,
    as_data,
    minimize,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 6))
Y = X @ RNG.standard_normal(6) + RNG.standard_normal(200)
OFFSETS = (0.0, 1e3, 1e6, 1e9)
LOSSES = (Squared(), Huber(1.0), Quantile(0.3, delta=0.5))


def claims(certificate, part=1e-3):
    """What is refused: each claim is better by a thousandth of the value."""
    off = part * abs(certificate.value)
    yield replace(certificate, value=certificate.value - off)
    yield replace(certificate, gap=certificate.gap - off)
    if certificate.bound is not None:
        yield replace(certificate, bound=certificate.bound + off)
        yield replace(certificate, bound=certificate.bound + off, gap=certificate.gap - off)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("max_iter", [1, 300])
def test_forgeries_are_refused_at_every_offset(loss, offset, max_iter):
    y = Y + offset
    f = Objective(loss, as_data(X, y), fit_intercept=True)
    own = minimize(f, LpBall(1.5, 1.0), FrankWolfe(), max_iter=max_iter, tol=1e-6).certificate
    order = RNG.permutation(len(y))
    assert own.verify(X, y).ok
    assert own.verify(np.asfortranarray(X[order]), y[order]).ok
    assert replace(own, bound=own.bound - own.value, gap=own.gap + own.value).verify(X, y).ok, "a lower bound is true"
    assert not any(forged.verify(X, y).ok for forged in claims(own))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_one_changed_row_is_noticed(loss, offset):
    y = Y + offset
    own = minimize(Objective(loss, as_data(X, y), fit_intercept=True), LpBall(1.5, 1.0), tol=1e-6).certificate
    row = int(np.argmax(np.abs(Y)))
    y[row] += np.sign(Y[row]) * max(1.0, 0.01 * len(y) * own.value)
    changed = Objective(loss, as_data(X, y), fit_intercept=True).reported
    moved = abs(changed(changed.point(own.w, own.intercept)) - own.value)
    assert moved > 1e-3 * own.value
    assert not own.verify(X, y).ok


@pytest.mark.parametrize("far", [1e6, 1e12])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_witness_far_away_excuses_nothing(loss, far):
    f = Objective(loss, as_data(X, Y), fit_intercept=True)
    own = minimize(f, LpBall(1.5, 1.0), FrankWolfe(), max_iter=1).certificate
    claim = replace(own, bound=own.value, gap=0.0)
    assert not replace(claim, witness=far * own.witness).verify(X, Y).ok
    assert not replace(claim, witness_intercept=np.asarray(own.witness_intercept + far)).verify(X, Y).ok


STORAGES = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}


@pytest.mark.parametrize("there", STORAGES)
@pytest.mark.parametrize("here", STORAGES)
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_scaled_fits_are_verified_on_every_storage(here, there, offset):
    table, y = (X + offset) * [1.0, 1e-3, 1e3, 1.0, 1.0, 1.0], Y
    for model, target in (
        (ConstrainedRegressor(p=1.5, radius=0.5, standardize=True), y),
        (ConstrainedRegressor(p=1.5, radius=0.5, standardize=True, loss="huber"), y),
        (ConstrainedClassifier(p=1.5, radius=0.5, standardize=True), y > 0),
    ):
        model.fit(STORAGES[here](table), target)
        assert model.verify(STORAGES[there](table), target).ok


def test_the_settings_of_the_fit_count():
    model = ConstrainedRegressor(p=1.5, radius=0.5, standardize=True).fit(X, Y)
    model.set_params(fit_intercept=False, standardize=False, free=[0], p=1.0)
    assert model.verify(X, Y).ok


def test_another_scale_is_another_problem():
    model = ConstrainedRegressor(p=1.5, radius=0.5, standardize=True).fit(X, Y)
    shift, scale = model.fit_params_["standardize"]
    model.fit_params_ = {**model.fit_params_, "standardize": (shift, 1.00001 * scale)}
    assert not model.verify(X, Y).ok


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_coefficients_are_those_of_the_certificate(loss, standardize, offset):
    table, y = X + min(offset, 1e3), Y + offset
    model = ConstrainedRegressor(p=1.5, radius=0.5, standardize=standardize, loss=loss).fit(table, y)
    assert model.verify(table, y).ok
    coef, intercept = model.coef_, model.intercept_
    model.coef_ = 1.001 * coef
    assert not model.verify(table, y).ok
    model.coef_, model.intercept_ = coef, intercept + 1e-3 * (1.0 + 1e-6 * offset)
    assert not model.verify(table, y).ok
