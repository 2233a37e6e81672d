"""What a fit is made of: held-out ratings, the choice, limits, checkpoints and random states."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from completion.problems import entries
from sklearn.exceptions import ConvergenceWarning

from projfree.completion.alternating import Alternating
from projfree.estimators.completion import MatrixCompletion, MatrixCompletionCV
from projfree.estimators.completion.factors import Factors

RATINGS = entries(30, 20, 300, seed=3)
PAIRS = RATINGS[:2]


def quick(**settings):
    return MatrixCompletion(**{"rank": 4, "radius": 15.0, "certify": False, **settings})


def permuted(held):
    """The ratings with those at some places exchanged among each other: mean and range stay."""
    users, items, y = RATINGS
    y = y.copy()
    y[held] = np.roll(y[held], 1)
    return users, items, y


# ---------------------------------------------------------------- held-out ratings


@pytest.mark.parametrize("settings", [{}, {"tol": 1e-2}, {"radius": None}], ids=str)
def test_ratings_held_out_to_stop_early_are_not_trained_on(settings):
    """All runs of a fit, of sweeps and of the convex solver, see the other ratings alone, whatever the held-out are."""
    given = {"early_stopping": True, "max_sweeps": 4, "n_iter_no_change": 9, **settings}
    held = np.flatnonzero(quick(**given).fit(RATINGS).held_out_)
    assert len(held) == 30
    found = []
    for ratings in (RATINGS, permuted(held)):
        seen = []
        quick(callbacks=lambda run, seen=seen: seen.append(run.f.entries.data.y), **given).fit(ratings)
        found.append(seen)
    assert {len(y) for seen in found for y in seen} == {270}
    for y in (*found[0], *found[1]):
        np.testing.assert_array_equal(y, found[0][0])


@pytest.mark.parametrize(("noise", "radius"), [(2.0, 60.0), (1.0, 5.0)])
def test_early_stopping_keeps_the_best_sweep_also_where_patience_did_not_run_out(noise, radius):
    """The best of the models scaled into the ball: with the small radius that is another sweep than without."""
    errors = []

    def watch(run):
        errors.append(judge._error(Factors.of(run.f, run.state).inside(1.0, radius), held))

    noisy = entries(30, 20, 300, seed=3, noise=noise)
    judge = quick(early_stopping=True, max_sweeps=1).fit(noisy)
    held = np.flatnonzero(judge.held_out_)
    model = quick(rank=15, radius=radius, early_stopping=True, max_sweeps=9, n_iter_no_change=50, callbacks=watch)
    model.fit(noisy)
    assert model.n_iter_ == 9
    assert min(errors) < errors[-1]  # the last is not the best, or the test could not fail
    assert model._error(model.factors_, held) == pytest.approx(min(errors), rel=1e-9)


def test_the_base_is_the_weighted_mean():
    weight = np.where(np.arange(300) % 2, 1.0, 9.0)
    model = quick().fit(RATINGS, sample_weight=weight)
    assert model.base_ == pytest.approx(np.average(RATINGS[2], weights=weight), rel=1e-12)
    assert model.factors_.base == model.base_


@pytest.mark.parametrize("p", [1.0, 1.2])
def test_a_fixed_point_of_the_sweeps_minimises_over_the_ball_of_its_norm(p):
    """Also where the frequencies of users differ a hundredfold, and the norm weighs them."""
    rng = np.random.default_rng(0)
    users, items = (30 * rng.random(400) ** 3).astype(int), (20 * rng.random(400) ** 2).astype(int)
    ratings = users, items, rng.integers(1, 6, 400) + 0.1 * (users % 3) * (items % 4)
    settings = {"rank": 20, "weight_power": 0.5, "max_sweeps": 400, "certify": "sharp", "radius": 30.0}
    model = quick(p=p, **settings).fit(ratings)
    assert 0.0 <= model.relative_gap_ <= 2e-3


# ---------------------------------------------------------------- choice


# ---------------------------------------------------------------- random states


def test_a_random_state_that_is_an_object_goes_on_from_fit_to_fit():
    state = np.random.RandomState(5)
    one, two = (quick(early_stopping=True, random_state=state).fit(RATINGS).held_out_ for _ in range(2))
    assert (one != two).any()


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("call", ["fit", "certify_to", "search", "partial_fit", "wide"])
def test_warnings_name_the_line_of_the_caller(call):
    short = quick(tol=None if call == "certify_to" else 1e-9, max_iter=1)
    if call == "search":
        short = MatrixCompletionCV(rank=4, radii=[15.0], cv=2, tol=1e-9, max_iter=1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = (quick(radius=1e4) if call == "wide" else short).fit(RATINGS)
        if call == "certify_to":
            model.certify_to(1e-9)
        if call == "partial_fit":
            seen.clear()
            model.partial_fit(RATINGS)
    assert {one.category for one in seen} == {UserWarning if call == "wide" else ConvergenceWarning}
    assert {one.filename for one in seen} == {__file__}


# ---------------------------------------------------------------- checkpoints


def counted(seen):
    return lambda run: seen.append(run.iteration)


def test_resuming_does_as_many_sweeps_by_default(tmp_path):
    def press(run):
        if isinstance(run.solver, Alternating) and len(done) == 1:
            raise KeyboardInterrupt
        done.extend([1] if run.max_iter == 3 and run.iteration == 1 and run.f.entries.data.n == 300 else [])

    given, done = {"radius": None, "checkpoint": tmp_path / "sweeps"}, []
    with pytest.raises(KeyboardInterrupt):
        quick(callbacks=press, **given).fit(RATINGS)
    resumed, whole = quick(**given).fit(RATINGS), quick(radius=None).fit(RATINGS)
    assert resumed.n_iter_ == whole.n_iter_ == 3
    np.testing.assert_array_equal(resumed.predict(PAIRS), whole.predict(PAIRS))


def test_large_runs_resume(tmp_path):
    rng, seen = np.random.default_rng(0), []
    users, items = rng.integers(0, 1500, 20_000), rng.integers(0, 1200, 20_000)  # beyond any dense form
    ratings = (users, items, rng.integers(1, 6, 20_000))
    given = {"rank": 3, "radius": None, "checkpoint": tmp_path / "sweeps"}
    quick(max_sweeps=2, **given).fit(ratings)
    resumed = quick(max_sweeps=4, callbacks=counted(seen), **given).fit(ratings)
    assert seen == [3, 4]
    whole = quick(max_sweeps=4, **given | {"checkpoint": None}).fit(ratings)
    np.testing.assert_array_equal(resumed.factors_.left, whole.factors_.left)


def test_more_ratings_with_a_checkpoint(tmp_path):
    new = ([99, 1], [3, 2], [3.0, 1.0])
    kept = quick(checkpoint=tmp_path / "sweeps").fit(RATINGS).partial_fit(new)
    plain = quick().fit(RATINGS).partial_fit(new)
    np.testing.assert_array_equal(kept.predict(PAIRS), plain.predict(PAIRS))
    assert kept.n_iter_ == plain.n_iter_


def test_sweeps_are_counted_alike(tmp_path):
    for settings in ({}, {"radius": None}, {"early_stopping": True}, {"checkpoint": tmp_path / "sweeps"}):
        for most in (1, 4):
            assert quick(max_sweeps=most, n_iter_no_change=9, **settings).fit(RATINGS).n_iter_ == most
    assert quick(max_sweeps=2).fit(RATINGS).partial_fit(([1], [2], [3.0])).n_iter_ == 2


def test_a_path_that_is_interrupted_leaves_nothing_half_done(tmp_path):
    def press(run):
        raise KeyboardInterrupt

    model = quick(radius=None, callbacks=press, checkpoint=tmp_path / "sweeps")
    with pytest.raises(KeyboardInterrupt):
        model.fit(RATINGS)
    assert not (tmp_path / "sweeps").exists()
    assert not hasattr(model, "factors_")


@pytest.mark.parametrize(
    "fit", [quick(radius=None), MatrixCompletionCV(p=1.0, radii=[5.0, 9.0], cv=2, rank=3)], ids=str
)
def test_no_sweep_of_a_fit_can_be_interrupted_in_vain(fit, monkeypatch):
    """Also those that look once more whether a matrix helps where offsets are all there is, and those of folds."""
    rng, step, calls = np.random.default_rng(0), Alternating.step, []
    users, items, _ = entries(20, 15, 150, seed=0)
    y = rng.standard_normal(20)[users] + rng.standard_normal(15)[items] + rng.standard_normal(150)

    def pressed(self, *given):
        calls.append(self)
        if len(calls) == at:
            raise KeyboardInterrupt
        return step(self, *given)

    monkeypatch.setattr(Alternating, "step", pressed)
    at = 0
    fit.fit((users, items, y))
    for at in {*range(1, len(calls), 5), len(calls)}:
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            fit.fit((users, items, y))
        assert len(calls) == at


@pytest.mark.parametrize("at", [1, 4, 6])
def test_early_stopping_judges_all_sweeps_after_an_interrupt(at, tmp_path):
    """The resumed fit ends where the whole one does, and keeps the same sweep, also one from before the interrupt."""
    rng = np.random.default_rng(0)
    noisy = (*PAIRS, RATINGS[2] + 2.0 * rng.standard_normal(300))
    settings = {"early_stopping": True, "n_iter_no_change": 5, "max_sweeps": 40, "rank": 10, "radius": 60.0}
    whole = quick(**settings).fit(noisy)
    assert 6 < whole.n_iter_ < 40

    def press(run):
        if run.iteration == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(**settings, checkpoint=tmp_path / "c", callbacks=[press]).fit(noisy)
    for _ in range(2):  # the second time there is nothing left to do
        resumed = quick(**settings, checkpoint=tmp_path / "c").fit(noisy)
        assert resumed.n_iter_ == whole.n_iter_
        np.testing.assert_array_equal(resumed.predict(PAIRS), whole.predict(PAIRS))
