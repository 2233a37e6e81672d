"""The convex problem: values, tangents and bounds against dense formulas, referees, and minima of zero."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import CASES, SHAPE, dense_minimum, dense_value, entries, problem
from hypothesis import given
from hypothesis import strategies as st

from projfree import MatrixCompletion, minimize
from projfree.algebra import LowRank, OnPattern, Pattern
from projfree.completion.als import ALS
from projfree.completion.certificate import certify
from projfree.completion.model import Factors
from projfree.completion.problem import CompletionProblem, Settings
from projfree.completion.ratings import Ratings
from projfree.completion.selection import run_sweeps
from projfree.completion.side_information import BlockMatrix
from projfree.losses import Huber, Logistic, Squared
from projfree.numerics import spectra
from projfree.sets import schatten

LOSSES = [Squared(), Huber(0.5), Logistic()]


def point(f, seed=0, rank=3):
    rng = np.random.default_rng(seed)
    return f.point(LowRank.of(*(0.6 * rng.standard_normal((side, rank)) for side in f.shape)))


@pytest.mark.parametrize(("implicit", "sides"), CASES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_value_and_tangent_are_those_of_the_dense_formula(implicit, sides, loss):
    f = problem(implicit, sides, loss)
    x, z = point(f), point(f, 1)
    here, there = f.evaluate(x), f.evaluate(z)
    assert here.value == pytest.approx(dense_value(f, x.w.toarray(), here.intercept), rel=1e-12)
    assert here.slope(x.w) == pytest.approx(here.value, rel=1e-9)
    assert here.slope(z.w) <= there.value
    steps = [f(f.point(x.w + t * (z.w - x.w))) for t in (1e-5, -1e-5)]
    gradient = here.slope.gradient.toarray()
    expected = float((gradient * (z.w - x.w).toarray()).sum())
    assert (steps[0] - steps[1]) / 2e-5 == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert not gradient[SHAPE[0] :, SHAPE[1] :].any()  # the corner is free
    assert there.value <= here.value + expected + 0.5 * f.smoothness() * (z.w - x.w).size() ** 2
    zero = LowRank(f.shape, ())
    if f.side.any:
        assert f.side.zero_value == pytest.approx(f.side.value(*zero.factors()), rel=1e-12)


@pytest.mark.parametrize("base", [0.0, -1.5])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_tangent_is_a_bound_for_any_offsets(loss, base):
    """The minorant lies below the function even if the offsets are nowhere near optimal."""
    rng, f = np.random.default_rng(0), problem(0.0, (False, False), loss)
    f.entries.base = base

    def predictions():
        return LowRank.of(*(rng.standard_normal((side, 2)) for side in SHAPE))

    for size in (0.0, 0.1, 3.0):
        u = predictions().on_places(f.entries.pattern)
        found = f.entries.tangent(u, f.entries.best_offsets(u) + size * rng.standard_normal(1 + sum(SHAPE)))
        for _ in range(5):
            v = predictions().on_places(f.entries.pattern)
            least = f.entries.value(v, f.entries.best_offsets(v))
            assert found.constant + found.gradient @ v <= least + 1e-10


def test_offsets_exist_for_rows_without_ratings():
    f = problem(0.0, (False, False))
    found = f.evaluate(f.point(LowRank(SHAPE, ())), tangent=False)
    assert found.intercept[1] == 0.0
    rows = problem(0.0, (False, False), kinds=(False, True, False))
    assert rows(rows.point(LowRank(SHAPE, ()))) > found.value


def optimum(f, radius):
    """The minimum over the weighted nuclear ball, by a conic solver."""
    import cvxpy as cp

    e, (m, n) = f.entries, SHAPE
    Y, b0, b, c = cp.Variable(SHAPE), cp.Variable(), cp.Variable(m), cp.Variable(n)
    at = list(zip(e.pattern.rows.tolist(), e.pattern.indices.tolist(), strict=True))
    u = cp.hstack([Y[i, j] / (f.rows[i] * f.cols[j]) + b0 + b[i] + c[j] for i, j in at]) + e.base
    if e.loss.labels:
        each = cp.logistic(-cp.multiply(e.y, u))
    else:
        each = cp.huber(u - e.y, e.loss.delta) if isinstance(e.loss, Huber) else cp.square(u - e.y)
    penalty = b0**2 + cp.sum_squares(b) + cp.sum_squares(c)
    total = np.broadcast_to(e.s, f.n) @ each + 0.5 * e.kappa * penalty
    return cp.Problem(cp.Minimize(total), [cp.normNuc(Y) <= radius]).solve(solver="CLARABEL")


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_referee_agrees(loss, weighted, tier):
    f = problem(0.0, (False, False), loss, weighted=weighted)
    least = optimum(f, 4.0)
    result = minimize(f, f.ball(4.0), f.solver, tol=1e-3, max_iter=100)
    assert result.bound <= least + 1e-6
    assert result.value >= least - 1e-6
    assert result.certificate.verify(objective=f).ok
    assert tier == "subspace" or result.value <= least * 1.01
    for sweeps in (1, 5, 60):
        state, _ = run_sweeps(f, ALS(7), None, radius=4.0, max_iter=sweeps)
        model = Factors.of_point(f, state.x, state.sigma).with_exact_sigma(f)
        for sharp in (False, True):
            found = certify(f, model, 4.0, sharp)
            assert found.bound <= least + 1e-6
            assert found.value >= least - 1e-6
    assert tier != "whole" or found.value <= least * 1.01


@pytest.mark.parametrize("p", [1.0, 1.2])
@pytest.mark.parametrize(("implicit", "sides"), CASES)
def test_the_bound_is_below_the_dense_minimum_and_close_to_it(implicit, sides, p):
    f = problem(implicit, sides, p=p)
    least = dense_minimum(f, 6.0)
    for rank, sweeps in ((1, 2), (12, 300)):
        state, _ = run_sweeps(f, ALS(rank), None, radius=6.0, max_iter=sweeps)
        found = certify(f, Factors.of_point(f, state.x, state.sigma).with_exact_sigma(f), 6.0, sharp=True)
        assert found.bound <= least * (1 + 1e-9)
        assert found.value >= least * (1 - 1e-9)
        assert found.factors.norm(p) <= 6.0 * (1 + 1e-12)
    assert found.value <= least * 1.002
    assert found.bound >= least * 0.98


TABLE = entries(60, 40, 900, seed=0, rank=3, noise=0.5)


@pytest.fixture(scope="module")
def solved():
    """A problem with and without implicit features, the value of its minimum, and models far from it and near."""
    found = []
    for implicit in (0.0, 1.0):
        model = MatrixCompletion(radius=40.0, rank=4, implicit=implicit, max_sweeps=2, certify=False).fit(TABLE)
        f, rough = model._problem(model.ratings_), model.factors_
        model.certify_to(1e-5)
        found.append((f, rough, model.factors_, model.value_))
    return found


@given(which=st.integers(0, 1), near=st.booleans(), share=st.floats(1e-3, 1.0), sharp=st.booleans())
def test_bounds_are_below_the_minimum_and_never_negative(solved, which, near, share, sharp):
    f, *models, least = solved[which]
    model = models[near]
    found = certify(f, model.scaled_into_ball(f.p, share * model.norm(f.p)), 40.0, sharp)
    assert 0.0 <= found.bound <= least
    assert found.bound <= found.value


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
    settings = Settings(Squared(), 1.0, 3.0, (True, True, True), 3.0, 1.0)
    rows, cols = np.divmod(np.arange(m * n), n)
    f = CompletionProblem(Ratings.of(rows, cols, np.full(m * n, 3.0), shape=shape), settings)
    ones = [np.zeros((2 * m, 2)), np.zeros((2 * n, 2))]
    for side, count in enumerate(shape):
        ones[side][:count, side], ones[side][count:, 1 - side] = 1.0, 1.0
    model = Factors.of(f, *ones, np.zeros(1 + m + n), np.ones(2))
    radius = float(model.with_exact_sigma(f).sigma.sum()) * (1.0 + d)
    x = model.with_exact_sigma(f).scaled_into_ball(1.0, radius * (1.0 - 2.0 * d)).point(f)
    assert f.open().evaluate(x).slope.lower(f.ball(radius)) <= 0.0


def test_blocks_of_any_widths_are_their_dense_matrix():
    rng = np.random.default_rng(0)
    parts = []
    for shape in ((9, 7), (9, 4), (20, 7)):
        pattern, *_ = Pattern.of(*np.divmod(np.sort(rng.choice(np.prod(shape), 20, replace=False)), shape[1]), shape)
        parts.append(OnPattern(pattern, rng.standard_normal(20)))
    stack = BlockMatrix((29, 11), [(parts[0], 0, 0), (parts[1], 0, 7), (parts[2], 9, 0)])
    dense = np.block([[parts[0].toarray(), parts[1].toarray()], [parts[2].toarray(), np.zeros((20, 4))]])
    np.testing.assert_allclose(stack.toarray(), dense)
    turned = BlockMatrix((11, 29), [(_turned(parts[0]), 0, 0), (_turned(parts[2]), 0, 9), (_turned(parts[1]), 7, 0)])
    low = LowRank.of(rng.standard_normal((29, 2)), rng.standard_normal((11, 2)))
    for one, whole in ((stack, dense), (turned, dense.T), (stack + low, dense + low.toarray())):
        gram = whole.T @ whole if len(whole) > len(whole.T) else whole @ whole.T
        np.testing.assert_allclose(one.gram(), gram, atol=1e-12)
        assert one.size() == pytest.approx(np.linalg.norm(whole), rel=1e-6)
    right, left = rng.standard_normal((11, 3)), rng.standard_normal((29, 3))
    np.testing.assert_allclose(stack.times(right), dense @ right)
    np.testing.assert_allclose(stack.transposed_times(left), dense.T @ left)
    assert stack.inner(low) == pytest.approx(float((dense * low.toarray()).sum()))


def _turned(part):
    at = part.pattern
    pattern, order, _ = Pattern.of(at.indices, at.rows, part.shape[::-1])
    return OnPattern(pattern, part.values[order])


@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
@pytest.mark.parametrize("q", [np.inf, 6.0])
def test_bounds_on_the_norm_of_a_stack_are_above_it(shape, q, monkeypatch):
    """By its Gram matrix, and by its Frobenius norm, which is less sharp."""
    monkeypatch.setattr(spectra, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(spectra, "EVERY_SIDE", 0)
    rng = np.random.default_rng(0)
    rows, cols, _ = entries(*shape, 300, seed=0)
    pattern, *_ = Pattern.of(rows, cols, shape)
    index_labels = ((0, 0), (0, shape[1]), (shape[0], 0))
    blocks = [(OnPattern(pattern, rng.standard_normal(300)), *at) for at in index_labels]
    stack = BlockMatrix(tuple(2 * side for side in shape), blocks)
    low = LowRank.of(*(rng.standard_normal((2 * side, 3)) for side in shape))
    for g in (stack, stack + low):
        exact = np.linalg.norm(np.linalg.svd(g.toarray(), compute_uv=False), q)
        p = 1.0 if np.isinf(q) else q / (q - 1.0)
        found = [schatten.structured_support(g, p, 1.0, sharp) for sharp in (True, False)]
        assert min(found) >= exact * (1 - 1e-12)
        assert found[0] <= exact * 1.01
        assert found[0] <= found[1] * (1 + 1e-3)
