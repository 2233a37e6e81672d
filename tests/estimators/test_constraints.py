"""Estimators with linear constraints on their coefficients: by name or number, with and without scaling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from projfree import (
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    InfeasibleError,
    LpBall,
    load,
)
from projfree.sets import bounds, covariance, sums_to

COLUMNS = ["age", "price", "b1", "b2", "b3", "z"]
ASKED = {
    "signs": {"age": 1},
    "order": [["b1", "b2", "b3"]],
    "bounds": {"price": (None, -0.2)},
    "constraints": sums_to(1.0, ["b1", "b2", "b3", "z"]),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((300, 6)) * [1, 10, 0.1, 1, 1, 5] + [0, 3, 0, 1, 0, 0], columns=COLUMNS)
    u = X.to_numpy() @ [0.5, -0.1, 2, 1, 3, 0.1]
    return X, u + rng.standard_normal(300)


def holds(coef):
    return coef[0] >= 0 and np.all(np.diff(coef[2:5]) >= 0) and coef[1] <= -0.2 and abs(coef[2:].sum() - 1) <= 1e-12


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_coefficients_hold_the_constraints_in_their_own_units(table, loss, standardize, p):
    X, y = table
    y = np.floor(np.exp(np.clip(0.3 * y, -2, 2))) if loss == "poisson" else y
    model = ConstrainedRegressor(loss, p=p, radius=3.0, standardize=standardize, **ASKED).fit(X, y)
    assert holds(model.coef_)
    assert model.result_.status.converged
    assert model.verify(X, y).ok
    assert model.multipliers_["price <= -0.2"] > 0.0
    assert set(model.multipliers_) <= set(model.ball_.names)


@pytest.mark.parametrize("seed", [7, 13, 19])
def test_inequalities_hold_exactly_where_columns_have_very_different_scales(seed):
    """Rows that are 1e-8 of the radius wide in scaled columns are not equalities."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 60)), int(rng.integers(2, 10))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-4, 4, d) + rng.standard_normal(d) * 10.0 ** rng.uniform(
        -2, 2
    )
    y = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3)
    chain = rng.permutation(d)[: int(rng.integers(2, d + 1))].tolist()
    signs = {int(rng.integers(d)): int(rng.choice([-1, 1]))}
    p = [1, 1.5, 2, 3, np.inf][seed % 5]
    asked = {
        "order": [chain],
        "signs": signs,
        "bounds": {chain[-1]: (None, 0.05)},
        "radius": 10.0 ** rng.uniform(-2, 2),
    }
    loss = ["squared", "huber"][seed // 2 % 2]
    model = ConstrainedRegressor(loss, p=p, standardize=True, tol=1e-6, **asked).fit(X, y)
    w = model.coef_
    assert np.all(np.diff(w[chain]) >= 0.0)
    assert all(w[j] * s >= 0.0 for j, s in signs.items())
    assert w[chain[-1]] <= 0.05
    assert model.result_.status.converged
    assert model.verify(X, y).ok


def test_numbers_name_columns_too_and_sparse_tables_agree(table):
    X, y = table
    named = ConstrainedRegressor(radius=2.0, **ASKED).fit(X, y)
    asked = {
        "signs": {0: 1},
        "order": [[2, 3, 4]],
        "bounds": {1: (None, -0.2)},
        "constraints": [sums_to(1.0, range(2, 6))],
    }
    numbered = ConstrainedRegressor(radius=2.0, **asked).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(numbered.coef_, named.coef_)
    sparse = ConstrainedRegressor(radius=2.0, tol=1e-9, **asked).fit(sp.csr_array(X.to_numpy()), y)
    np.testing.assert_allclose(sparse.coef_, named.coef_, atol=1e-3)


def test_without_active_constraints_the_fit_is_that_of_the_ball(table):
    X, y = table
    free = ConstrainedRegressor(radius=1.0, tol=1e-9).fit(X, y)
    bounded = ConstrainedRegressor(radius=1.0, tol=1e-9, bounds={"b1": (-5, 5)}).fit(X, y)
    np.testing.assert_allclose(bounded.coef_, free.coef_, atol=1e-4)
    assert bounded.multipliers_ == {}
    assert free.multipliers_ == {}
    assert bounded.multiplier_ == pytest.approx(free.multiplier_, rel=1e-3)


def test_saved_models_and_clones_keep_their_constraints(table, tmp_path):
    X, y = table
    model = ConstrainedRegressor(radius=2.0, standardize=True, **ASKED).fit(X, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.multipliers_ == model.multipliers_
    assert again.verify(X, y).ok
    np.testing.assert_array_equal(clone(again).fit(X, y).coef_, model.coef_)


def test_classifiers_are_fair_and_positive(table):
    X, y = table
    labels, group = np.where(y > 0, "yes", "no"), (X["z"] > 0).to_numpy(dtype=float)
    model = ConstrainedClassifier(
        radius=1.0, standardize=True, positive=True, constraints=covariance(X, group, 0.05)
    ).fit(X, labels)
    u = model.decision_function(X)
    assert abs(np.mean((group - group.mean()) * u)) <= 0.05 + 1e-12
    assert np.all(model.coef_ >= 0.0)
    assert model.verify(X, labels).ok


@pytest.mark.filterwarnings("ignore:.*the best radius")
def test_radius_by_cross_validation(table):
    X, y = table
    model = ConstrainedRegressorCV(radii=[1.0, 2.0, 3.0, 50.0], **ASKED).fit(X, y)
    assert holds(model.coef_)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_grid_of_radii_begins_at_the_smallest_one_with_points(table, standardize):
    X, y = table
    for asked, least in (({"bounds": {"b1": (3.0, None)}}, 3.0), ({"signs": {"age": 1}}, 0.0)):
        model = ConstrainedRegressorCV(radii=8, standardize=standardize, **asked).fit(X, y)
        assert len(model.path_.radii) == 8
        assert model.score(X, y) >= 0.5
        assert model.verify(X, y).ok
        if not standardize and least:
            assert least <= model.path_.radii[0] <= 1.011 * least
    labels = np.where(y > np.median(y), 1, 0)
    found = ConstrainedClassifierCV(radii=5, signs={"z": -1}).fit(X, labels)
    assert found.coef_[..., 5] <= 0.0


def test_a_grid_of_radii_where_nothing_but_zero_is_left(table):
    zero = {"bounds": dict.fromkeys(COLUMNS, (0, 0))}
    X, y = table
    for settings, targets in ((zero, y), ({"signs": {"age": 1}}, np.ones(len(y)))):
        model = ConstrainedRegressorCV(radii=4, **settings).fit(X, targets)
        np.testing.assert_array_equal(model.coef_, 0.0)


@pytest.mark.parametrize("p", [1, 2])
def test_targets_in_a_column_are_one_output(table, p):
    X, y = table
    column = ConstrainedRegressor(p=p, radius=3.0, standardize=True, tol=1e-9, **ASKED).fit(X, np.reshape(y, (-1, 1)))
    flat = ConstrainedRegressor(p=p, radius=3.0, standardize=True, tol=1e-9, **ASKED).fit(X, y)
    np.testing.assert_allclose(np.ravel(column.coef_), flat.coef_, atol=1e-5)


@pytest.mark.parametrize("p", [1, 1.5, 2])
@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_free_columns_hold_constraints_too(table, loss, p):
    """With a ball so large that it holds nothing back they are what they are without `free`."""
    X, y = table
    y = np.floor(np.exp(np.clip(0.3 * y, -2, 2))) if loss == "poisson" else y
    for standardize in (False, True):
        settings = {"standardize": standardize, "p": p, **ASKED}
        model = ConstrainedRegressor(loss, radius=3.0, free=["z", "b1", "b3", "b2"], **settings).fit(X, y)
        assert holds(model.coef_)
        assert model.verify(X, y).ok
        inner = model.coef_[:2] * (X.std(axis=0, ddof=0).to_numpy()[:2] if standardize else 1.0)
        assert np.linalg.norm(inner, p) <= 3.0 * (1 + 1e-12)
        large = ConstrainedRegressor(loss, radius=50.0, free=["age", "b1"], **settings).fit(X, y)
        whole = ConstrainedRegressor(loss, radius=50.0, **settings).fit(X, y)
        assert large.result_.value == pytest.approx(whole.result_.value, rel=1e-5)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_unit_of_a_free_column_does_not_matter(table, loss):
    X, y = table
    settings = {"radius": 1.0, "free": ["z", "b1"], "signs": {"age": -1}, "order": [["b2", "b3"]], "tol": 1e-6}
    expected = ConstrainedRegressor(loss, **settings).fit(X, y)
    for scale in (1e-9, 1e6):
        scaled = X.assign(z=X["z"] * scale)
        model = ConstrainedRegressor(loss, **settings, time_limit=20).fit(scaled, y)
        assert model.result_.status.converged
        assert model.verify(scaled, y).ok
        assert not model.standardize_
        np.testing.assert_allclose(model.predict(scaled), expected.predict(X), atol=0.02)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"radius": None}, "need a `radius`"),
        ({"signs": {"agee": 1}}, "must name columns of `X`, .* got 'agee'"),
        ({"signs": {9: 1}}, "below 6, got 9"),
        ({"signs": {"age": 2}}, "must be 1, -1 or 0"),
        ({"signs": {"age": np.ones(2)}}, "must be 1, -1 or 0"),
        ({"signs": ["age"]}, "must be a dictionary"),
        ({"order": ["b1", "b2"]}, "list of lists"),
        ({"order": [0, 1]}, "list of lists"),
        ({"bounds": {"age": 3}}, "must be a pair"),
        ({"bounds": {"age": (2, 1)}}, "must not exceed"),
        ({"constraints": 3}, "must be a Rows"),
        ({"bounds": {"age": (9, None)}}, "no point of .*age >= 9"),
    ],
)
def test_bad_settings_get_one_sentence(table, settings, message):
    model = ConstrainedRegressor(**{"radius": 1.0, "signs": {"age": 1}, **settings})
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*table)


