"""Rows in files give what the same rows in memory give, to the last bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from projfree import (
    AcceleratedProjectedGradient,
    BiWeight,
    CorrectivePrimalAveraging,
    FrankWolfe,
    Growing,
    Huber,
    Logistic,
    LpBall,
    Minibatch,
    Objective,
    PrimalAveraging,
    ProjectedGradient,
    Softmax,
    Squared,
    SquaredSigmoid,
    as_data,
    minimize,
)
from projfree.data import ChunkedData, sources
from projfree.data.rows import Step

N, D = 700, 6
LOSSES = [Squared(), Logistic(), SquaredSigmoid(), BiWeight(1.5), Huber(0.7), Softmax()]
SOLVERS = [
    PrimalAveraging(),
    PrimalAveraging(sampling=Growing(2)),
    CorrectivePrimalAveraging(),
    FrankWolfe(),
    ProjectedGradient(sampling=Minibatch(40)),
    AcceleratedProjectedGradient(),
]


def targets(loss, y):
    if isinstance(loss, Softmax):
        return (y > -1).astype(int) + (y > 1)
    return np.sign(y) if loss.labels else y


def file_of(folder, X, name="X.npy"):
    np.save(folder / name, X)
    return folder / name


def same_run(data, other, loss, solver, intercept, iterations=12):
    runs = [
        minimize(Objective(loss, d, fit_intercept=intercept), LpBall(1.5, radius=1.0), solver, max_iter=iterations)
        for d in (data, other)
    ]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert (runs[0].value, runs[0].bound, runs[0].n_passes) == (runs[1].value, runs[1].bound, runs[1].n_passes)


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "compiled"])
def test_runs_agree_with_memory(small, monkeypatch, tmp_path, held, loss, intercept, compiled):
    if compiled:
        monkeypatch.setattr("projfree.data.tables.NATIVE_BYTES", 0)
    X, y, weight = held
    y = targets(loss, y)
    data = as_data(file_of(tmp_path, X), y, weight)
    assert isinstance(data, ChunkedData)
    assert len(list(data._chunks(64))) == 6
    same_run(data, as_data(X, y, weight), loss, PrimalAveraging(), intercept)


class TestOtherDoors:
    def test_memory_maps_and_slices_of_them(self, small, tmp_path, held):
        X, y, _ = held
        mapped = np.load(file_of(tmp_path, X), mmap_mode="r")
        for part, rows in [(mapped, slice(None)), (mapped[13:500], slice(13, 500))]:
            data = as_data(part, y[rows])
            np.testing.assert_array_equal(data.apply(np.ones(D)), as_data(X[rows], y[rows]).apply(np.ones(D)))

    def test_anything_with_row_slices(self, small, held):
        X, y, _ = held

        class Stored:
            shape, dtype = X.shape, X.dtype

            def __getitem__(self, rows):
                assert isinstance(rows, slice)
                return X[rows]

        same_run(as_data(Stored(), y), as_data(X, y), Squared(), PrimalAveraging(), True)


class TestSubset:
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_rows(self, small, monkeypatch, tmp_path, held, order):
        monkeypatch.setattr(sources, "BATCH_BYTES", 50 * D * 8)
        X, y, weight = np.asarray(held[0], order=order), held[1], held[2]
        data, other = as_data(file_of(tmp_path, X), y, weight), as_data(X, y, weight)
        rng = np.random.default_rng(0)
        for m in (1, 5, 60, 400, N):
            rows = np.sort(rng.choice(N, m, replace=False))
            part, known = data.subset(rows), other.subset(rows)
            np.testing.assert_array_equal(part.y, known.y)
            np.testing.assert_array_equal(part.rows(slice(None)).s, known.rows(slice(None)).s)
            np.testing.assert_allclose(part.apply(np.ones(D)), known.apply(np.ones(D)), rtol=1e-13, atol=1e-13)


@dataclass(frozen=True)
class Calls(Step):
    """The image as the residual, after a call."""

    call: Callable[[], None]

    def block(self, rows, *images):
        self.call()
        return images[0], np.zeros(0)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_leaves_things_as_they_were(small, tmp_path, held):
    X, y, _ = held
    f = Objective(Logistic(), as_data(file_of(tmp_path, X), np.sign(y), threads=1))
    g = Objective(Logistic(), as_data(X, np.sign(y), threads=1))
    x, seen = f.point(np.ones(D)), []
    kernel_of = type(f.loss).derivative

    def interrupted(self, u, y):
        seen.append(len(u))
        if len(seen) == 5:
            signal.raise_signal(signal.SIGINT)
        return kernel_of(self, u, y)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Logistic, "derivative", interrupted)
            with pytest.raises(KeyboardInterrupt):
                f.evaluate(x)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert np.isnan(f.evaluate(x, tangent=False, read=False).value)
    assert f.workspace.rows_read == 0
    np.testing.assert_array_equal(f.evaluate(x).slope.gradient, g.evaluate(g.point(np.ones(D))).slope.gradient)


PEAK = """
import resource, sys
import numpy as np
from projfree import Huber, Objective, as_data
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = as_data(sys.argv[1], np.zeros(int(sys.argv[2])), memory=1 << 25)
f = Objective(Huber(1.0), data)
f.loss.__class__.native = ""
f.evaluate(f.point(np.ones(data.d)))
sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.slow
def test_peak_memory(tmp_path):
    """300 MB are read in 32 MB, beside some vectors with an entry a row and modules that are loaded on the way."""
    n, d = 400_000, 94
    table = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, d))
    table[:] = np.arange(d)
    table.flush()
    del table
    run = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path / "X.npy"), str(n)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) * 1024 < (1 << 25) + 10 * 8 * n + (1 << 24)
