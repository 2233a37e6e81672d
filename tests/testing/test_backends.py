"""Every data class keeps the laws of the border: what objectives find does not depend on where the rows are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    ConstrainedClassifier,
    ConstrainedRegressor,
    CorrectivePrimalAveraging,
    Logistic,
    PrimalAveraging,
    Squared,
    as_data,
)
from projfree.data.gram import largest_eigenvalue
from projfree.losses import LOSSES
from projfree.solvers import SOLVERS
from projfree.testing import SealedData, backends

BACKENDS = {
    "sealed": SealedData,
    "sealed, all forgotten": lambda X, y, s: SealedData(X, y, s, forgets=1.0),
    "sparse": lambda X, y, s: as_data(sp.csr_array(X), y, s),
    "fortran": lambda X, y, s: as_data(np.asfortranarray(X), y, s),
    "view of sealed": lambda X, y, s: SealedData(2.0 * X + 1.0, y, s).standardized(
        np.ones(X.shape[1]), np.full(X.shape[1], 2.0)
    ),
}


#: The strictest in the fast tests; of the others the evaluations, and all that they are used for where there is time.
STRICT = ("sealed", "view of sealed")


@pytest.fixture(params=list(BACKENDS))
def make(request):
    return BACKENDS[request.param]


@pytest.fixture(params=[name if name in STRICT else pytest.param(name, marks=pytest.mark.slow) for name in BACKENDS])
def strict(request):
    return BACKENDS[request.param]


@pytest.fixture(
    params=["sealed", *(pytest.param(name, marks=pytest.mark.slow) for name in BACKENDS if name != "sealed")]
)
def sealed(request):
    return BACKENDS[request.param]


def test_the_laws_know_every_solver_and_every_loss():
    solvers = (*backends.FIXED, *backends.SEARCHING, *backends.QUADRATIC)
    assert {type(solver) for solver in solvers if solver != "auto"} == set(SOLVERS)
    assert {type(loss) for loss, _ in backends.LOSSES} == set(LOSSES)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "outputs"), backends.LOSSES, ids=repr)
def test_evaluations(make, loss, outputs, intercept):
    backends.check_evaluations(make, loss, outputs, intercept)


@pytest.mark.parametrize("solver", backends.FIXED, ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "outputs"), backends.LOSSES, ids=repr)
def test_fixed_steps(sealed, loss, outputs, intercept, solver):
    backends.check_fixed(sealed, loss, outputs, intercept, solver)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("loss", "outputs", "solver"),
    [
        (loss, outputs, solver)
        for loss, outputs in backends.LOSSES
        for solver in (*backends.SEARCHING, *(backends.QUADRATIC if isinstance(loss, Squared) else ()))
    ],
    ids=repr,
)
def test_searches(sealed, loss, outputs, intercept, solver):
    backends.check_searching(sealed, loss, outputs, intercept, solver)


def test_paths_and_checkpoints(strict):
    backends.check_path(strict)
    backends.check_checkpoint(strict)


SHIFT, SCALE = np.linspace(-1.0, 2.0, backends.FEATURES), np.linspace(0.5, 3.0, backends.FEATURES)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "outputs"), backends.LOSSES, ids=repr)
def test_views_of_rows_out_of_reach(loss, outputs, intercept):
    """Centred and scaled features over sealed rows are those of the table that was centred and scaled."""

    def made(X, y, weight):
        raw = X * SCALE + SHIFT
        return SealedData(raw, y, weight).standardized(SHIFT, SCALE)

    backends.check_evaluations(made, loss, outputs, intercept)
    backends.check_fixed(made, loss, outputs, intercept, PrimalAveraging())


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("columns", [4, 40])
def test_measures_of_views_of_views(columns, centred):
    """What bounds need of a view of a view of sealed rows holds for the rows themselves, also where they are wide."""
    rng = np.random.default_rng(columns)
    X, shift, scale = (
        rng.normal(1.0, 2.0, (20, columns)),
        rng.normal(size=(2, columns)),
        rng.uniform(0.5, 3, (2, columns)),
    )
    Z = ((X - shift[0]) / scale[0] - shift[1]) / scale[1]
    view = SealedData(X, np.ones(20)).standardized(shift[0], scale[0]).standardized(shift[1], scale[1])
    norms = np.linalg.norm(Z, axis=1)
    assert view.column_stats.row_norm >= norms.max()
    assert view.column_stats.mean_square >= np.mean(norms**2)
    np.testing.assert_allclose(view.column_stats.deviation(view.rounding_units, 0.0), Z.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(view.column_stats.mean, Z.mean(axis=0), rtol=1e-12, atol=1e-13)
    about = Z - Z.mean(axis=0) if centred else Z
    largest = np.linalg.eigvalsh(about.T @ about / 20)[-1]
    assert largest <= largest_eigenvalue(view, centred=centred) <= view.column_stats.mean_square * (1.0 + 1e-12)


def test_rows_of_sealed_data_cannot_be_seen():
    data = SealedData(np.eye(3), np.ones(3), np.ones(3))
    ways = ("run", "take", "tables", "apply", "second_moments", "y", "weight")
    assert not any(hasattr(data, way) for way in ways)


SETTINGS = [
    {},
    {"p": 1.0},
    {"standardize": True},
    {"standardize": True, "fit_intercept": False},
    {"radius": None},
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


@pytest.mark.parametrize("setting", [{"free": [0]}, {"task": 0}], ids=repr)
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
