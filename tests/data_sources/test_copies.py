"""Data outside memory can be copied and pickled: a copy opens the file anew, and holds no buffers."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from projfree import Huber, LpBall, Objective, as_data, minimize
from projfree.data.sources import ChangedError, open_source

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


@every_way
def test_sources_do_not_share_their_place(table, held, way):
    """Both are read by turns, each in order."""
    X, ranges = held[0], [(0, 100), (100, 200), (400, 500)]
    source = open_source(table, held[1], None, None)[0]
    pairs = zip(ranges, source.tables(ranges), way(source).tables(ranges), strict=True)
    for (start, stop), one, other in pairs:
        np.testing.assert_array_equal(one, X[start:stop])
        np.testing.assert_array_equal(other, X[start:stop])


@every_way
def test_a_copy_of_a_file_that_has_changed(tmp_path, held, way):
    X, y, _ = held
    data = as_data(parquet(tmp_path, X), y)
    other = way(data)
    parquet(tmp_path, X[::-1])
    with pytest.raises(ChangedError, match="has changed since it was opened"):
        other.apply(np.ones(D))


READ = """
import pickle, sys
import numpy as np
data = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(data.apply(np.ones(6)).tobytes())
"""


def test_in_another_process(table, held):
    if isinstance(table, Slices):
        pytest.skip("its class is one of this test")
    data = as_data(table, held[1])
    run = subprocess.run([sys.executable, "-c", READ], input=pickle.dumps(data), capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    np.testing.assert_array_equal(np.frombuffer(run.stdout), data.apply(np.ones(D)))
