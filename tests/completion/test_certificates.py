"""What is proved of a fit: small gaps on small tables, bounds below the minimum, answers inside the ball."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import entries
from hypothesis import given
from hypothesis import strategies as st

from projfree import MatrixCompletion, Squared, minimize
from projfree.algebra import LowRank, OnPattern, Pattern
from projfree.completion import lines
from projfree.completion.weighted_gradient import WeightedProjectedGradient
from projfree.estimators.completion import convex_gap
from projfree.estimators.completion.convex_gap import certified
from projfree.estimators.completion.convex_problem import ConvexProblem, SweepSettings
from projfree.numerics import spectra
from projfree.run import Checkpoint
from projfree.sets import schatten

TABLE = entries(60, 40, 900, seed=0, rank=3, noise=0.5)


@pytest.mark.parametrize("settings", [{}, {"implicit": 1.0}, {"implicit": 0.0}, {"p": 1.2, "implicit": 1.0}])
def test_a_small_table_is_solved_to_a_tolerance(settings):
    model = MatrixCompletion(tol=1e-3, **settings).fit(TABLE)
    assert 0.0 <= model.relative_gap_ <= 1e-3
    assert model.result_.n_iter <= 100
    assert model.norm_ <= model.radius_ * (1.0 + 1e-9)


@pytest.mark.parametrize("implicit", [0.0, 0.5])
def test_an_answer_in_single_precision_lies_inside_the_ball(implicit, monkeypatch):
    monkeypatch.setattr(lines, "SINGLE", 100)
    model = MatrixCompletion(rank=6, implicit=implicit, certify=False).fit(TABLE)
    problem = model._problem(model.ratings_)
    w = model.factors_.point(problem.f).w
    assert problem.ball(model.radius_).norm(w) == pytest.approx(model.norm_, rel=1e-12)
    assert model.norm_ <= model.radius_
    model.certify_to(1e-2)
    assert model.relative_gap_ <= 1e-2


@pytest.fixture(scope="module")
def solved():
    """A problem with and without implicit features, the value of its minimum, and models far from it and near."""
    found = []
    for implicit in (0.0, 1.0):
        model = MatrixCompletion(radius=40.0, rank=4, implicit=implicit, max_sweeps=2, certify=False).fit(TABLE)
        problem, rough = model._problem(model.ratings_), model.factors_
        model.certify_to(1e-5)
        found.append((problem, rough, model.factors_, model.value_))
    return found


@given(which=st.integers(0, 1), share=st.floats(0.0, 1.0), loose=st.floats(1.0, 30.0))
def test_bounds_are_below_the_minimum_and_never_negative(solved, which, share, loose):
    problem, rough, near, least = solved[which]
    model = (rough if share < 0.5 else near).stretched(share)
    with pytest.MonkeyPatch.context() as patch:  # a support that is too large, as where products are few
        support = schatten.structured_support
        patch.setattr(convex_gap.schatten, "structured_support", lambda *given: loose * support(*given))
        found = certified(problem, model, 40.0)
    assert 0.0 <= found.bound <= least
    assert found.bound <= found.value
    f = problem.f.open()
    here, ball = f.evaluate(model.point(f)), problem.ball(40.0)
    plain = here.slope.lower(ball, loose * ball.support(-here.slope.gradient))
    assert found.bound >= plain - 1e-9
    if plain > 0.0:  # residuals of the best length prove more by the square of the gap over four times the value
        gained = (here.value - plain) ** 2 / (4.0 * here.value)
        assert found.bound - plain >= 0.5 * gained - 1e-9


def problem_of(implicit):
    model = MatrixCompletion(radius=20.0, rank=4, implicit=implicit, max_sweeps=1, certify=False).fit(TABLE)
    problem = model._problem(model.ratings_)
    return problem.f, problem.ball(20.0)


@pytest.mark.parametrize("implicit", [0.0, 1.0])
def test_projected_gradients_in_the_weighted_coordinates(implicit):
    f, ball = problem_of(implicit)
    found = minimize(f, ball, WeightedProjectedGradient(), tol=1e-6)
    assert found.status.converged
    assert found.n_iter <= (15 if implicit == 0.0 else 100)  # 20 with momentum that points uphill
    assert ball.contains(found.w)
    assert found.certificate.verify(objective=f).ok


@pytest.mark.parametrize("implicit", [0.0, 1.0])
def test_they_take_the_same_steps_after_a_checkpoint(implicit, tmp_path):
    f, ball = problem_of(implicit)

    def run(most, folder, **more):
        keeper = Checkpoint(folder, 4)
        return minimize(f, ball, WeightedProjectedGradient(), tol=0.0, max_iter=most, callbacks=[keeper], **more)

    through = run(13, tmp_path / "a")
    run(9, tmp_path / "b")
    resumed = run(13, tmp_path / "c", state=tmp_path / "b")
    np.testing.assert_array_equal(resumed.w.toarray(), through.w.toarray())
    assert (resumed.value, resumed.bound) == (through.value, through.bound)


SIZES = [(7, 5), (64, 48), (600, 500), (1100, 1050)]


@pytest.mark.parametrize(
    ("shape", "left_over"),
    [*((shape, size) for shape in SIZES[:2] for size in (0.0, 1e-9, 1e-7)), (SIZES[2], 1e-9), (SIZES[3], 1e-7)],
)
def test_a_support_is_an_upper_bound_where_parts_cancel(shape, left_over):
    """Entries that are small differences of large ones, as in a gradient where squares of a known matrix vanish."""
    m, n = shape
    rng, (rows, cols) = np.random.default_rng(0), np.divmod(np.arange(m * n), n)
    a, b = rng.integers(1, 9, m) / 8.0, rng.integers(1, 9, n) / 8.0  # with exact products
    noise = left_over * rng.integers(-4, 5, m * n) / 2.0**20
    on = OnPattern(Pattern.of(rows, cols, shape)[0], noise - (a[:, None] * b).ravel())
    exact = (on.values + (a[:, None] * b).ravel()).reshape(shape)
    g = on + LowRank.of(np.stack([a, a], 1), np.stack([0.5 * b, 0.5 * b], 1))
    assert g.size() >= np.linalg.norm(exact)
    singular = np.linalg.svd(exact, compute_uv=False)
    for p in (1.0, 1.2, 1.5, 2.0, 3.0) if m < 600 else (1.0, 1.5):
        truth = np.linalg.norm(singular, np.inf if p == 1.0 else p / (p - 1.0))
        found = schatten.structured_support(g, p, 3.0)
        assert found >= 3.0 * truth
        assert found <= 3.0 * (truth * (1.0 + 1e-6) + 1e-4 * g.scale)
        assert schatten.structured_oracle(g, p, 3.0).support >= 3.0 * truth


@pytest.mark.parametrize("shape", SIZES[:2])
@pytest.mark.parametrize("d", [1e-7, 1e-8, 1e-9])
def test_no_bound_is_above_a_minimum_of_zero(shape, d):
    """Constant ratings of all pairs, and almost the matrix that says so: the minimum over the ball is zero."""
    m, n = shape
    settings = SweepSettings(Squared(), 1.0, 0.25, 3.0, (True, True, True), 3.0, 1.0)
    rows, cols = np.divmod(np.arange(m * n), n)
    problem = ConvexProblem.of(rows, cols, np.full(m * n, 3.0), None, shape, settings)
    ones = [np.zeros((2 * m, 2)), np.zeros((2 * n, 2))]
    for side, count in enumerate(shape):
        ones[side][:count, side], ones[side][count:, 1 - side] = 1.0, 1.0
    f, radius = problem.f, problem.unit.norm(LowRank.of(*ones)) * (1.0 + d)
    x = f.point(LowRank.of(ones[0] * (1.0 - d), ones[1]), np.zeros(1 + m + n))
    assert f.open().evaluate(x).slope.lower(problem.ball(radius)) <= 0.0


def test_a_table_too_large_for_a_sharp_bound_says_so(monkeypatch):
    monkeypatch.setattr(spectra, "DENSE_ENTRIES", 0)
    for side in ("BOUND_SIDE", "EVERY_SIDE"):
        monkeypatch.setattr(spectra, side, 10)
    assert MatrixCompletion(radius=5.0, rank=2, max_sweeps=1, certify="sharp").fit(TABLE).coarse_