def test_settings_that_ask_for_nothing_change_nothing(table):
    plain = ConstrainedRegressor(radius=1.0).fit(*table)
    none = ConstrainedRegressor(radius=1.0, signs={"age": 0}, order=[], bounds={}, constraints=[]).fit(*table)
    np.testing.assert_array_equal(none.coef_, plain.coef_)
    assert ConstrainedRegressor(signs={}).fit(*table).radius_ is not None


def test_constraints_that_say_the_same_have_a_multiplier_each(table):
    X, y = table
    rows = [bounds(["age"], None, 0.125), bounds(["age"], None, 0.125), bounds(["b1"], None, -1.0)]
    model = ConstrainedRegressor(radius=4.0, constraints=rows, tol=1e-8).fit(X, y)
    total = sum(multiplier for name, multiplier in model.multipliers_.items() if name.startswith("age"))
    one = ConstrainedRegressor(radius=4.0, constraints=rows[1:], tol=1e-8).fit(X, y)
    assert total == pytest.approx(one.multipliers_["age <= 0.125"], rel=1e-4)


def test_opposite_signs_are_zero(table):
    X, y = table
    model = ConstrainedRegressor(radius=2.0, positive=True, signs={"age": -1}, standardize=True).fit(X, y)
    assert model.coef_[list(X.columns).index("age")] == 0.0
    assert model.verify(X, y).ok


def test_several_outputs_are_refused(table):
    X = table[0]
    with pytest.raises(ValueError, match="need one output"):
        ConstrainedClassifier(radius=1.0, signs={0: 1}).fit(X, np.arange(300) % 3)


def test_conflicts_name_the_columns(table):
    with pytest.raises(InfeasibleError, match="age >= 2") as error:
        ConstrainedRegressor(norm=LpBall(2, 1.0), bounds={"age": (2, None)}).fit(*table)
    assert error.value.names == ("age >= 2",)
