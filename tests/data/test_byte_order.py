"""Numbers in the other byte order are the same numbers: read from a file or held in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import LpBall, Objective, Squared, as_data, minimize

RNG = np.random.default_rng(0)
X, Y, S = RNG.integers(-9, 9, (50, 4)) / 8.0, RNG.integers(-9, 9, 50) / 8.0, RNG.integers(1, 9, 50) / 8.0
KINDS = ["f8", "f4", "f2", "i4", "u2"]


def swapped(array, kind=None):
    """The array, as numbers of some kind, in the order that this machine does not have."""
    kind = np.dtype(array.dtype if kind is None else kind)
    return array.astype(kind.newbyteorder("S"))


def same(data, known):
    assert data.fingerprint() == known.fingerprint()
    for part in (data.y, np.zeros(0) if data.weight is None else data.weight):
        assert part.dtype.isnative
    w = np.linspace(-1, 1, known.shape(())[0])
    np.testing.assert_array_equal(data.apply(w), known.apply(w))
    np.testing.assert_array_equal(data.adjoint(known.y), known.adjoint(known.y))
    a, b = (minimize(Objective(Squared(), each), LpBall(2, 0.5)) for each in (data, known))
    assert (a.value, a.bound) == (b.value, b.bound)


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"])
def way(request, monkeypatch):
    if request.param:
        monkeypatch.setattr("projfree.data.tables.NATIVE_BYTES", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_dense(way, kind):
    A = np.abs(X).astype(kind)
    same(as_data(swapped(A), swapped(Y), swapped(S)), as_data(A, Y, S))


@pytest.mark.parametrize("kind", ["f8", "f4", "i4"])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_sparse(way, kind, form):
    A = (8 * X).astype(kind) * (np.abs(X) > 0.5)
    known = form(A)
    other = known.copy()
    other.data = swapped(known.data)
    assert not other.dtype.isnative
    same(as_data(other, swapped(Y)), as_data(known, Y))
