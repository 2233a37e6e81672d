"""Every data class keeps the laws of the border: what objectives find does not depend on where the rows are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    Checkpoint,
    ConstrainedClassifier,
    ConstrainedRegressor,
    CorrectivePrimalAveraging,
    Logistic,
    LpBall,
    Objective,
    as_data,
    minimize,
)
from projfree.data import Standardized
from projfree.testing import SealedData, backends

BACKENDS = {
    "sealed": SealedData,
    "sealed, all forgotten": lambda X, y, s: SealedData(X, y, s, partitions=7, seed=3, forgets=1.0),
    "sparse": lambda X, y, s: as_data(sp.csr_array(X), y, s),
    "fortran": lambda X, y, s: as_data(np.asfortranarray(X), y, s),
    "view of sealed": lambda X, y, s: Standardized(
        SealedData(2.0 * X + 1.0, y, s), np.ones(X.shape[1]), np.full(X.shape[1], 2.0)
    ),
}


@pytest.fixture(params=list(BACKENDS))
def make(request):
    return BACKENDS[request.param]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "outputs"), backends.LOSSES, ids=repr)
def test_evaluations(make, loss, outputs, intercept):
    backends.check_evaluations(make, loss, outputs, intercept)


@pytest.mark.parametrize("solver", backends.FIXED, ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "outputs"), backends.LOSSES, ids=repr)
def test_fixed_steps(make, loss, outputs, intercept, solver):
    backends.check_fixed(make, loss, outputs, intercept, solver)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("loss", "outputs", "solver"),
    [
        (loss, outputs, solver)
        for loss, outputs in backends.LOSSES
        for solver in (*backends.SEARCHING, *(backends.QUADRATIC if loss.quadratic else ()))
    ],
    ids=repr,
)
def test_searches(make, loss, outputs, intercept, solver):
    backends.check_searching(make, loss, outputs, intercept, solver)


def test_paths_and_checkpoints(make):
    backends.check_path(make)
    backends.check_checkpoint(make)


def test_rows_of_sealed_data_cannot_be_seen():
    data = SealedData(np.eye(3), np.ones(3), np.ones(3))
    for vector in (data.y, data.weight):
        with pytest.raises(TypeError):
            np.asarray(vector)
        with pytest.raises(TypeError):
            len(vector)
        with pytest.raises(TypeError):
            vector[0]
    with pytest.raises(TypeError, match="cannot be seen"):
        data.apply(np.ones(3))


SETTINGS = [
    {},
    {"p": 1.0},
    {"standardize": True},
    {"standardize": True, "fit_intercept": False},
    {"radius": "auto"},
    {"solver": CorrectivePrimalAveraging(), "standardize": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_fits(settings):
    X, y, s = backends.table(Logistic(), 0)
    model = ConstrainedClassifier(**settings).fit(SealedData(X, y, s))
    other = ConstrainedClassifier(**settings).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2e-3)
    assert model.result_.bound <= other.result_.value * (1.0 + 1e-12)
    assert other.result_.bound <= model.result_.value * (1.0 + 1e-12)
    value = X[:, 0] + 2.0 * X[:, 1]
    model = ConstrainedRegressor(**settings).fit(SealedData(X, value, s))
    other = ConstrainedRegressor(**settings).fit(X, value, sample_weight=s)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2e-3)


@pytest.mark.parametrize("setting", [{"early_stopping": True}, {"free": [0]}, {"task": 0}], ids=repr)
def test_fits_that_look_at_single_rows_say_so(setting):
    X, y, s = backends.table(Logistic(), 0)
    with pytest.raises(ValueError, match="looks at single rows"):
        ConstrainedClassifier(**setting).fit(SealedData(X, y, s))


def test_a_data_class_brings_its_own_targets():
    X, y, s = backends.table(Logistic(), 0)
    with pytest.raises(TypeError, match="takes targets and weights from the data"):
        ConstrainedClassifier().fit(SealedData(X, y, s), y)


def test_several_classes_are_encoded_where_the_rows_are():
    X, y, s = backends.table(backends.LOSSES[-1][0], 3)
    model = ConstrainedClassifier().fit(SealedData(X, y, s))
    other = ConstrainedClassifier().fit(X, y, sample_weight=s)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2e-3)


def test_steps_are_small_and_survive_pickling(monkeypatch, tmp_path):
    """No step holds a number a row: a step that travels to the rows is of the size of a parameter."""
    from projfree.testing import sealed

    sizes = []

    def sent(thing):
        text = pickle.dumps(thing)
        sizes.append(len(text))
        return pickle.loads(text)

    monkeypatch.setattr(sealed, "_sent", sent)
    X, y, s = backends.table(Logistic(), 0)
    X, y, s = np.tile(X, (20, 1)), np.tile(y, 20), np.tile(s, 20)
    f = Objective(Logistic(), SealedData(X, y, s), fit_intercept=True)
    for solver in backends.SEARCHING:
        minimize(f, LpBall(1.5, radius=1.0), solver, max_iter=20, callbacks=[Checkpoint(tmp_path / "run", 5)])
    sizes = [size for size in sizes if size]
    assert max(sizes) < 4_000 < len(y)
