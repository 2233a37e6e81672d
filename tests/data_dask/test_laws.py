"""Dask data keep the laws of every backend, with a cluster and without one."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    ConstrainedNewton,
    CorrectivePrimalAveraging,
    FrankWolfe,
    Logistic,
    Objective,
    OpenLoop,
    PrimalAveraging,
    Softmax,
    Squared,
    as_data,
)
from projfree.testing import backends

CHUNK = 60
SOME = [(Logistic(), 0), (Softmax(), 3)]


def dense(X, y, weight):
    return as_data(da.from_array(X, chunks=(CHUNK, X.shape[1])), y, weight)


def sparse(X, y, weight):
    cuts = range(0, len(X), CHUNK)
    blocks = [dask.delayed(sp.csr_array)(X[k : k + CHUNK]) for k in cuts]
    own = [[dask.delayed(v[k : k + CHUNK]) for k in cuts] for v in (y, weight)]
    return as_data(blocks, *own)


def scaled(X, y, weight):
    ones = np.ones(X.shape[1])
    return dense(2.0 * X + 1.0, y, weight).standardized(ones, 2.0 * ones)


MAKERS = {"dense": dense, "sparse": sparse, "standardised": scaled}
#: All of them where there is time.
FIRST = [make if make is dense else pytest.param(make, marks=pytest.mark.slow) for make in MAKERS.values()]


@pytest.fixture
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("make", FIRST, ids=MAKERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "outputs"), backends.LOSSES, ids=repr)
def test_evaluations_without_a_client(here, make, loss, outputs, intercept):
    backends.check_evaluations(make, loss, outputs, intercept)


@pytest.mark.parametrize("make", [sparse, scaled], ids=["sparse", "standardised"])
@pytest.mark.parametrize(("loss", "outputs"), SOME, ids=repr)
def test_sparse_and_standardised_rows_without_a_client(here, make, loss, outputs):
    backends.check_evaluations(make, loss, outputs, True)


@pytest.mark.parametrize("make", FIRST, ids=MAKERS)
@pytest.mark.parametrize(("loss", "outputs"), SOME, ids=repr)
def test_evaluations_on_a_cluster(client, make, loss, outputs):
    backends.check_evaluations(make, loss, outputs, True)


@pytest.mark.parametrize(
    "solver", [PrimalAveraging(), pytest.param(FrankWolfe(OpenLoop(2)), marks=pytest.mark.slow)], ids=repr
)
def test_fixed_steps_on_a_cluster(client, solver):
    backends.check_fixed(dense, Logistic(), 0, False, solver)


@pytest.mark.parametrize("solver", ["auto", ConstrainedNewton(), CorrectivePrimalAveraging()], ids=repr)
@pytest.mark.parametrize(("loss", "outputs"), [(Squared(), 0), (Logistic(), 0)], ids=repr)
def test_searches_without_a_client(here, loss, outputs, solver):
    backends.check_searching(dense, loss, outputs, True, solver)


def test_paths_and_checkpoints(here):
    backends.check_path(dense)
    backends.check_checkpoint(dense)


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_all_laws_without_a_client(here, make):
    backends.check_backend(make, same_draws=False)


@pytest.mark.slow
def test_laws_on_a_cluster(client):
    """With fewer solvers, because a round of a cluster takes a while."""
    losses, solvers = [(Squared(), 0), (Logistic(), 0)], [CorrectivePrimalAveraging(), ConstrainedNewton(), "auto"]
    backends.check_backend(dense, same_draws=False, losses=losses, searching=solvers)


def test_the_median_is_near(here):
    """At least a quarter of the rows lie on each side, and of one partition it is exact."""
    rng = np.random.default_rng(1)
    for n in (1, 2, 7, 100):
        y = rng.standard_normal((n, 2)) * 10.0 ** rng.integers(-300, 150, (n, 2))
        parts, whole = (as_data(da.ones((n, 2), chunks=(rows, 2)), y).quantile(0.5) for rows in (3, n))
        np.testing.assert_array_equal(whole, np.median(y, axis=0))
        assert ((y <= parts).mean(axis=0) >= 0.25).all()
        assert ((y >= parts).mean(axis=0) >= 0.25).all()


def test_samples_are_unbiased(here):
    """Every row is drawn as often as any other, whatever the sizes of partitions."""
    X, n = np.eye(20), 20
    data = as_data(da.from_array(X, chunks=((1, 2, 13, 4), 20)), np.ones(n))
    f, rng = Objective(Squared(), data), np.random.default_rng(0)
    total, turns = np.zeros(n), 400
    for _ in range(turns):
        total += f.estimate(f.point(np.zeros(n)), 7, rng).gradient / turns
    exact = f.evaluate(f.point(np.zeros(n))).slope.gradient
    # The standard deviation of a mean of so many draws is 0.07 of the entry.
    np.testing.assert_allclose(total, exact, rtol=0.3)
    assert abs(total.sum() / exact.sum() - 1.0) < 1e-12


def test_rows_at_odd_places_in_memory_give_the_same_bits(here, table):
    """What has travelled may begin anywhere, and NumPy multiplies such arrays in another way."""
    X, y, _ = table
    odd = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    assert not odd.flags.aligned
    rng = np.random.default_rng(0)
    fs = [Objective(Logistic(), as_data([dask.delayed(a)], [dask.delayed(y)])) for a in (X, odd)]
    for w in rng.standard_normal((5, 5)):
        one, other = (f.evaluate(f.point(w)) for f in fs)
        np.testing.assert_array_equal(one.slope.gradient, other.slope.gradient)
