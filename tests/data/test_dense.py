"""Dense data: A w = X w and its adjoint, block by block, whatever the dtype and layout of X, without a copy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from projfree import Objective, Squared, as_data
from projfree.algebra import Point
from projfree.data import local
from projfree.data import rows as passes
from projfree.data.rows import AsResidual, FormPredictions

N, D = 150, 5
RNG = np.random.default_rng(1)
X = RNG.standard_normal((N, D))
Y = RNG.standard_normal(N)
FORMS = {
    "double": X,
    "single": X.astype(np.float32),
    "fortran": np.asfortranarray(X),
    "single fortran": np.asfortranarray(X.astype(np.float32)),
    "strided": np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": X[::-1, ::-1],
    "read-only": np.broadcast_to(X[0], (N, D)),
}

every_form = pytest.mark.parametrize("name", FORMS)
outputs = pytest.mark.parametrize("k", [(), (1,), (3,)], ids=["vector", "one column", "three columns"])


@pytest.fixture(params=[1 << 20, 1], ids=["one block", "three blocks"], autouse=True)
def _blocks(request, monkeypatch):
    monkeypatch.setattr(local, "TILE_BYTES", request.param)
    if request.param == 1:
        monkeypatch.setattr(passes, "BLOCK_ROWS", 64)


@every_form
@outputs
def test_image_and_adjoint(name, k):
    A, rng = FORMS[name].astype(np.float64), np.random.default_rng(2)
    data = as_data(FORMS[name], Y)
    w, r = rng.standard_normal((D, *k)), rng.standard_normal((N, *k))
    assert data.shape(k) == w.shape
    np.testing.assert_allclose(data.apply(w), A @ w, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(data.adjoint(r), A.T @ r, rtol=1e-13, atol=1e-12)
    assert data.apply(w).dtype == data.adjoint(r).dtype == np.float64


@given(st.integers(0, 2**32 - 1))
def test_adjoint_identity(seed):
    rng, data = np.random.default_rng(seed), as_data(X, Y)
    w, r = rng.standard_normal(D), rng.standard_normal(N)
    assert np.vdot(data.apply(w), r) == pytest.approx(np.vdot(w, data.adjoint(r)), rel=1e-11, abs=1e-11)


def test_every_read_is_counted_also_of_samples():
    f = Objective(Squared(), as_data(X, Y))
    workspace, x = f.workspace, Point(np.ones(D))
    assert f.workspace.rows_read == 0, "construction checks the data, it does not work with it"
    workspace.fold(FormPredictions(), [x])
    workspace.sweep(AsResidual(), [x])
    assert f.passes == 2
    workspace.fold(FormPredictions(), [x])
    assert f.passes == 2, "the image is known"
    workspace.sample(7, np.random.default_rng(0)).sweep(FormPredictions(), [x])
    assert workspace.rows_read == 2 * N + 7
    f.smoothness()
    assert workspace.rows_read == 3 * N + 7
    assert f.data.open().rows_read == f.open().passes == 0, "each workspace counts for itself"


@pytest.mark.parametrize("weight", [None, np.arange(1.0, 6.0)], ids=["plain", "weighted"])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_samples_are_unbiased(weight, m):
    """The mean over all samples of m rows is the sum over all rows, exactly."""
    data = as_data(X[:5], Y[:5], weight)
    r = np.arange(5.0) ** 2
    whole = data.adjoint(r * data.rows(slice(None)).s)
    parts = []
    for rows in map(np.array, itertools.combinations(range(5), m)):
        part = data.representative(rows)
        np.testing.assert_array_equal(part.y, Y[rows])
        parts.append(part.adjoint(r[rows] * part.rows(slice(None)).s))
    np.testing.assert_allclose(np.mean(parts, axis=0), whole, rtol=1e-12)


def test_weights_are_normalised_whatever_their_scale():
    for scale in (1.0, 1.7e308, 1e-300):
        data = as_data(X[:3], Y[:3], np.array([1.0, 0.0, 3.0]) / 3.0 * scale)
        np.testing.assert_allclose(data.rows(slice(None)).s, [0.25, 0.0, 0.75], rtol=1e-15)
    assert as_data(X[:4], Y[:4]).rows(slice(None)).s == 0.25


@pytest.mark.parametrize("kind", [int, bool, np.uint8, np.float16])
def test_whole_numbers_and_booleans_become_floats(kind):
    table = (np.arange(6).reshape(3, 2) % 2).astype(kind)
    data = as_data(table, [1, 2, 3])
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.apply(np.array([1.0, 10.0])), table.astype(float) @ [1.0, 10.0])


class TestFingerprint:
    """The same data have the same fingerprint; whatever differs shows."""

    def test_same(self):
        assert as_data(X, Y).fingerprint() == as_data(X.copy(), Y.tolist()).fingerprint()

    @pytest.mark.parametrize(
        "other",
        [
            lambda: as_data(np.where(np.arange(N)[:, None] == 77, X + 1e-9, X), Y),
            lambda: as_data(X, np.where(np.arange(N) == 77, Y + 1e-9, Y)),
            lambda: as_data(X, Y[:, None]),
            lambda: as_data(X, Y, np.arange(1.0, N + 1)),
            lambda: as_data(X.astype(np.float32), Y),
            lambda: as_data(X[:-1], Y[:-1]),
        ],
        ids=["an entry", "a target", "shape", "weights", "dtype", "rows"],
    )
    def test_different(self, other):
        assert other().fingerprint() != as_data(X, Y).fingerprint()

    @pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_a_sign_that_no_square_shows(self, kind):
        signs = np.sign(np.random.default_rng(0).standard_normal((5_000, 40)))
        other, y = signs.copy(), np.zeros(5_000)
        other[1_234, 7] *= -1.0
        assert as_data(kind(other), y).fingerprint() != as_data(kind(signs), y).fingerprint()

    def test_rows_in_another_order(self):
        order = np.arange(5_000)
        order[[2_001, 2_002]] = 2_002, 2_001
        table, y = np.random.default_rng(0).standard_normal((5_000, 7)), np.zeros(5_000)
        assert as_data(table[order], y).fingerprint() != as_data(table, y).fingerprint()

    def test_weights_among_each_other(self):
        assert as_data(X, Y, np.arange(1.0, N + 1)).fingerprint() != as_data(X, Y, np.ones(N)).fingerprint()


@pytest.mark.parametrize("shape", [(2000, 10, 80), (200, 500, 80), (2000, 120, 10), (20_000, 1, 1)])
def test_threads_of_blas_do_not_show(shape):
    """Neither in passes over small tables nor in the mean target."""
    n, d, k = shape
    rng = np.random.default_rng(0)
    X, Y, W, s = (rng.standard_normal(size) for size in ((n, d), (n, k), (d, k), n))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            data = as_data(X, Y, np.abs(s) + 0.1)
            found.append((data.apply(W), data.adjoint(Y), data.mean_target()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
