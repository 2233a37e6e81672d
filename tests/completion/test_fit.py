"""A fit from beginning to end: the choice of the radius, limits, interrupts, further ratings, saved models."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from completion.problems import entries
from sklearn.exceptions import ConvergenceWarning

import projfree
import projfree.deadline as deadline_module
from projfree import MatrixCompletion
from projfree.losses import Huber

RATINGS = entries(30, 20, 300, seed=3)
PAIRS = RATINGS[:2]


def quick(**settings):
    return MatrixCompletion(**{"rank": 4, "radius": 5.0, **settings})


# ---------------------------------------------------------------- the choice


def test_the_radius_is_found():
    rows, cols, y = entries(60, 40, 2000, seed=1, noise=0.5)
    rows, cols, y, test = rows[500:], cols[500:], y[500:], (rows[:500], cols[:500], y[:500])
    model = MatrixCompletion(rank=8, certify=False).fit((rows, cols, y))
    assert model.rmse(test) < 0.9 * MatrixCompletion(radius=1e-3, certify=False).fit((rows, cols, y)).rmse(test)


def test_noise_around_offsets_has_no_matrix():
    """The first point of the path is too weak, and no matrix is best."""
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(rng.choice(200 * 150, 4000, replace=False), 150)
    y = 3.0 + rng.standard_normal(200)[rows] * 0.5 + rng.standard_normal(150)[cols] * 0.5 + rng.standard_normal(4000)
    test, train = ((rows[part], cols[part], y[part]) for part in (slice(1000), slice(1000, None)))
    model = MatrixCompletion(certify=False).fit(train)
    offsets = MatrixCompletion(radius=1e-6, certify=False).fit(train)
    assert model.rmse(test) <= 1.0001 * offsets.rmse(test)
    assert model.norm_ < 1e-3


@pytest.mark.parametrize("rank", [2, 40])
def test_long_tails_are_predicted_no_worse_than_by_offsets(rank):
    """Most users and items have one or two ratings: whatever the rank, a matrix is used only if it helps."""
    rng = np.random.default_rng(rank)
    pairs = np.unique(rng.integers(0, 1500, 6000) * 2500 + (2500 * rng.random(6000) ** 4).astype(int))
    rows, cols = np.divmod(rng.permutation(pairs), 2500)
    y = 7.0 + rng.standard_normal(1500)[rows] + 0.5 * rng.standard_normal(2500)[cols]
    y = np.clip(np.rint(y + 1.5 * rng.standard_normal(len(rows))), 1, 10)
    test, train = ((rows[part], cols[part], y[part]) for part in (slice(1000), slice(1000, None)))
    model = MatrixCompletion(rank=rank, certify=False).fit(train)
    offsets = MatrixCompletion(radius=1e-6, certify=False).fit(train)
    cold = ~(np.isin(test[0], train[0]) & np.isin(test[1], train[1]))
    assert cold.sum() > 50
    for held in (test, tuple(column[cold] for column in test)):
        assert model.rmse(held) <= 1.0005 * offsets.rmse(held)


@pytest.mark.parametrize("says", [True, False])
def test_what_was_rated_is_used_if_it_says_something(says):
    rng = np.random.default_rng(0)
    group, kind = rng.integers(0, 2, 300), rng.integers(0, 2, 150)
    likes = group[:, None] == kind[None, :] if says else rng.random((300, 150)) < 0.5
    rows, cols = np.nonzero(rng.random((300, 150)) < np.where(likes, 0.12, 0.02))
    y = 3.0 + rng.standard_normal((2, 150))[group[rows], cols] + 0.3 * rng.standard_normal(len(rows))
    order = rng.permutation(len(y))
    test, train = (tuple(column[part] for column in (rows, cols, y)) for part in (order[:600], order[600:]))
    chosen = MatrixCompletion(rank=10, certify=False).fit(train)
    without = MatrixCompletion(rank=10, certify=False, implicit=0.0).fit(train)
    assert chosen.rmse(test) <= (1.0 if says else 1.03) * without.rmse(test)
    assert not says or chosen.settings_.implicit > 0.0


@pytest.mark.parametrize("outlier", [-1e3, 1e9])
@pytest.mark.parametrize("settings", [{"loss": "huber"}, {"loss": Huber(1.0)}, {"loss": "huber", "radius": 60.0}])
def test_outliers_of_any_size_do_little_harm_to_a_robust_loss(settings, outlier):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40)) + 3.0
    seen = rng.random(truth.shape) < 0.4
    y = truth[seen] + 0.1 * rng.standard_normal(int(seen.sum()))
    y[rng.random(len(y)) < 0.02] = outlier
    model = MatrixCompletion(certify=False, **settings).fit((*np.nonzero(seen), y))
    assert np.median(np.abs(model.predict(np.nonzero(~seen)) - truth[~seen])) < (
        0.25 if "radius" not in settings else 0.4
    )


def test_the_base_is_the_weighted_mean_or_median():
    ratings = ([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0, 1e6])
    assert quick(loss="huber").fit(ratings).factors_.base == 3.0
    assert quick().fit(ratings).factors_.base == pytest.approx(200002.0)
    assert quick(loss="huber").fit(ratings, sample_weight=[9, 1, 1, 1, 1]).factors_.base == 1.0


# ---------------------------------------------------------------- limits


def test_a_limit_that_is_up_leaves_the_model_as_it_was():
    model = quick().fit(RATINGS)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.warns(ConvergenceWarning, match=r"stopped by the time limit .* above tol=1e-09; raise `time_limit`"):
        model.certify_to(1e-9, time_limit=1e-9)
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("after", [1, 5])
def test_a_limit_in_the_middle_makes_nothing_worse(after, monkeypatch):
    """The value does not rise, the bound does not fall, and both are those of the model that is kept."""
    model, now, seen = quick(p=1.2, rank=2).fit(RATINGS), [0.0], []
    value, bound = model.value_, model.bound_
    monkeypatch.setattr(deadline_module.time, "monotonic", lambda: now[0])

    def watch(run):
        seen.append(run)
        now[0] = 1e9 * (len(seen) >= after)

    model.callbacks = watch
    with pytest.warns(ConvergenceWarning, match="stopped by the time limit"):
        model.certify_to(1e-9, time_limit=60.0)
    assert len(seen) == after
    assert model.value_ <= value
    assert model.bound_ >= bound
    f = model._problem(model.ratings_)
    assert f(model.factors_.point(f)) == pytest.approx(model.value_, rel=1e-9)
    assert model.norm_ == model.factors_.norm(1.2) <= model.radius_ * (1.0 + 1e-12)


@pytest.mark.parametrize("radius", [None, 5.0])
def test_without_any_time_there_are_the_best_offsets(radius):
    model = quick(time_limit=1e-9, radius=radius).fit(RATINGS)
    offsets = quick(radius=1e-7).fit(RATINGS)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.predict(PAIRS), offsets.predict(PAIRS), rtol=1e-6)


@pytest.mark.parametrize(("limit", "words"), [(-1, "positive and finite, got -1"), (0, "positive and finite, got 0")])
def test_a_limit_that_is_none_is_refused(limit, words):
    with pytest.raises(ValueError, match=rf"^`certify_to\(time_limit=...\)` must be {words}"):
        quick(max_sweeps=1).fit(RATINGS).certify_to(0.5, time_limit=limit)


class Watch:
    """Notes the stage of each call, and returns True in some stage from the n-th call there on."""

    def __init__(self, stage, at=1):
        self.stage, self.at, self.seen = stage, at, []

    def begin(self, stage, most):
        self.seen.append((stage, 0))

    def __call__(self, run):
        stage, count = self.seen[-1]
        self.seen[-1] = stage, count + 1
        return stage == self.stage and count + 1 >= self.at


def test_true_ends_a_stage():
    watch, whole = Watch("path", 2), Watch("")
    model = quick(radius=None, callbacks=watch).fit(RATINGS)
    quick(radius=None, callbacks=whole).fit(RATINGS)
    assert dict(watch.seen) == {"path": 2, "sweeps": 3, "certificate": 0}
    assert dict(whole.seen)["path"] > 20
    assert np.isfinite(model.relative_gap_)
    assert quick(callbacks=Watch("sweeps", 2)).fit(RATINGS).n_iter_ == 2
    watch = Watch("convex solver", 2)
    model = quick(max_sweeps=3).fit(RATINGS).set_params(callbacks=watch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.certify_to(1e-12)
    assert watch.seen == [("convex solver", 2)]


@pytest.mark.parametrize("call", ["certify_to", "wide"])
def test_warnings_name_the_line_of_the_caller(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = quick(radius=1e4 if call == "wide" else 5.0, certify=False).fit(RATINGS)
        if call == "certify_to":
            model.certify_to(1e-9, max_iter=1)
    assert {one.category for one in seen} == {UserWarning if call == "wide" else ConvergenceWarning}
    assert {one.filename for one in seen} == {__file__}


# ---------------------------------------------------------------- interrupts


def held(model):
    return {name: id(value) for name, value in vars(model).items() if name.endswith("_")}


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_more_ratings_that_are_interrupted_leave_one_model(error, at):
    model = quick(max_sweeps=3, certify=False).fit(RATINGS)
    before, sweeps = copy.copy(model), []

    def press(run):
        sweeps.append(run.iteration)
        if len(sweeps) == at:
            raise error

    model.set_params(callbacks=[press])
    with pytest.raises(error):
        model.partial_fit(([-1, -1], [0, 3], [2.0, 4.0]))
    users = len(model.user_ids_)
    assert len(model.factors_.left) == len(model.offset_model_.rows) == users
    assert np.isfinite(model.predict((model.user_ids_[:9], model.item_ids_[:9]))).all()
    assert users == 31 or held(model) == held(before)
    assert len(model.set_params(callbacks=()).partial_fit(([-1], [0], [2.0])).user_ids_) == 31


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("settings", [{}, {"user_features": ([-1, *range(30)], np.arange(31.0)[:, None])}])
def test_ratings_that_are_refused_change_nothing(settings, call):
    model = quick(loss="logistic", **settings).fit((*PAIRS, (RATINGS[2] > 3.0) * 1.0))
    before, wrong = held(model), ([-1], [1], [0.5])
    given = wrong if call == "partial_fit" else tuple(np.append(a, b) for a, b in zip(wrong, RATINGS, strict=True))
    with pytest.raises(ValueError, match=r"needs ratings of two values"):
        getattr(model, call)(given)
    assert held(model) == before


# ---------------------------------------------------------------- later


def test_settings_that_are_changed_count_in_the_next_fit(tmp_path):
    """Nothing that is done with a model depends on them, also after it was saved."""
    before, model = (quick().fit(RATINGS) for _ in range(2))
    model.set_params(p=1.4, ridge=50.0, offsets=False, loss="huber").save(tmp_path / "m")
    for one in (model, projfree.load(tmp_path / "m")):
        assert one.settings_ == before.settings_
        np.testing.assert_array_equal(one.fold_in({3: 5.0, 4: 2.0}), before.fold_in({3: 5.0, 4: 2.0}))
        expected = copy.copy(before).partial_fit(([99], [3], [5.0]))
        np.testing.assert_array_equal(one.partial_fit(([99], [3], [5.0])).predict(PAIRS), expected.predict(PAIRS))
    assert model.fit(RATINGS).settings_.p == 1.4


def test_more_ratings_need_weights_and_features_if_the_fit_had_them():
    features = np.random.default_rng(0).standard_normal((30, 3))
    model = quick(user_features=features, certify=False).fit(RATINGS)
    with pytest.raises(ValueError, match=r"^`partial_fit` needs `sample_weight` if, and only if, the first fit had it"):
        model.partial_fit(([0], [1], [2.0]), sample_weight=[1.0])
    with pytest.raises(ValueError, match=r"^`user_features` must have the 3 columns of the fit, x0, x1, x2, got 2: x0"):
        model.set_params(user_features=features[:, :2]).partial_fit(([0], [1], [2.0]))
    with pytest.raises(ValueError, match=r"^`user_features` must have a row for each of the users .* got none for 99"):
        model.set_params(user_features=features).partial_fit(([99], [1], [2.0]))
