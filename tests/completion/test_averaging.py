"""Several models whose mean is predicted."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from completion.problems import entries
from completion.test_implicit import taste

import projfree
from projfree import deadline as clock
from projfree.estimators.completion import MatrixCompletion, MatrixCompletionCV, stages
from projfree.estimators.completion.averaging import VARIANTS

RATINGS = entries(30, 20, 300, seed=3)
PAIRS = RATINGS[:2]


def three(**settings):
    return MatrixCompletion(**{"rank": 3, "n_models": 3, **settings})


@pytest.fixture(scope="module")
def model():
    return three(clip=False, implicit=0.5, radius=5.0, max_sweeps=20).fit(RATINGS)


def test_the_prediction_is_the_mean_of_the_models(model):
    each = [one.predict(PAIRS) for one in model._models()]
    np.testing.assert_allclose(model.predict(PAIRS), np.mean(each, axis=0), rtol=1e-12)
    assert min(np.abs(one - each[0]).max() for one in each[1:]) > 1e-3  # they differ
    assert model.factors_.left.shape[1] == sum(one.factors_.left.shape[1] for one in model._models()) == 9


def test_each_model_is_a_fit_of_its_own_with_its_own_certificate(model):
    for (more, times), found in zip(VARIANTS, model.certificates_, strict=True):
        assert (found.weight_power, found.implicit) == (pytest.approx(0.25 + more), 0.5 * times)
        assert found.bound <= found.value
        assert 0.0 <= found.relative_gap <= model.relative_gap_
    gaps = [found.relative_gap for found in model.certificates_]
    assert model.relative_gap_ == max(gaps) > min(gaps)
    worst = model.certificates_[int(np.argmax([found.relative_gap for found in model.certificates_]))]
    assert (model.value_, model.bound_, model.radius_) == (worst.value, worst.bound, worst.radius)
    first = MatrixCompletion(rank=3, implicit=0.5, clip=False, radius=5.0, max_sweeps=20).fit(RATINGS)
    np.testing.assert_array_equal(model._models()[0].predict(PAIRS), first.predict(PAIRS))
    assert first.certificates_ == (model.certificates_[0],)


def test_models_with_the_same_settings_begin_elsewhere():
    again = three(n_models=4, implicit=0.0, radius=None, certify=False).fit(RATINGS)
    first, fourth = again.members_[0], again.members_[3]
    assert (first.weight_power, first.implicit) == (fourth.weight_power, fourth.implicit)
    assert np.abs(first.factors.left - fourth.factors.left).max() > 1e-6


def test_new_users_recommendations_and_what_is_similar_are_those_of_the_mean(model):
    rating = {3: 5.0, 4: 1.0, 7: 4.0}
    np.testing.assert_allclose(
        model.fold_in(rating), np.mean([one.fold_in(rating) for one in model._models()], axis=0), rtol=1e-12
    )
    f, (users, row) = model.factors_, model.transform([("a", item, value) for item, value in rating.items()])
    assert users.tolist() == ["a"]
    np.testing.assert_allclose(f.base + f.shift + row[0, 0] + f.cols + f.right @ row[0, 1:], model.fold_in(rating))
    items, scores = model.recommend(5, 4)
    np.testing.assert_allclose(scores, model.predict(([5] * 4, items)), rtol=1e-12)
    dense = np.mean([one.factors_.left @ one.factors_.right.T for one in model._models()], axis=0)
    cosines = dense[:, [2]].T @ dense / np.linalg.norm(dense[:, 2]) / np.linalg.norm(dense, axis=0)
    np.testing.assert_allclose(model.similar_items(2, 19)[1], np.sort(np.delete(cosines[0], 2))[::-1], atol=1e-8)


@pytest.mark.parametrize("ratings", [True, False])
def test_saved_and_loaded(model, tmp_path, ratings):
    model.save(tmp_path / "m", ratings=ratings)
    for again in (projfree.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(PAIRS), model.predict(PAIRS))
        np.testing.assert_array_equal(again.fold_in({3: 5.0}), model.fold_in({3: 5.0}))
        assert again.certificates_ == model.certificates_


def test_a_saved_model_without_one_of_its_models_is_damaged(model, tmp_path):
    model.save(tmp_path / "m")
    from projfree import persist

    tree = persist.load(tmp_path / "m", kind="model")
    tree["fitted"]["members_"] = tree["fitted"]["members_"][:2]
    persist.save(tmp_path / "m", tree, kind="model")
    with pytest.raises(ValueError, match="is damaged: members_ are not those that its mean is made of"):
        projfree.load(tmp_path / "m")


def interrupted(at, **settings):
    """A fit of three models that ends after so many sweeps."""
    sweeps = []

    def press(run):
        sweeps.append(run.iteration)
        if len(sweeps) == at:
            raise KeyboardInterrupt

    model = three(**{"radius": 15.0, "max_sweeps": 3, "callbacks": [press], **settings})
    with pytest.raises(KeyboardInterrupt):
        model.fit(RATINGS)
    return model.set_params(callbacks=())


@pytest.mark.parametrize(("at", "members"), [(2, 1), (5, 2)])
def test_what_an_interrupted_fit_leaves_is_a_model(at, members, tmp_path):
    model = interrupted(at)
    assert len(model.members_) == len(model.certificates_) == members
    assert np.isfinite(model.fold_in({3: 5.0})).all()
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(projfree.load(tmp_path / "m").predict(PAIRS), model.predict(PAIRS))
    assert len(model.certify_to(0.5).certificates_) == members
    assert len(model.partial_fit(([99], [3], [5.0])).certificates_) == members
    assert len(model.factors_.left) == 31
    assert len(model.fit(RATINGS).members_) == 3


def test_a_model_of_which_nothing_is_proved_does_not_hide_behind_others():
    model = interrupted(5)
    assert [np.isnan(found.relative_gap) for found in model.certificates_] == [False, True]
    assert np.isnan(model.relative_gap_)
    assert np.isfinite(model.certify_to(0.5).relative_gap_)


def test_more_ratings_and_smaller_gaps(tmp_path):
    model = three(radius=15.0, max_sweeps=20).fit(RATINGS)
    radii = [found.radius for found in model.certificates_]
    assert radii[0] == 15.0
    assert radii[1] != 15.0  # it has the penalty of the first, relative to the strongest
    assert radii[1] == pytest.approx(15.0, rel=0.5)
    goal = 0.9 * max(found.relative_gap for found in model.certificates_)
    model.certify_to(goal)
    assert all(found.relative_gap <= goal for found in model.certificates_)
    before = model.rmse(([99], [3], [5.0]))
    model.partial_fit(([99], [3], [5.0]))
    assert model.rmse(([99], [3], [5.0])) < before
    assert len(model.members_) == 3
    assert all(len(member.factors.left) == 31 for member in model.members_)


def test_ratings_held_out_are_the_same_for_all():
    model = three(early_stopping=True, n_iter_no_change=2, certify=False).fit(RATINGS)
    for one in model._models():
        np.testing.assert_array_equal(one.held_out_, model.held_out_)
        assert len(one._training()) == 270


@pytest.mark.parametrize("at", [2, 5, 8])
def test_an_interrupted_fit_goes_on_with_the_model_that_was_interrupted(at, tmp_path, monkeypatch):
    settings = {"max_sweeps": 3, "certify": False, "checkpoint": tmp_path / "c", "radius": 15.0}
    first = interrupted(at, **settings)
    assert len(first.members_) == 1 + (at - 1) // 3
    assert np.isfinite(first.predict(PAIRS)).all()
    monkeypatch.setattr(stages, "choose", None)
    later = []
    resumed = three(**settings, callbacks=[lambda run: later.append(run.iteration)]).fit(RATINGS)
    assert len(later) <= 9 - at + 1
    whole = three(**{**settings, "checkpoint": None}).fit(RATINGS)
    np.testing.assert_array_equal(resumed.predict(PAIRS), whole.predict(PAIRS))


@pytest.mark.parametrize(
    ("other", "part"),
    [
        ({"radius": 20.0}, "set"),
        ({"p": 1.2}, "set"),
        ({"weight_power": 0.5}, "set"),
        ({"rank": 2}, "solver"),
        ({"ridge": 9.0}, "objective"),
        ({"implicit": 0.5}, "implicit|objective"),
        ({}, "objective"),
    ],
    ids=str,
)
@pytest.mark.parametrize("at", [5, 8])
def test_finished_models_of_a_checkpoint_belong_to_their_problem(other, part, at, tmp_path):
    settings = {"max_sweeps": 3, "certify": False, "checkpoint": tmp_path / "c", "radius": 15.0}
    interrupted(at, **settings)
    ratings = RATINGS if other else (*PAIRS, RATINGS[2][::-1])
    with pytest.raises(ValueError, match=rf"the checkpoint at .* is of another problem: its ({part}) (is|has)"):
        three(**{**settings, **other}).fit(ratings)
    assert len(three(**{**settings, "n_models": 4}).fit(RATINGS).members_) == 4


def test_the_time_limit_is_one_for_all(monkeypatch):
    """A sweep takes a second: each model gets its part of what is left."""
    now, sweeps = [0.0], []
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])

    def second(run):
        now[0] += 1.0
        sweeps.append(run.iteration)

    settings = {"certify": False, "radius": 5.0, "max_sweeps": 50, "callbacks": second}
    given = three(**settings, time_limit=15.0).fit(RATINGS)
    assert sweeps == 3 * [1, 2, 3, 4, 5]
    assert len(given.members_) == 3
    alone = three(**{**settings, "n_models": 1}, time_limit=15.0).fit(RATINGS)
    assert alone.n_iter_ == 15


def test_a_search_fits_several_models_at_the_end():
    search = MatrixCompletionCV(p=1.0, radii=[5.0, 15.0], cv=2, rank=3, n_models=3, certify=False).fit(RATINGS)
    assert len(search.members_) == 3
    each = [one.decision_function(PAIRS) for one in search._models()]
    np.testing.assert_allclose(search.decision_function(PAIRS), np.mean(each, axis=0), rtol=1e-12)
    with pytest.raises(ValueError, match=r"`MatrixCompletion\(n_models=...\)` must be a whole number of at least 1"):
        three(n_models=0).fit(RATINGS)


def test_the_mean_is_better_than_its_models_are_on_average():
    rows, cols, y = taste()
    order = np.random.default_rng(1).permutation(len(y))
    test, train = (tuple(column[part] for column in (rows, cols, y)) for part in (order[:600], order[600:]))
    model = MatrixCompletion(rank=10, n_models=3, certify=False).fit(train)
    assert model.rmse(test) < 0.99 * np.mean([one.rmse(test) for one in model._models()])
    assert len({found.implicit for found in model.certificates_}) == 3
