"""Where a fit ends before it is done: by a time limit, by a callback, by an interrupt that it goes on from."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from completion.problems import entries
from sklearn.exceptions import ConvergenceWarning

import projfree.deadline as deadline_module
from projfree.algebra import LowRank
from projfree.completion.weighted_gradient import WeightedProjectedGradient
from projfree.deadline import Expired, deadline
from projfree.estimators.completion import MatrixCompletion, certifying, stages
from projfree.estimators.completion.convex_gap import certified
from projfree.estimators.completion.stopping import products
from projfree.run import minimize
from projfree.sets import WeightedSchattenBall

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


@pytest.mark.parametrize("after", [1, 2, 5])
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
    assert problem.f.value(model.factors_.point(problem.f)) == pytest.approx(model.value_, rel=1e-9)
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


def test_a_worse_point_of_the_convex_solver_is_not_taken(monkeypatch):
    model = quick(max_sweeps=60).fit(RATINGS)
    before, factors = kept(model), model.factors_

    def far(f, ball, solver, *, start, **given):
        return minimize(f, ball, solver, start=LowRank(f.shape, ()), **{**given, "max_iter": 1})

    monkeypatch.setattr(certifying, "minimize", far)
    with pytest.warns(ConvergenceWarning):
        model.certify_to(1e-12)
    assert model.result_.value > model.value_ == before[0]
    assert model.factors_ is factors
    assert (model.bound_, model.strength_) == (before[1], before[3])


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


def test_a_step_with_whole_spectra_is_dropped_when_time_is_up():
    model = quick().fit(RATINGS)
    problem, solver = model._problem(model.ratings_), WeightedProjectedGradient()
    ball, start = problem.ball(5.0), model.factors_.point(problem.f)
    state = solver.init(problem.f, ball, start, 0)
    with deadline(0.0), pytest.raises(Expired):
        solver.step(problem.f, ball, state)
    assert solver.step(problem.f, ball, state).t == 1


def test_an_answer_is_decomposed_once_and_measured_once(monkeypatch):
    """Each takes a whole spectrum."""
    model = quick(p=1.2).fit(RATINGS)
    done, decomposed, norm = [], LowRank.decomposed, WeightedSchattenBall.norm
    problem = model._problem(model.ratings_)
    result = minimize(problem.f, problem.ball(5.0), WeightedProjectedGradient(), max_iter=3, tol=0.0)
    monkeypatch.setattr(LowRank, "decomposed", lambda self: done.append("decomposed") or decomposed(self))
    certifying.Factors.of_point(problem.f, problem.ball(5.0), result.w, np.asarray(result.intercept))
    assert done == ["decomposed"]
    monkeypatch.setattr(WeightedSchattenBall, "norm", lambda self, w: done.append("norm") or norm(self, w))
    minimize(problem.f, problem.ball(5.0), WeightedProjectedGradient(), max_iter=1, tol=0.0)
    assert done.count("norm") == 1


# ---------------------------------------------------------------- going on


def noting(monkeypatch):
    """The products that each certificate was allowed."""
    seen = []

    def noted(problem, factors, radius, most):
        seen.append(most)
        return certified(problem, factors, radius, most)

    monkeypatch.setattr(stages, "certified", noted)
    return seen


def test_a_resumed_fit_has_the_certificate_of_the_whole_one(tmp_path, monkeypatch):
    settings, calls = {"radius": None, "max_sweeps": 7}, []

    def press(run):
        calls.append(run.max_iter)
        if calls[-2:] == [7, 7]:  # the second of the sweeps at the end
            raise KeyboardInterrupt

    seen = noting(monkeypatch)
    whole = quick(**settings).fit(RATINGS)
    with pytest.raises(KeyboardInterrupt):
        quick(**settings, checkpoint=tmp_path / "c", callbacks=press).fit(RATINGS)
    resumed = quick(**settings, checkpoint=tmp_path / "c").fit(RATINGS)
    assert seen[0] == seen[1]
    assert (resumed.bound_, resumed.coarse_, resumed.n_sweeps_) == (whole.bound_, whole.coarse_, whole.n_sweeps_)
    assert whole.n_sweeps_ > 7


@pytest.mark.parametrize("saved", [False, True])
def test_more_ratings_count_the_sweeps_before_them(saved, tmp_path, monkeypatch):
    model = quick(radius=None, max_sweeps=5).fit(RATINGS)
    before = model.n_sweeps_
    assert before > 5
    if saved:
        model.save(tmp_path / "m")
        model = MatrixCompletion.load(tmp_path / "m")
    seen = noting(monkeypatch)
    model.partial_fit([(0, 1, 3.0)])
    assert [most / products(1, model._problem(model.ratings_), 4) for most in seen] == [before + 5]
    model.fit(RATINGS)  # begins anew
    assert model.n_sweeps_ == before


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


@pytest.mark.parametrize("at", [1, 2, 4])
def test_true_during_the_path_ends_the_choice(at):
    watch, whole = Watch("path", at), Watch("")
    model = quick(radius=None, callbacks=watch).fit(RATINGS)
    quick(radius=None, callbacks=whole).fit(RATINGS)
    assert watch.calls == {"path": at, "sweeps": 3, "certificate": 0}
    assert whole.calls["path"] > 20
    assert model.n_iter_ == 3
    assert np.isfinite(model.relative_gap_)


def test_true_during_the_path_takes_the_best_strength_so_far():
    scores = []
    model = quick(radius=None, callbacks=Watch("path", 7))
    model.prepare(RATINGS)
    judged = model._judged
    model._judged = lambda factors: scores.append(judged(factors)) or scores[-1]
    strength, weight, _ = model._chosen()
    offsets, *tried = scores
    assert len(tried) == 3  # three sweeps each, and one
    found = stages.choose(
        model._problem(model.ratings_.part(model._split[0])), (weight,), 4, model._seed, judged, lambda *_: True
    )
    assert max(tried) > offsets
    assert strength > found.strength  # which a whole path finds further on


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
