"""What is left of a model when a fit raises or is interrupted: the old model or the new one, and never a mixture."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from completion.problems import entries

import projfree
from projfree import persist
from projfree.estimators.completion import MatrixCompletion, MatrixCompletionCV

RATINGS = entries(30, 20, 300, seed=3)
PAIRS = RATINGS[:2]
LIKES = (*PAIRS, (RATINGS[2] > 3.0) * 1.0)


def fitted(ratings=RATINGS, **settings):
    return MatrixCompletion(**{"rank": 3, "radius": 9.0, "certify": False, **settings}).fit(ratings)


def held(model):
    """What predictions, folding in and further fits depend on."""
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def assert_consistent(model):
    """The ids, the factors and the ratings have the same sizes, and everything can go on."""
    sizes = len(model.user_ids_), len(model.item_ids_)
    factors = model.factors_
    assert (len(factors.left), len(factors.right)) == (len(factors.rows), len(factors.cols)) == sizes
    assert (len(model.offset_model_.rows), len(model.offset_model_.cols)) == sizes
    assert model.ratings_.rows.max() < sizes[0]
    assert np.isfinite(model.predict((model.user_ids_[:9], model.item_ids_[:9]))).all()


@pytest.mark.parametrize(
    ("ratings", "wrong", "settings"),
    [
        (RATINGS, ([-1], [1], [1e20]), {}),
        (RATINGS, ([-1], [1], [1e20]), {"user_features": ([-1, *range(30)], np.arange(31.0)[:, None])}),
        (LIKES, ([-1], [1], [0.5]), {"loss": "logistic"}),
    ],
    ids=["extreme", "features", "no label"],
)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_ratings_that_are_refused_change_nothing(ratings, wrong, settings, call):
    model = fitted(ratings, **settings)
    before, known = held(model), model.predict(PAIRS)
    given = wrong if call == "partial_fit" else tuple(np.append(a, b) for a, b in zip(wrong, ratings, strict=True))
    with pytest.raises(ValueError, match=r"must differ by between|needs ratings of two values"):
        getattr(model, call)(given)
    after = held(model)
    assert {name: id(value) for name, value in after.items()} == {name: id(value) for name, value in before.items()}
    np.testing.assert_array_equal(model.predict(PAIRS), known)


def test_a_fit_with_another_loss_that_is_refused_keeps_the_old_one():
    model = fitted().set_params(loss="logistic")
    with pytest.raises(ValueError, match="needs ratings of two values"):
        model.fit(RATINGS)
    assert len(np.unique(model.predict(PAIRS))) > 2


def test_a_fit_leaves_its_parameters_as_they_are():
    model = fitted(time_limit=100.0)
    given = model.get_params()
    assert model.fit(RATINGS).get_params() == given
    assert model.time_limit == 100.0


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_more_ratings_that_are_interrupted_leave_one_model(error, at):
    model = fitted(max_sweeps=3)
    before, sweeps = copy.copy(model), []

    def press(run):
        sweeps.append(run.iteration)
        if len(sweeps) == at:
            raise error

    model.set_params(callbacks=[press])
    with pytest.raises(error):
        model.partial_fit(([-1, -1], [0, 3], [2.0, 4.0]))
    assert_consistent(model)
    if len(model.user_ids_) == 30:  # the old model, all of it
        assert {name: id(value) for name, value in held(model).items()} == {
            name: id(value) for name, value in held(before).items()
        }
    assert len(model.set_params(callbacks=()).partial_fit(([-1], [0], [2.0])).user_ids_) == 31


OTHER = {"p": 1.4, "weight_power": 0.6, "ridge": 50.0, "offsets": False, "features_weight": 9.0, "loss": "huber"}


def proved(model):
    return model.value_, model.bound_, model.relative_gap_, model.radius_, model.norm_


def test_settings_that_are_changed_count_in_the_next_fit():
    """Nothing that is done with a model depends on them."""
    before, model = (fitted(certify=True) for _ in range(2))
    model.set_params(**OTHER)
    unseen = ([99] * 20, np.arange(20))
    assert proved(model) == proved(before)
    for call in (lambda one: one.predict(unseen), lambda one: one.fold_in({3: 5.0, 4: 2.0})):
        np.testing.assert_array_equal(call(model), call(before))
    for one in (model, before):
        one.certify_to(1e-3)
    assert proved(model) == proved(before)
    with pytest.raises(ValueError, match="`partial_fit` goes on with the problem of the fit"):
        model.partial_fit(([99], [3], [5.0]))
    np.testing.assert_array_equal(model.predict(PAIRS), before.predict(PAIRS))
    assert model.settings_ == before.settings_
    model.set_params(loss="squared", offsets=True).fit(RATINGS)
    assert (model.settings_.p, model.settings_.power) == (1.4, 0.6)


def test_files_keep_the_settings_of_the_fit(tmp_path):
    model = fitted()
    before = model.fold_in({3: 5.0, 4: 2.0})
    model.set_params(weight_power=0.6).save(tmp_path / "m")
    again = projfree.load(tmp_path / "m")
    assert (again.settings_, again.weight_power) == (model.settings_, 0.6)
    np.testing.assert_array_equal(again.fold_in({3: 5.0, 4: 2.0}), before)


def test_files_whose_settings_are_out_of_range_are_refused(tmp_path):
    fitted(weight_power=0.4).save(tmp_path / "m")
    tree = persist.load(tmp_path / "m", kind="model")
    tree["fitted"]["settings_"]["fields"]["p"] = 3.0
    persist.save(tmp_path / "m", tree, kind="model")
    with pytest.raises(ValueError, match="is damaged: settings_ are out of range"):
        projfree.load(tmp_path / "m")


def test_a_search_that_fails_leaves_all_as_it_was():
    search = MatrixCompletionCV(p=(1.0,), radii=[5.0, 15.0], cv=3, rank=3, loss="huber").fit(RATINGS)
    before, kept = search.predict(PAIRS), {name: value for name, value in vars(search).items() if name.endswith("_")}
    bad = (*PAIRS, np.where(np.arange(len(PAIRS[0])) == 3, np.nan, RATINGS[2]))
    with pytest.raises(ValueError, match=r"finite|NaN"):
        search.fit(bad)

    def press(run):
        raise KeyboardInterrupt

    search.set_params(callbacks=[press])
    with pytest.raises(KeyboardInterrupt):
        search.fit((*PAIRS, RATINGS[2][::-1]))
    assert all(vars(search)[name] is value for name, value in kept.items())
    np.testing.assert_array_equal(search.predict(PAIRS), before)
    search.set_params(callbacks=()).certify_to(1e-2)
    assert search.bound_ <= search.value_


def test_a_search_refuses_settings_that_are_changed_before_further_ratings():
    search = MatrixCompletionCV(p=(1.0,), radii=[5.0, 15.0], cv=3, rank=3).fit(RATINGS)
    for changed in ({"weight_power": 0.5}, {"loss": "huber"}, {"ridge": 50.0}, {"p": (1.2,)}):
        before = search.get_params(deep=False)
        with pytest.raises(ValueError, match="`partial_fit` goes on with the problem of the fit"):
            search.set_params(**changed).partial_fit(([0], [1], [2.0]))
        search.set_params(**{name: before[name] for name in changed})
    search.partial_fit(([0], [1], [2.0]))


def test_the_penalty_of_a_certified_answer_does_not_grow_with_outliers():
    values = RATINGS[2].copy()
    values[5] = 1e12
    model = MatrixCompletion(loss="huber", radius=5.0, rank=3).fit((*PAIRS, values))
    swept = model.strength_
    assert model.certify_to(1e-3).strength_ < 10.0 * swept


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_a_checkpoint_of_other_implicit_features_is_refused(first, tmp_path):
    def press(run):
        if run.iteration == 2:
            raise KeyboardInterrupt

    given = {"rank": 3, "radius": 5.0, "checkpoint": tmp_path / "c"}
    with pytest.raises(KeyboardInterrupt):
        MatrixCompletion(**given, implicit=first, callbacks=[press]).fit(RATINGS)
    with pytest.raises(ValueError, match=rf"its implicit is {first:g}, this one is 0.3; give the same implicit"):
        MatrixCompletion(**given, implicit=0.3).fit(RATINGS)
    assert MatrixCompletion(**given, implicit=first).fit(RATINGS).implicit_ == first


def test_further_ratings_leave_the_checkpoint_of_the_fit(tmp_path):
    given = {"rank": 3, "radius": 5.0, "checkpoint": tmp_path / "c"}
    model = MatrixCompletion(**given).fit(RATINGS)
    before = model.predict(PAIRS)
    model.partial_fit(([0, 1], [1, 1], [2.0, 4.0]))
    np.testing.assert_array_equal(MatrixCompletion(**given).fit(RATINGS).predict(PAIRS), before)


def test_a_checkpoint_with_early_stopping_is_refused_for_other_users(tmp_path):
    def press(run):
        if run.iteration == 2:
            raise KeyboardInterrupt

    given = {"rank": 3, "radius": 5.0, "early_stopping": True, "checkpoint": tmp_path / "c"}
    with pytest.raises(KeyboardInterrupt):
        MatrixCompletion(**given, callbacks=[press]).fit(RATINGS)
    more = tuple(np.append(column, last) for column, last in zip(RATINGS, (77, 3, 2.0), strict=True))
    with pytest.raises(ValueError, match="is of another problem: its shape is"):
        MatrixCompletion(**given).fit(more)
