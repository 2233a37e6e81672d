"""Where a fit ends before it is done: by a time limit, by a callback, by an interrupt that it goes on from."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from completion.problems import entries
from sklearn.exceptions import ConvergenceWarning

import projfree.deadline as deadline_module
from projfree.completion.weighted_gradient import WeightedProjectedGradient
from projfree.estimators.completion import MatrixCompletion

SHAPE = (30, 20)
RATINGS = entries(*SHAPE, 300, seed=3)
PAIRS = RATINGS[:2]


def quick(**settings):
    return MatrixCompletion(**{"rank": 4, "radius": 5.0, **settings})


class Clock:
    """A clock that stands still, and jumps far ahead after so many calls of the fit's callbacks."""

    def __init__(self, monkeypatch, after=None):
        self.now, self.left, self.seen = 0.0, after, []
        monkeypatch.setattr(deadline_module.time, "monotonic", lambda: self.now)

    def __call__(self, run):
        self.seen.append(type(run.solver).__name__)
        if self.left is not None and len(self.seen) >= self.left:
            self.now = 1e9


def kept(model):
    return model.value_, model.bound_, model.relative_gap_, model.strength_, model.norm_, model.coarse_


# ---------------------------------------------------------------- time


def test_a_limit_that_is_up_leaves_the_model_as_it_was():
    model = quick().fit(RATINGS)
    before, factors = kept(model), model.factors_
    with pytest.warns(ConvergenceWarning, match=r"stopped by the time limit .* above tol=1e-09; raise `time_limit`"):
        model.certify_to(1e-9, time_limit=1e-9)
    assert kept(model) == before
    assert model.factors_ is factors


@pytest.mark.parametrize("after", [1, 5])
@pytest.mark.parametrize("solver", [None, WeightedProjectedGradient()], ids=str)
def test_a_limit_in_the_middle_makes_nothing_worse(after, solver, monkeypatch):
    """The value does not rise, the bound does not fall, and both are those of the model that is kept."""
    model = quick(p=1.2, rank=2, solver=solver).fit(RATINGS)
    value, bound, gap, *_ = kept(model)
    model.callbacks = clock = Clock(monkeypatch, after)
    with pytest.warns(ConvergenceWarning, match="stopped by the time limit"):
        model.certify_to(1e-9, time_limit=60.0)
    assert len(clock.seen) == after
    assert model.value_ <= value
    assert model.bound_ >= bound
    assert model.relative_gap_ <= gap
    problem = model._problem(model.ratings_)
    assert problem.f(model.factors_.point(problem.f)) == pytest.approx(model.value_, rel=1e-9)
    assert model.norm_ == model.factors_.norm(1.2) <= model.radius_ * (1.0 + 1e-12)


def test_what_the_convex_solver_had_reached_at_the_limit_is_kept(monkeypatch):
    """Offsets are searched for to the end at the exit: a point is no worse because its limit was up."""
    whole = quick(rank=1).fit(RATINGS)
    first = whole.value_
    model = quick(rank=1, callbacks=(clock := Clock(monkeypatch))).fit(RATINGS)
    clock.left = len(clock.seen) + 5
    with pytest.warns(ConvergenceWarning, match="stopped by the time limit"):
        model.certify_to(1e-12, time_limit=60.0)
    whole.max_iter = 5
    with pytest.warns(ConvergenceWarning, match="iteration"):
        whole.certify_to(1e-12)
    assert model.value_ == pytest.approx(whole.value_, rel=1e-12)
    assert model.value_ < first


@pytest.mark.parametrize("settings", [{"radius": None}, {"radius": 5.0}, {"radius": None, "certify": False}], ids=str)
@pytest.mark.parametrize("tol", [None, 1e-9])
def test_without_any_time_there_are_the_best_offsets(settings, tol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = quick(time_limit=1e-9, clip=False, tol=tol, **settings).fit(RATINGS)
    offsets = quick(radius=1e-7, clip=False).fit(RATINGS)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.predict(PAIRS), offsets.predict(PAIRS), rtol=1e-6)


@pytest.mark.parametrize(
    ("limit", "error", "sentence"),
    [
        (-1, ValueError, r"^`certify_to\(time_limit=...\)` must be positive and finite, got -1\.$"),
        (0, ValueError, r"^`certify_to\(time_limit=...\)` must be positive and finite, got 0\.$"),
        ("x", TypeError, r"^`certify_to\(time_limit=...\)` must be a real number, got 'x' of type str\.$"),
    ],
)
def test_a_limit_that_is_none_is_refused(limit, error, sentence):
    model = quick(max_sweeps=1).fit(RATINGS)
    with pytest.raises(error, match=sentence):
        model.certify_to(0.5, time_limit=limit)


# ---------------------------------------------------------------- going on


# ---------------------------------------------------------------- callbacks


class Watch:
    """Notes the stage of each call, and returns True in some stage from the n-th call there on."""

    def __init__(self, stage, at=1):
        self.stage, self.at, self.now, self.seen = stage, at, "", []

    def begin(self, stage, most):
        self.now = stage
        self.seen.append((stage, 0))

    def __call__(self, run):
        stage, count = self.seen[-1]
        self.seen[-1] = stage, count + 1
        return stage == self.stage and count + 1 >= self.at

    @property
    def calls(self):
        return dict(self.seen)


def test_true_during_the_path_ends_the_choice():
    watch, whole = Watch("path", 2), Watch("")
    model = quick(radius=None, callbacks=watch).fit(RATINGS)
    quick(radius=None, callbacks=whole).fit(RATINGS)
    assert watch.calls == {"path": 2, "sweeps": 3, "certificate": 0}
    assert whole.calls["path"] > 20
    assert model.n_iter_ == 3
    assert np.isfinite(model.relative_gap_)


@pytest.mark.parametrize("tol", [None, 1e-9])
def test_true_during_the_sweeps_ends_the_fit_with_its_certificate(tol):
    watch = Watch("sweeps", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = quick(callbacks=watch, tol=tol).fit(RATINGS)
    assert watch.calls == {"sweeps": 2, "certificate": 0}
    assert model.n_iter_ == 2
    assert 0.0 <= model.relative_gap_ < 1.0


def test_always_true_ends_the_choice_and_the_sweeps_after_one_each():
    watch, count = Watch("sweeps"), []
    model = quick(radius=None, tol=1e-9, callbacks=[watch, lambda run: count.append(1) or True]).fit(RATINGS)
    assert watch.calls == {"path": 1, "sweeps": 1, "certificate": 0}
    assert len(count) == 2
    assert model.n_iter_ == 1


def test_early_stopping_does_not_end_the_fit():
    watch = Watch("")
    model = quick(early_stopping=True, n_iter_no_change=1, max_sweeps=60, tol=1e-3, radius=30.0, callbacks=watch)
    model.fit(RATINGS)
    assert model.n_iter_ < 60
    assert watch.calls["convex solver"] > 0


def test_true_ends_what_certify_to_does():
    model = quick(p=1.2, rank=2).fit(RATINGS)
    value, bound, *_ = kept(model)
    model.callbacks = watch = Watch("convex solver", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.certify_to(1e-9)
    assert watch.calls == {"convex solver": 2}
    assert model.value_ <= value
    assert model.bound_ >= bound
