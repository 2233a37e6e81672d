"""The folds of a search: what is judged is what a fit to the same ratings would predict, and a time limit is shared."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from completion.problems import entries
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

from projfree import MatrixCompletion, MatrixCompletionCV
from projfree import deadline as clock
from projfree.completion.alternating import Alternating

RADII = [10.0, 30.0, 90.0]
USERS, ITEMS, Y = RATINGS = entries(40, 25, 400, seed=1, rank=3, noise=0.5)
PAIRS = np.column_stack([USERS, ITEMS])
FEATURES = np.random.default_rng(0).standard_normal((40, 3))
SETTINGS = {"rank": 4, "certify": False, "implicit": 0.0, "max_sweeps": 6}
#: The seed of a search whose ``random_state`` is zero.
SEED = np.random.RandomState(0).randint(2**31 - 1)


def search(**settings):
    return MatrixCompletionCV(**{"p": 1.0, "radii": RADII, "scoring": "neg_root_mean_squared_error", **settings})


def compared(folds, **settings):
    """The scores of a search, and those that scikit-learn finds with the same seed, a row for each radius."""
    settings = SETTINGS | settings
    folds = list(folds.split(PAIRS, groups=USERS if isinstance(folds, GroupKFold) else None))
    found = search(cv=folds, **settings).fit(PAIRS, Y)
    given = {"cv": folds, "scoring": "neg_root_mean_squared_error", "error_score": "raise"}
    plain = (MatrixCompletion(radius=radius, random_state=SEED, **settings) for radius in RADII)
    return found.scores_[0], np.array([cross_val_score(model, PAIRS, Y, **given) for model in plain])


@pytest.mark.filterwarnings("ignore:MatrixCompletionCV. the best radius", "ignore:.radius=90. is larger")
@pytest.mark.parametrize("folds", [GroupKFold(3), KFold(3, shuffle=True, random_state=0)], ids=["cold", "warm"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"user_features": FEATURES}, {"loss": "huber"}, {"implicit": 1.0}, {"clip": False}],
    ids=["plain", "features", "huber", "implicit", "unclipped"],
)
def test_scores_are_those_of_fits_to_the_other_ratings(folds, settings):
    """With the same seed they differ by rounding alone, also for users who have all of their ratings in a fold."""
    scores, expected = compared(folds, **settings)
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


def test_a_path_is_judged_with_what_its_fold_knows():
    """Ids, offsets, counts, range and the scale of the loss are those of a fit without the ratings that judge it."""
    y = Y.copy()
    y[USERS < 3] += 40.0  # held out together, these widen the range, the mean and the scale of the loss
    held, seen = USERS < 3, []

    def scorer(model, pairs, ratings):
        seen.append(model)
        return -float(np.abs(model.predict(pairs) - ratings).mean())

    folds = [(np.flatnonzero(~held), np.flatnonzero(held))]
    search(radii=20, cv=folds, scoring=scorer, loss="huber", **SETTINGS).fit(PAIRS, y)
    alone = MatrixCompletion(radius=5.0, loss="huber", **SETTINGS).fit(PAIRS[~held], y[~held])
    for name in ("rating_range_", "base_", "loss_"):
        assert getattr(seen[0], name) == getattr(alone, name)
    for name in ("user_ids_", "item_ids_"):
        np.testing.assert_array_equal(getattr(seen[0], name), getattr(alone, name))
    for name in ("rows", "cols", "row_counts", "col_counts"):
        np.testing.assert_array_equal(getattr(seen[0].offset_model_, name), getattr(alone.offset_model_, name))


def test_empty_rows_of_a_matrix_take_part_in_each_fold():
    """A fit of the matrix has them, and they count in the mean number of ratings that weights are relative to."""
    table = sp.coo_array((Y, (USERS, ITEMS)), shape=(60, 30))
    train, test = next(KFold(3, shuffle=True, random_state=0).split(Y))
    found = search(radii=[30.0], cv=[(train, test)], **SETTINGS).fit(table)
    part = sp.coo_array((Y[train], (USERS[train], ITEMS[train])), shape=(60, 30))
    model = MatrixCompletion(radius=30.0, random_state=SEED, **SETTINGS).fit(part)
    assert found.scores_[0, 0, 0] == pytest.approx(-model.rmse(PAIRS[test], Y[test]), rel=1e-9)


def test_folds_that_lose_a_label_are_refused():
    likes, first = np.where(USERS < 5, 0.0, 1.0), np.flatnonzero(USERS < 5)
    folds = [(np.arange(300), np.arange(300, 400)), (np.setdiff1d(np.arange(400), first), first)]
    words = r"^`cv` must leave ratings of both values to fit, got 1 alone in fold 1; give other folds, or fit `MatrixCo"
    with pytest.raises(ValueError, match=words):
        search(cv=folds, loss="logistic", scoring=None, **SETTINGS).fit(PAIRS, likes)


# ---------------------------------------------------------------- time


@pytest.fixture
def now(monkeypatch):
    """The time of a clock that stands still, except that a sweep takes a second."""
    time, step = [0.0], Alternating.step
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: time[0]))

    def slow(*given):
        time[0] += 1.0
        return step(*given)

    monkeypatch.setattr(Alternating, "step", slow)
    return time


@pytest.mark.filterwarnings("ignore:MatrixCompletionCV. the best radius")
@pytest.mark.parametrize("radii", [20, RADII], ids=["path", "given"])
@pytest.mark.parametrize("limit", [20.0, 1000.0])
def test_one_limit_for_all_folds_leaves_half_for_the_last_fit(now, radii, limit, monkeypatch):
    begun, fit = [], MatrixCompletion.fit
    monkeypatch.setattr(MatrixCompletion, "fit", lambda *given: begun.append(now[0]) or fit(*given))
    found = search(p=(1.0, 1.2), cv=2, radii=radii, time_limit=limit, **SETTINGS | {"max_sweeps": 15}).fit(PAIRS, Y)
    assert begun[0] <= 0.5 * limit + 1.0
    assert now[0] <= limit
    assert found.n_iter_ == min(15, limit - begun[0])
    assert np.isfinite(found.radii_).all()
    assert np.isfinite(found.scores_[:, 0]).all()
    tried = np.isfinite(found.scores_).sum(axis=1)
    if limit < 1000.0 and isinstance(radii, int):
        assert tried.max() <= tried.min() + 1  # every fold has its share


@pytest.mark.filterwarnings("ignore:MatrixCompletionCV. the best radius")
def test_radii_that_were_not_fitted_have_no_score(now):
    found = search(cv=2, time_limit=32.0, **SETTINGS).fit(PAIRS, Y)
    assert found.radii_.tolist() == [RADII]
    np.testing.assert_array_equal(np.isfinite(found.scores_), [[[True, True], [True, True], [False, False]]])
