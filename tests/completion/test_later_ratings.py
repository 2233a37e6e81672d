"""`partial_fit`: the settings that it goes on with, and the ratings that it holds out."""

import numpy as np
import pytest
from scipy import sparse

from projfree import load
from projfree.estimators.completion import MatrixCompletion, MatrixCompletionCV

RNG = np.random.default_rng(0)
ROWS, COLS = np.nonzero(RNG.random((30, 20)) < 0.5)
VALUES = RNG.standard_normal(len(ROWS)) + 3.0
FEATURES = RNG.standard_normal((30, 3))
MORE = ([1, 40], [2, 3], [4.0, 2.0])


def _model(**settings):
    return MatrixCompletion(**{"rank": 3, "max_sweeps": 3, "radius": 5.0, "certify": False, **settings})


def _fitted(**settings):
    return _model(**settings).fit((ROWS, COLS, VALUES))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"p": 3.0}, r"^`MatrixCompletion\(p=...\)` must be below 2, got 3.0"),
        ({"rank": 0}, r"^`MatrixCompletion\(rank=...\)` must be a whole number of at least 1, got 0\.$"),
        ({"p": 1.5}, r"^`partial_fit` goes on with the problem of the fit, which had p=1.0, got p=1.5; call `fit`"),
        ({"loss": "huber"}, r"which had loss='squared', got loss='huber'"),
        ({"implicit": 0.5}, r"which had implicit='auto', got implicit=0.5"),
        ({"offsets": False}, r"which had offsets=True, got offsets=False"),
        ({"weight_power": 0.5}, r"which had weight_power=0.25, got weight_power=0.5"),
    ],
)
def test_another_problem_is_refused_and_the_model_stays(changed, sentence):
    model = _fitted()
    before = model.predict((ROWS, COLS))
    with pytest.raises(ValueError, match=sentence):
        model.set_params(**changed).partial_fit(MORE)
    np.testing.assert_array_equal(model.set_params(**_model().get_params()).predict((ROWS, COLS)), before)
    assert model.set_params(rank=4, max_sweeps=1).partial_fit(MORE).n_iter_ == 1


def test_a_loaded_model_refuses_another_problem_too(tmp_path):
    _fitted().save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"which had p=1.0, got p=1.5"):
        load(tmp_path / "model").set_params(p=1.5).partial_fit(MORE)


def test_a_model_without_ratings_is_saved_without_them_again(tmp_path):
    _fitted().save(tmp_path / "first", ratings=False)
    load(tmp_path / "first").save(tmp_path / "second", ratings=False)
    models = [load(tmp_path / name) for name in ("first", "second")]
    np.testing.assert_array_equal(*(model.predict((ROWS, COLS)) for model in models))


def test_other_columns_of_features_are_refused():
    model = _fitted(user_features=FEATURES)
    with pytest.raises(ValueError, match=r"^`user_features` must have the 3 columns of the fit, x0, x1, x2, got 2: x0"):
        model.set_params(user_features=FEATURES[:, :2]).partial_fit((ROWS[:3], COLS[:3], VALUES[:3]))
    with pytest.raises(ValueError, match=r"^`user_features` must be left out, since the model was fitted without"):
        _fitted().set_params(user_features=FEATURES).partial_fit((ROWS[:3], COLS[:3], VALUES[:3]))


def test_sparse_features_that_are_mappings_are_tables():
    table = sparse.random_array((30, 3), density=0.5, rng=np.random.default_rng(1))
    models = [_fitted(user_features=given) for given in (table.todok(), table.tocsr())]
    np.testing.assert_array_equal(*(model.predict((ROWS, COLS)) for model in models))


def test_a_search_goes_on_with_its_choice():
    search = MatrixCompletionCV(p=(1.0, 1.2), radii=[3.0, 5.0], cv=2, rank=3, max_sweeps=2, certify=False)
    search.fit((ROWS, COLS, VALUES))
    assert 40 in search.partial_fit(MORE).user_ids_


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_what_is_held_out_does_not_enter_the_model(loss):
    settings = {"loss": loss, "early_stopping": True, "n_iter_no_change": 50, "max_sweeps": 3, "clip": False}
    model = _fitted(**settings)
    held = model.held_out_
    other = _model(**settings).fit((ROWS, COLS, VALUES + np.where(held, 5.0, 0.0)))
    assert (other.base_, other.loss_) == (model.base_, model.loss_)
    np.testing.assert_array_equal(other.held_out_, held)


def test_pairs_that_were_held_out_stay_so():
    first = RNG.permutation(len(ROWS))[: len(ROWS) // 2]
    model = _model(early_stopping=True).fit((ROWS[first], COLS[first], VALUES[first]))

    def pairs(held):
        at = model.ratings_.part(model.held_out_ if held else ~model.held_out_)
        return set(zip(model.user_ids_[at.rows].tolist(), model.item_ids_[at.cols].tolist(), strict=True))

    held, fitted = pairs(True), pairs(False)
    model.partial_fit((ROWS, COLS, VALUES))
    assert held < pairs(True)
    assert fitted < pairs(False)
    assert len(pairs(True)) == pytest.approx(0.1 * len(ROWS), abs=2)
    held = pairs(True)
    model.partial_fit(([0], [0], [3.0]))
    assert pairs(True) == held
