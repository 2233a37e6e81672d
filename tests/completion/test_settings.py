"""What settings and weights may be, and what is said of others."""

import numpy as np
import pytest
from scipy import sparse

from projfree.estimators.completion import MatrixCompletion

RNG = np.random.default_rng(0)
ROWS, COLS = np.nonzero(RNG.random((30, 20)) < 0.5)
VALUES = RNG.standard_normal(len(ROWS)) + 3.0
FEATURES = RNG.standard_normal((30, 3))


def _fit(weight=None, times=1.0, **settings):
    model = MatrixCompletion(**{"rank": 3, "max_sweeps": 3, **settings})
    return model.fit((ROWS, COLS, times * VALUES), sample_weight=weight)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"implicit": 1e300}, r"implicit=...\)` must be between 1e-06 and 1e\+06, or 0 for none, got 1e\+300"),
        ({"implicit": 1e-300}, r"implicit=...\)` must be between 1e-06 and 1e\+06, or 0 for none, got 1e-300"),
        ({"features_weight": 1e300}, r"features_weight=...\)` must be between 1e-06 and 1e\+06, got 1e\+300"),
        ({"ridge": 1e-9}, r"ridge=...\)` must be between 1e-06 and 1e\+12, got 1e-09; `offsets=False`"),
        ({"weight_power": 1e5}, r"weight_power=...\)` must be at most 10, got 100000"),
        (
            {"random_state": -1},
            r"random_state=...\)` must be None, a whole number from 0 to 2\*\*32 - 1 or a .* got -1",
        ),
        ({"loss": ["squared"]}, r"loss=...\)` must be one of squared, huber, logistic, got \['squared'\]"),
        ({"certify": np.array([True, False])}, r"certify=...\)` must be a bool or 'sharp', got array"),
    ],
)
def test_settings_out_of_range_are_named(settings, sentence):
    with pytest.raises(ValueError, match=r"^`MatrixCompletion\(" + sentence):
        _fit(**settings)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"solver": "x"}, r"solver=...\)` must be None or a Solver such as `CorrectivePrimalAveraging\(\)`, got 'x'"),
        ({"early_stopping": "no"}, r"early_stopping=...\)` must be True or False, got 'no'"),
        ({"checkpoint": 3}, r"checkpoint=...\)` must be a folder or a `Checkpoint`, got 3"),
        ({"clip": "no"}, r"clip=...\)` must be True or False, got 'no'"),
    ],
)
def test_settings_of_another_kind_are_named(settings, sentence):
    with pytest.raises(TypeError, match=r"^`MatrixCompletion\(" + sentence):
        _fit(**settings)


@pytest.mark.parametrize("size", [1e-300, 5e-324, 1e308])
def test_weights_too_small_or_large_to_add_are_refused(size):
    with pytest.raises(ValueError, match=r"^`sample_weight` must have its largest between 1e-100 and 1e\+100, got .*"):
        _fit(np.full(len(ROWS), size))


@pytest.mark.parametrize(
    ("name", "settings"), [("implicit", {"implicit": 1.0}), ("features_weight", {"user_features": FEATURES})]
)
def test_ratings_that_features_outweigh_by_far_are_refused(name, settings):
    with pytest.raises(ValueError, match=rf"^`MatrixCompletion\({name}=...\)` must be at most 1e\+15 times the square"):
        _fit(times=1e-14, **settings)
    assert np.isfinite(_fit(times=1e-7, **settings).predict((ROWS, COLS))).all()


def test_the_way_a_matrix_is_stored_does_not_change_the_model():
    table = sparse.coo_array((VALUES, (ROWS, COLS)), shape=(30, 20))
    found = [MatrixCompletion(rank=3, certify=False).fit(given) for given in (table.tocsr(), table.tocsc())]
    assert found[0].radius_ == pytest.approx(found[1].radius_)
    np.testing.assert_allclose(*(model.predict((ROWS, COLS)) for model in found), rtol=1e-6)


def test_a_sparse_vector_is_no_matrix():
    with pytest.raises(ValueError, match=r"^`X` must be a SciPy sparse matrix, .* got a sparse array of shape \(3,\)"):
        MatrixCompletion().fit(sparse.coo_array(np.ones(3)))


@pytest.mark.parametrize("zero", ["a\0", b"a\0"])
def test_labels_that_numpy_would_cut_are_refused(zero):
    with pytest.raises(ValueError, match=r"^`users` must not end in zero characters, which NumPy drops, got"):
        MatrixCompletion().fit([(zero[:1], 1, 1.0), (zero, 1, 2.0)])
