"""What the tests of every source share: agreement with dense data, to 1e-13 of the sum of absolute terms."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import Logistic, LpBall, Objective, Squared, Status, minimize
from projfree.data import rows as passes
from projfree.data import tables
from projfree.data.gram import largest_eigenvalue

TOL = 1e-13
LOSSES = (Squared(), Logistic())


@pytest.fixture
def small_is_large(monkeypatch):
    """Let small tables take the way of large ones: compiled kernels and several threads."""
    monkeypatch.setattr("projfree.data.tables.NATIVE_BYTES", 0)
    monkeypatch.setattr(passes, "THREADED_BYTES", 0)


def agree(got, expected, size):
    __tracebackhide__ = True
    assert np.shape(got) == np.shape(expected)
    assert (np.abs(got - expected) <= TOL * size + 1e-300).all(), np.abs(got - expected).max()


class Judge:
    """Compares data with a dense table of the same numbers (``size``: with the absolute terms of each)."""

    def linear(self, data, A, size=None, outputs=()):
        size = np.abs(A) if size is None else size
        rng = np.random.default_rng(5)
        w, r = rng.standard_normal((A.shape[1], *outputs)), rng.standard_normal((len(A), *outputs))
        assert data.shape(outputs) == w.shape
        agree(data.apply(w), A @ w, size @ np.abs(w))
        agree(data.adjoint(r), A.T @ r, size.T @ np.abs(r))

    def measures(self, data, A, size=None):
        size = np.abs(A) if size is None else size
        s = np.broadcast_to(data.rows(slice(None)).s, len(A))
        norms, own = np.linalg.norm(size, axis=1), data.column_stats
        if data.scaling is not None:  # bounds from the statistics of columns
            assert norms.max() <= own.row_norm * (1 + 1e-13) <= np.linalg.norm(size.max(axis=0)) * (1 + 1e-12)
            assert s @ norms**2 <= own.mean_square * (1 + 1e-12) <= 2 * (s @ norms**2)
        else:
            assert own.row_norm == pytest.approx(norms.max(), rel=1e-13)
            assert own.mean_square == pytest.approx(s @ norms**2, rel=1e-12)
        agree(data.column_stats.mean, s @ A, s @ size)

    def smoothness(self, data, A):
        s = np.broadcast_to(data.rows(slice(None)).s, len(A))
        for centred in (False, True):
            Z = A - (s @ A if centred else 0.0)
            top = np.linalg.eigvalsh((Z.T * s) @ Z)[-1]
            assert largest_eigenvalue(data, centred=centred) >= top * (1 - 1e-12)

    def tangents(self, data, dense, size=None, losses=LOSSES):
        """Values and tangents agree, and each bound is at most its rounding allowance above the other one."""
        ball = LpBall(2, 1.5)
        w = np.random.default_rng(6).standard_normal(dense.shape(data.y.shape[1:])) / 9
        scale = 1.0 if size is None else max(1.0, float(size.max()))
        for loss in losses:
            for fit_intercept in (False, True):
                f, g = Objective(loss, data, fit_intercept), Objective(loss, dense, fit_intercept)
                x, z = f.point(w), g.point(w)
                m, exact = f.evaluate(x).slope, g.evaluate(z).slope
                assert f(x) == pytest.approx(g(z), rel=1e-12 * scale)
                np.testing.assert_allclose(
                    m.gradient, exact.gradient, rtol=0, atol=1e-12 * scale * (1 + dense.column_stats.row_norm)
                )
                away = np.linalg.norm(m.gradient - exact.gradient)
                assert fit_intercept or away <= m.gradient_error + exact.gradient_error
                for (bound, allowance), (other, more) in [(m.minimum(ball), exact.minimum(ball))]:
                    assert abs(bound - other) <= 2 * (allowance + more) + 1e-11 * scale

    def certificate(self, f, dense=None):
        """A run converges, anyone can verify it, and the bound is below the minimum that dense data find."""
        ball = LpBall(1.5, 0.03)  # the targets are noise: a small ball has its optimum on the boundary
        result = minimize(f, ball, tol=1e-7)
        assert result.status is Status.CONVERGED
        assert result.certificate.verify(objective=f).ok
        if dense is not None:
            other = minimize(dense, ball, tol=1e-8)
            assert result.bound <= other.value
            assert other.bound <= result.value
        return result


@pytest.fixture
def judge():
    return Judge()


@pytest.fixture
def agreement():
    return agree


def labels(rng, n):
    y = np.sign(rng.standard_normal(n))
    y[:2] = 1.0, -1.0
    return y


@pytest.fixture
def identical():
    """Passes over the same data with 1, 2 and 3 threads give the same bits."""

    def check(make):
        seen = []
        for threads in (1, 2, 3):
            f = Objective(Logistic(), make(threads), fit_intercept=False)
            m = f.evaluate(f.point(np.linspace(-0.1, 0.1, f.shape[0]))).slope
            h = Objective(Squared(), make(threads), fit_intercept=True)
            k = h.evaluate(h.point(np.linspace(-0.1, 0.1, f.shape[0]))).slope
            data = make(threads)
            own = data.column_stats
            seen.append(
                [
                    m.constant,
                    m.gradient,
                    k.constant,
                    k.gradient,
                    own.mean,
                    own.mean_square,
                    data.gram().matrix,
                ]
            )
        for other in seen[1:]:
            for a, b in zip(seen[0], other, strict=True):
                np.testing.assert_array_equal(a, b)

    return check


@pytest.fixture
def table():
    """A table of which most entries are zero, targets of two classes, and weights."""

    def make(n, d, seed=0, density=0.3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
        return X, labels(rng, n), rng.uniform(0.1, 2.0, n)

    return make


@pytest.fixture
def small(monkeypatch):
    """Blocks of 64 rows, and chunks of two blocks of six columns."""
    monkeypatch.setattr(passes, "BLOCK_ROWS", 64)
    monkeypatch.setattr(tables, "CHUNK_BYTES", 128 * 6 * 8)


@pytest.fixture
def held():
    """X, y and weights of 700 rows and six columns, to be put into files."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((700, 6)) + 0.5
    return X, X @ rng.standard_normal(6) + rng.standard_normal(700), rng.uniform(0.1, 1.0, 700)
