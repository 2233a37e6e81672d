"""Features as blocks of the larger matrix: values, tangents, bounds and sweeps against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import dense_descent, entries, offset_regression, predictions

from projfree.algebra import LowRank, OnPattern, Pattern
from projfree.completion.als_updates import Sides
from projfree.completion.stacked import StackedPattern
from projfree.estimators.completion.convex_gap import certified
from projfree.estimators.completion.convex_problem import ConvexProblem, SweepSettings
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.features import FeatureTable
from projfree.losses import Huber, Logistic, Squared

SHAPE = (9, 7)
WIDTHS = (3, 2)


def made(implicit=0.7, weight=0.4, loss=Squared(), sides=(True, True), p=1.0, kinds=(True, True, True), missing=0.0):  # noqa: B008 - a loss is frozen
    """A problem whose first row and last column have no entry, and its parts: places, targets, weights, tables.

    A part of the features is ``missing``.
    """
    rng = np.random.default_rng(0)
    rows, cols, y = entries(*SHAPE, 30, seed=0)
    y = np.where(y > 3.0, 1.0, -1.0) if loss.labels else y
    kept = (rows > 0) & (cols < SHAPE[1] - 1)
    rows, cols, y = rows[kept], cols[kept], y[kept]
    tables = [rng.standard_normal((side, width)) for side, width in zip(SHAPE, WIDTHS, strict=True)]
    for table in tables if missing else ():
        table[rng.random(table.shape) < missing] = np.nan
    on = tuple(
        FeatureTable.of(t, tuple("abc"[: t.shape[1]])).on if use else None for t, use in zip(tables, sides, strict=True)
    )
    known = [np.zeros((side, 0)) if t is None else t.toarray() for side, t in zip(SHAPE, on, strict=True)]
    sizes = rng.random(len(y)) + 0.2
    base = 0.0 if loss.labels else float(y.mean())
    settings = SweepSettings(loss, p, 0.25, 2.0, kinds, base, implicit, on, weight)
    return ConvexProblem.of(rows, cols, y, sizes, SHAPE, settings), (rows, cols, y, sizes, known, implicit, weight)


def dense_parts(given):
    """What S and T should be, and the weight of each of their squares."""
    rows, cols, _, sizes, (users, items), implicit, weight = given
    B = np.zeros(SHAPE)
    B[rows, cols] = 1.0
    wide = SHAPE[1] if implicit else 0, SHAPE[0] if implicit else 0
    right = np.hstack([B[:, : wide[0]], np.nan_to_num(users)])
    low = np.vstack([B[: wide[1]], np.nan_to_num(items.T)])
    s = np.hstack([np.outer(B.any(axis=1), np.full(wide[0], implicit)), weight * ~np.isnan(users)])
    t = np.vstack([np.outer(np.full(wide[1], implicit), B.any(axis=0)), weight * ~np.isnan(items.T)])
    return right, low, s / len(sizes), t / len(sizes)


def dense_value(problem, given, M, b):
    """The objective by its formula, with offsets as given."""
    rows, cols, y, sizes, *_ = given
    (m, n), f = SHAPE, problem.f.entries
    u = f.base + b[0] + b[1 : 1 + m][rows] + b[1 + m :][cols] + M[rows, cols]
    right, low, s, t = dense_parts(given)
    loss = np.average(f.loss.value(u, y), weights=sizes) + 0.5 * f.loss.smoothness * f.ridge / len(y) * (b @ b)
    return loss + (s * (right - M[:m, n:]) ** 2).sum() + (t * (low - M[m:, :n]) ** 2).sum()


def point(problem, seed=0, rank=3):
    rng = np.random.default_rng(seed)
    return problem.f.point(LowRank.of(*(0.6 * rng.standard_normal((side, rank)) for side in problem.f.shape)))


CASES = [(0.7, (True, True)), (0.7, (True, False)), (0.7, (False, False)), (0.0, (True, True)), (0.0, (False, True))]


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize(("implicit", "sides"), CASES)
@pytest.mark.parametrize("loss", [Squared(), Huber(0.5), Logistic()], ids=lambda loss: type(loss).__name__)
def test_value_and_tangent_are_those_of_the_dense_formula(implicit, sides, loss, missing):
    problem, given = made(implicit, loss=loss, sides=sides, missing=missing)
    f, x, z = problem.f, point(problem), point(problem, 1)
    here, there = f.evaluate(x), f.evaluate(z)
    assert here.value == pytest.approx(dense_value(problem, given, x.w.toarray(), here.intercept), rel=1e-12)
    assert here.slope(x.w) == pytest.approx(here.value, rel=1e-9)
    assert here.slope(z.w) <= there.value
    steps = [f(f.point(x.w + t * (z.w - x.w))) for t in (1e-5, -1e-5)]
    gradient = here.slope.gradient.toarray()
    expected = float((gradient * (z.w - x.w).toarray()).sum())
    assert (steps[0] - steps[1]) / 2e-5 == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert not gradient[SHAPE[0] :, SHAPE[1] :].any()  # the corner is free
    assert f.known == pytest.approx(f.neighbours.value(f.neighbours.blocks((0.0 * x.w).low)), rel=1e-12)
    curved = f.curvature_along(z.w - x.w)
    assert there.value <= here.value + expected + 0.5 * curved + 1e-9


def test_blocks_of_any_widths_are_their_dense_matrix():
    rng = np.random.default_rng(0)
    shapes = {"A": (9, 7), "C": (9, 4), "D": (20, 7)}
    parts = []
    for shape in shapes.values():
        pattern, *_ = Pattern.of(*np.divmod(np.sort(rng.choice(np.prod(shape), 20, replace=False)), shape[1]), shape)
        parts.append(OnPattern(pattern, rng.standard_normal(20)))
    stack = StackedPattern(*parts)
    dense = np.block([[parts[0].toarray(), parts[1].toarray()], [parts[2].toarray(), np.zeros((20, 4))]])
    np.testing.assert_allclose(stack.toarray(), dense)
    turned = StackedPattern(*(_turned(part) for part in (parts[0], parts[2], parts[1])))
    low = LowRank.of(rng.standard_normal((29, 2)), rng.standard_normal((11, 2)))
    for one, full in ((stack, dense), (turned, dense.T), (stack + low, dense + low.toarray())):
        np.testing.assert_allclose(one.gram(), full.T @ full if len(full) > len(full.T) else full @ full.T, atol=1e-12)
    right, left = rng.standard_normal((11, 3)), rng.standard_normal((29, 3))
    np.testing.assert_allclose(stack.times(right), dense @ right)
    np.testing.assert_allclose(stack.transposed_times(left), dense.T @ left)
    assert stack.inner(low) == pytest.approx(float((dense * low.toarray()).sum()))


def _turned(part):
    at = part.pattern
    pattern, order, _ = Pattern.of(at.indices, at.rows, part.shape[::-1])
    return OnPattern(pattern, part.values[order])


def dense_minimum(problem, given, radius):
    """The minimum over the ball by accelerated projected gradients on dense matrices, in the weighted coordinates."""
    rows, cols, y, sizes, *_ = given
    (m, n), f, unit = SHAPE, problem.f.entries, problem.unit
    right, low, s, t = dense_parts(given)
    D, share = np.multiply.outer(unit.rows, unit.cols), sizes / sizes.sum()
    A, fit = offset_regression(rows, cols, share, SHAPE, f.ridge)
    L = 2.0 * max(s.max(initial=0.0), t.max(initial=0.0), share.max()) / D.min() ** 2

    def gradient(M):
        rest = y - f.base - M[rows, cols]
        out = np.zeros(M.shape)
        out[rows, cols] = -2.0 * share * (rest - A @ (fit @ rest))
        out[:m, n:], out[m:, :n] = 2.0 * s * (M[:m, n:] - right), 2.0 * t * (M[m:, :n] - low)
        return out

    M = dense_descent(gradient, D, L, problem.p, radius, 500)
    return dense_value(problem, given, M, fit @ (y - f.base - M[rows, cols]))


@pytest.mark.parametrize(("p", "missing"), [(1.0, 0.4), (1.2, 0.0)])
@pytest.mark.parametrize(("implicit", "sides"), CASES)
def test_the_bound_is_below_the_dense_minimum_and_close_to_it(implicit, sides, p, missing):
    problem, given = made(implicit, sides=sides, p=p, missing=missing)
    least = dense_minimum(problem, given, 6.0)
    for rank, sweeps in ((1, 2), (12, 300)):
        state, _ = problem.within(rank, 6.0, None, max_iter=sweeps)
        model = Factors.of(problem.f, state).inside(p, 6.0)
        found = certified(problem, model, 6.0)
        assert found.bound <= least * (1 + 1e-9)
        assert found.value >= least * (1 - 1e-9)
    assert found.value <= least * 1.002
    assert found.bound >= least * 0.98


@pytest.mark.parametrize("missing", [0.0, 0.4, 0.9])
@pytest.mark.parametrize(("implicit", "sides"), CASES)
def test_sweeps_descend(implicit, sides, missing):
    """With a fixed strength and p = 1 no sweep raises the penalised problem of the larger matrix."""
    problem, _ = made(implicit, sides=sides, kinds=(False, True, True), missing=missing)
    f, totals = problem.f, []

    def total(run):
        now, e = Sides.of(f, run.state.x), f.entries
        ridge = 0.5 * e.loss.smoothness * e.ridge * float(now.rows @ now.rows + now.cols @ now.cols)
        squares = e.data.n * f.neighbours.value(f.neighbours.blocks(run.state.x.w))
        losses = e.data.n * float(e.data.weight @ e.loss.value(predictions(e, now), e.data.y))
        totals.append(losses + squares + ridge + 2.0 * run.state.sigma.sum())

    problem.penalised(3, 1.0, None, max_iter=20, callbacks=[total])
    assert len(totals) == 20
    assert (np.diff(totals) <= 1e-9 * np.abs(totals[:-1])).all()
