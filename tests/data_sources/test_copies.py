"""Data outside memory can be copied and pickled: a copy opens the file anew, and holds no buffers."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from projfree import Huber, LpBall, Objective, as_data, minimize

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

D = 6
WAYS = {"pickle": lambda data: pickle.loads(pickle.dumps(data)), "copy": copy.copy, "deepcopy": copy.deepcopy}
VIEWS = {
    "plain": as_data,
    "subset": lambda X, y: as_data(X, y).subset(np.arange(5, 600, 7)),
    "standardized": lambda X, y: as_data(X, y, centre=True, scale=True),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class Slices:
    """A table behind row slices."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows):
        return self.X[rows]


@pytest.fixture(params=["parquet", "folder", "npy", "map", "slices"])
def table(request, tmp_path, held):
    X, kind = held[0], request.param
    if kind in ("npy", "map"):
        np.save(tmp_path / "x.npy", X)
        return tmp_path / "x.npy" if kind == "npy" else np.load(tmp_path / "x.npy", mmap_mode="r")
    if kind == "slices":
        return Slices(X)
    return parquet(tmp_path, X, 2 if kind == "folder" else 1)


def parquet(folder, X, parts=1):
    for i, part in enumerate(np.array_split(X, parts)):
        columns = pa.table({f"x{j}": np.ascontiguousarray(part[:, j]) for j in range(D)})
        pq.write_table(columns, folder / f"{i}.parquet", row_group_size=90)
    return folder / "0.parquet" if parts == 1 else folder


@every_way
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_copy_is_the_same_data(small, table, held, view, way):
    data = view(table, held[1])
    data.apply(np.ones(D))
    other = way(data)
    assert other.fingerprint() == data.fingerprint()
    runs = [minimize(Objective(Huber(0.7), each), LpBall(1.5, 1.0), max_iter=5) for each in (data, other, way(other))]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.w, runs[0].w)
        assert (run.value, run.bound) == (runs[0].value, runs[0].bound)


READ = """
import pickle, sys
import numpy as np
data = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(data.apply(np.ones(6)).tobytes())
"""
