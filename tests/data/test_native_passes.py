"""Compiled passes agree with float64 NumPy to 1e-13 of the sum of absolute terms, whatever the layout and the loss."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    BiWeight,
    Huber,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    Softmax,
    Squared,
    SquaredSigmoid,
    as_data,
    minimize,
)
from projfree.data import blocks, image_value, native
from projfree.data.spare import LARGE, Spare

N, D = 2_101, 11  # more than one block, and no multiple of any tile
TOL = 1e-13
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, D))
WEIGHT = RNG.uniform(size=N)
ELEMENTWISE = [Squared(), Logistic(), SquaredSigmoid(), BiWeight(0.7), Huber(0.8)]
LAYOUTS = {
    "C": X,
    "F": np.asfortranarray(X),
    "single C": X.astype(np.float32),
    "single F": np.asfortranarray(X.astype(np.float32)),
}


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setattr(blocks, "NATIVE_BYTES", 0)
    monkeypatch.setattr(blocks, "THREADED_BYTES", 0)
    monkeypatch.setattr(image_value, "NATIVE_ENTRIES", 0)


def targets(loss, k, rng):
    if isinstance(loss, Softmax):
        return np.concatenate([np.arange(k), rng.integers(0, k, N - k)])
    y = rng.standard_normal((N, k) if k else N)
    return np.where(y > 0, 1.0, -1.0) if loss.labels else y


def agrees(loss, table, k, weight, b=None, size=1.0):
    rng = np.random.default_rng(k)
    f = Objective(loss, as_data(table, targets(loss, k, rng), weight))
    w = size * rng.standard_normal((D, *f.outputs))
    x = f.point(w)
    A, s = table.astype(np.float64), np.broadcast_to(f.data.weights(slice(None)), N)
    m = f._tangent(x, b) if b is not None and loss.quadratic is False else f.minorant(x)
    u = f.settled(x)
    np.testing.assert_allclose(u, A @ w, rtol=0, atol=TOL * (np.abs(A) @ np.abs(w)).max())
    losses, slope = loss.value_and_derivative(u if b is None else u + b, f.y)
    losses, r = (losses.T * s).T, (slope.T * s).T
    assert abs(m.constant - (losses.sum() - (r * u).sum())) <= TOL * (losses.sum() + np.abs(r * u).sum())
    assert (np.abs(m.gradient - A.T @ r) <= TOL * (np.abs(A).T @ np.abs(r))).all()
    assert abs(x.value - losses.sum()) <= TOL * losses.sum()
    return f, x, losses.sum()


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_one_output(loss, layout, weight):
    agrees(loss, LAYOUTS[layout], 0, weight)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", [*ELEMENTWISE, Softmax()], ids=repr)
@pytest.mark.parametrize("k", [3, 8])
def test_several_outputs(loss, layout, weight, k):
    agrees(loss, LAYOUTS[layout], k, weight)


@pytest.mark.parametrize("k", range(1, blocks.MOST_OUTPUTS + 2))
def test_any_number_of_outputs(k):
    agrees(Squared(), X, k, WEIGHT)
    if k > 1:
        agrees(Softmax(), X, k, WEIGHT)


def test_many_outputs_fall_back():
    f = Objective(Squared(), as_data(X, np.zeros((N, blocks.MOST_OUTPUTS + 1))))
    calls = native.output_blocks.stats.cache_hits, len(native.output_blocks.signatures)
    f.minorant(f.point(np.ones(f.shape)))
    assert calls == (native.output_blocks.stats.cache_hits, len(native.output_blocks.signatures))


@pytest.mark.parametrize("k", [0, 3])
def test_intercepts_enter(k):
    b = np.array(0.3) if not k else np.array([0.3, -0.2, 0.0])
    agrees(Huber(0.8), X, k, WEIGHT, b)


@pytest.mark.parametrize("size", [1e-6, 30.0, 1e4])
def test_softmax_of_any_size(size):
    """Beyond 280 exponentials would leave the range; rows are then shifted by their largest entry."""
    agrees(Softmax(), X, 5, None, size=size)


@pytest.mark.parametrize(
    ("loss", "k"), [(Logistic(), 0), (Huber(), 3), (Softmax(), 4)], ids=["one", "three", "softmax"]
)
def test_values_of_mixtures(loss, k):
    f, x, value = agrees(loss, X, k, WEIGHT)
    again = f.point(x.w)
    f.settled(again)
    assert abs(f.value(again) - value) <= TOL * value
    other = f.point(np.ones(f.shape))
    f.settled(other)
    mixed = 0.25 * x + 0.75 * other
    u = 0.25 * f.settled(x) + 0.75 * f.settled(other)
    due = ((loss.value(u, f.y).T) * f.data.weights(slice(None))).sum()
    assert abs(f.value(mixed) - due) <= TOL * due
    np.testing.assert_allclose(f.settled(mixed), u, rtol=0, atol=TOL * np.abs(u).max())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("loss", "k"), [(Logistic(), 0), (Squared(), 8), (Softmax(), 5)], ids=["one", "eight", "softmax"]
)
def test_threads_do_not_show(loss, k, layout):
    y = targets(loss, k, np.random.default_rng(k))
    found = []
    for threads in (1, 2, 3):
        f = Objective(loss, as_data(LAYOUTS[layout], y, WEIGHT, threads=threads))
        x = f.point(np.full(f.shape, 0.1))
        m = f.minorant(x)
        found.append((m.constant, x.value, m.gradient.tobytes(), f.value(0.5 * x)))
    assert found[0] == found[1] == found[2]


def test_nan_is_not_lost():
    f = Objective(Softmax(), as_data(X, targets(Softmax(), 3, RNG)))
    x = f.point(np.ones(f.shape))
    x.image.settle(np.full((N, 3), np.nan))
    assert np.isnan(f.minorant(x).constant)


class TestSpare:
    def test_comes_back_only_when_nobody_looks(self):
        spare, shape = Spare(), (2, LARGE // 8)
        first = spare.empty(shape)
        place, view = first.ctypes.data, first[1]
        del first
        second = spare.empty(shape)
        assert not np.shares_memory(second, view)
        del view
        assert spare.empty(shape).ctypes.data == place

    def test_small_and_other_sizes(self):
        spare = Spare(most=2)
        assert spare.empty((3,)).shape == (3,)
        held = [spare.empty((LARGE + k,)) for k in range(5)]
        assert len({a.ctypes.data for a in held}) == 5
        assert len(spare._kept) == 2


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.7)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_for_the_intercept(monkeypatch, loss, weighted):
    rng = np.random.default_rng(1)
    n = 5_000
    X, y = rng.standard_normal((n, 3)), np.where(rng.random(n) < 0.3, 1.0, -1.0)
    weight = rng.random(n) if weighted else None
    assert image_value.slope_sums(loss, as_data(X, y, weight), y) is None  # too little to load compiled code for
    monkeypatch.setattr(image_value, "NATIVE_BYTES", 0)
    monkeypatch.setattr(image_value, "THREADED_ROWS", 0)
    assert image_value.slope_sums(Squared(), as_data(X, y, weight), y) is None
    found = {}
    for threads in (1, 2, 5):
        data = as_data(X, y, weight, threads=threads)
        sums = image_value.slope_sums(loss, data, y)
        found[threads] = [sums(scale * X[:, 0], b) for scale in (1.0, 300.0) for b in (-2.0, 0.0, 1e3)]
    assert found[1] == found[2] == found[5]
    s = data.weights(slice(None))
    for (scale, b), own in zip([(a, b) for a in (1.0, 300.0) for b in (-2.0, 0.0, 1e3)], found[1], strict=True):
        r, h = loss.slopes(scale * X[:, 0] + b, y)
        size = np.abs(r * s).sum()
        assert own[0] == pytest.approx((r * s).sum(), abs=1e-13 * size)
        assert own[1] == pytest.approx((h * s).sum(), rel=1e-12, abs=1e-300)
        assert own[2] == pytest.approx(size, rel=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.7)], ids=repr)
def test_an_intercept_by_compiled_slopes(monkeypatch, loss):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((3_000, 4)), np.where(rng.random(3_000) < 0.2, 1.0, -1.0)
    w = np.array([1.0, -2.0, 0.5, 3.0])
    found = []
    for limit in (1 << 60, 0):
        monkeypatch.setattr(image_value, "NATIVE_BYTES", limit)
        f = Objective(loss, as_data(X, y), fit_intercept=True)
        x = f.point(w)
        found.append((f.value(x), float(x.intercept)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


# NumPy works on what is strided, whatever the size.
BESIDE = {**LAYOUTS, "sparse": sp.csr_array(X * (X > 0.3)), "strided": np.repeat(X, 2, axis=1)[:, ::2]}


@pytest.mark.parametrize("centred", [False, True], ids=["raw", "centred"])
@pytest.mark.parametrize("layout", BESIDE)
@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_a_point_beside_gets_its_value_in_the_same_read(loss, layout, centred):
    rng = np.random.default_rng(5)
    shift = {"centre": rng.standard_normal(D)} if centred else {}
    f = Objective(loss, as_data(BESIDE[layout], targets(loss, 0, rng), WEIGHT, **shift))
    x, v = f.point(rng.standard_normal(D)), f.point(rng.standard_normal(D))
    f.minorant(x)
    new = 0.7 * x + 0.3 * v
    z = 0.6 * new + 0.4 * v
    alone, read = f.minorant(f.point(z.w)), f.data.meter.rows
    z.beside = new
    m = f.minorant(z)
    assert f.data.meter.rows == read + N
    assert z.beside is None
    assert new.value == pytest.approx(f.value(f.point(new.w)), rel=1e-12)
    np.testing.assert_allclose(f.settled(new), f.data.apply(new.w), rtol=0, atol=1e-12)
    np.testing.assert_allclose(f.settled(z), f.data.apply(z.w), rtol=0, atol=1e-12)
    assert m.constant == pytest.approx(alone.constant, rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(m.gradient, alone.gradient, rtol=0, atol=1e-12)


def test_a_point_beside_that_a_pass_does_not_complete_is_left_alone():
    f = Objective(Logistic(), as_data(X, np.sign(X[:, 0])))
    x, v, other = (f.point(RNG.standard_normal(D)) for _ in range(3))
    z = 0.5 * x + 0.5 * v
    for stranger in (0.5 * x + 0.5 * other, other):
        z.beside = stranger
        f.minorant(z)
        assert stranger.value is None
        assert not stranger.settled


def test_a_point_beside_waits_where_passes_are_not_compiled(monkeypatch):
    monkeypatch.setattr(blocks, "NATIVE_BYTES", 1 << 40)
    f = Objective(Logistic(), as_data(X, np.sign(X[:, 0])))
    x, v = f.point(RNG.standard_normal(D)), f.point(RNG.standard_normal(D))
    f.minorant(x)
    z, new = 0.5 * x + 0.5 * v, 0.7 * x + 0.3 * v
    z.beside = new
    f.minorant(z)
    assert new.value is None
    assert f.value(new) == pytest.approx(f.value(f.point(new.w)), rel=1e-13)


def test_averaging_reads_the_rows_once_an_iteration():
    f = Objective(Logistic(), as_data(X, np.sign(X[:, 0] + X[:, 1] ** 2)))
    met = []
    run = minimize(
        f, LpBall(1.5, 1.0), PrimalAveraging(), tol=0.0, max_iter=20, callbacks=lambda run: met.append(run.state.x.w)
    )
    assert run.n_passes <= 23  # the value of the last, and at most two looks at exit
    values = [f.value(f.point(w)) for w in met]
    np.testing.assert_allclose(run.trace["value"], values, rtol=1e-13)
