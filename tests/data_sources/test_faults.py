"""Whatever happens to a file, the answer is one sentence with its name, and never a part of a result."""

from __future__ import annotations

import os

import numpy as np
import pytest

from projfree import Objective, Squared, as_data
from projfree.algebra import Point
from projfree.data import ChangedError, ChunkedData, NpySource
from projfree.data.rows import FormPredictions

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, D = 700, 6
ZEROS = np.zeros(N)


@pytest.fixture
def npy(tmp_path, held):
    np.save(tmp_path / "X.npy", held[0])
    return tmp_path / "X.npy"


@pytest.fixture
def parquet(tmp_path, held):
    pq.write_table(columns(held[0]), tmp_path / "x.parquet", row_group_size=100)
    return tmp_path / "x.parquet"


def columns(X):
    return pa.table({f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])})


def truncate(path, part):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])


class TestOpening:
    def test_truncated_npy(self, npy):
        truncate(npy, 0.5)
        with pytest.raises(ValueError, match=r"X\.npy is no \.npy file of numbers, or it is damaged or truncated"):
            as_data(npy, ZEROS)

    @pytest.mark.parametrize("content", [b"", b"abc", b"\x93NUMPY\x01\x00\x76\x00{'descr': 'garbage"])
    def test_no_npy(self, npy, content):
        npy.write_bytes(content)
        with pytest.raises(ValueError, match=r"X\.npy is no \.npy file of numbers, or it is damaged"):
            as_data(npy, ZEROS)

    @pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
    def test_truncated_parquet(self, parquet, part):
        truncate(parquet, part)
        with pytest.raises(ValueError, match=r"x\.parquet is no Parquet file, or is truncated"):
            as_data(parquet, ZEROS)

    @pytest.mark.parametrize("name", ["no.npy", "no.parquet", "no"])
    def test_missing(self, tmp_path, name):
        with pytest.raises(FileNotFoundError, match=f"There is no file .*{name}"):
            as_data(tmp_path / name, ZEROS)

    def test_an_empty_name_is_not_the_current_folder(self, tmp_path, parquet, monkeypatch):
        monkeypatch.chdir(parquet.parent)
        with pytest.raises(
            ValueError, match=r"^`X` must name a \.npy or Parquet file or a folder, got ''; the current"
        ):
            as_data("", ZEROS)
        assert as_data(".", ZEROS).n == len(ZEROS)

    def test_empty_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"holds no \.parquet files"):
            as_data(tmp_path, ZEROS)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (lambda t: t.rename_columns(["x0", "x1", "x2", "x3", "x4", "other"]), "must have one column 'x5', got 0"),
            (lambda t: t.set_column(2, "x2", t["x2"].cast(pa.float32())), "'x2' is float in .*b.parquet, but double"),
            (lambda t: t.set_column(2, "x2", t["x2"].cast(pa.string())), "'x2' of .*b.parquet holds string"),
        ],
    )
    def test_other_schema(self, tmp_path, held, change, sentence):
        whole = columns(held[0])
        pq.write_table(whole, tmp_path / "a.parquet")
        pq.write_table(change(whole), tmp_path / "b.parquet")
        with pytest.raises((ValueError, TypeError), match=sentence):
            as_data(tmp_path, np.zeros(2 * N))

    @pytest.mark.parametrize("kind", ["npy", "parquet"])
    def test_row_counts(self, request, kind):
        path = request.getfixturevalue(kind)
        with pytest.raises(ValueError, match="one row for each of the 700 rows"):
            as_data(path, ZEROS[:-1])


class TestEntries:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("kind", ["npy", "parquet"])
    def test_not_finite(self, small, tmp_path, held, kind, value):
        X = held[0]
        X[631, 4] = value
        if kind == "npy":
            np.save(tmp_path / "X.npy", X)
            path, sentence = tmp_path / "X.npy", rf"row 631, column 4 of .*X\.npy is {value}"
        else:
            for name, rows in [("a", slice(0, 600)), ("b", slice(600, N))]:
                pq.write_table(columns(X[rows]), tmp_path / f"{name}.parquet")
            path, sentence = tmp_path, rf"Row 31 of .*b\.parquet, column 'x4' is {value}"
        with pytest.raises(ValueError, match=sentence):
            as_data(path, ZEROS)

    def test_nan_in_the_millionth_row(self, tmp_path):
        X = np.ones((1_000_000, 2), np.float32)
        X[-1, 1] = np.nan
        np.save(tmp_path / "X.npy", X)
        with pytest.raises(ValueError, match=r"row 999999, column 1 of .*X\.npy is nan"):
            as_data(tmp_path / "X.npy", np.zeros(len(X)))

    @pytest.mark.parametrize("what", ["feature", "target"])
    def test_null(self, tmp_path, what):
        whole = pa.table({"a": [1.0] * 50, "b": [1.0] * 41 + [None] + [1.0] * 8})
        pq.write_table(whole, tmp_path / "x.parquet", row_group_size=20)
        with pytest.raises(ValueError, match=r"Row 41 of .*x\.parquet, column 'b' is empty"):
            as_data(tmp_path / "x.parquet", np.zeros(50) if what == "feature" else "b")

    def test_squares_that_overflow(self, tmp_path):
        np.save(tmp_path / "X.npy", np.full((3, 2), 1e200))
        with pytest.raises(ValueError, match="rescale its columns"):
            as_data(tmp_path / "X.npy", np.zeros(3))


def rewritten(path):
    content = path.read_bytes()
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))


def replaced(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.replace(other, path)


class TestChanges:
    """A change is noticed before a pass, during it and at its end, and the data say so ever after."""

    @pytest.mark.parametrize("how", [rewritten, replaced, lambda path: truncate(path, 0.4), os.remove])
    @pytest.mark.parametrize("kind", ["npy", "parquet"])
    def test_between_passes(self, small, request, kind, how):
        path = request.getfixturevalue(kind)
        data = as_data(path, ZEROS)
        how(path)
        for _ in range(2):
            with pytest.raises(ChangedError, match=rf"{path.name} has (changed|gone)"):
                data.apply(np.ones(D))
            with pytest.raises(ChangedError):
                data.subset(np.array([3, 5])).apply(np.ones(D))

    @pytest.mark.parametrize("at", [1, 11])
    @pytest.mark.parametrize("kind", ["npy", "parquet"])
    def test_during_a_pass(self, small, request, kind, at):
        path, seen = request.getfixturevalue(kind), []
        f = Objective(Squared(), as_data(path, ZEROS, threads=1))
        x = f.point(np.ones(D))
        known = f.loss.derivative

        def kernel(u, y):
            seen.append(len(u))
            if len(seen) == at:
                rewritten(path)
            return known(u, y)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(f.loss), "derivative", lambda self, u, y: kernel(u, y))
            with pytest.raises(ChangedError, match="has changed"):
                f.evaluate(x)
        assert np.isnan(f.evaluate(x, tangent=False, read=False).value)
        assert f.workspace.rows_read == 0

    def test_a_failed_read_reaches_the_caller_and_the_next_pass_works(self, small, npy, held):
        class Flaky(NpySource):
            broken = False

            def tables(self, ranges):
                for (start, _), table in zip(ranges, super().tables(ranges), strict=True):
                    if self.broken and start > 300:
                        raise OSError(5, "Input/output error")
                    yield table

        data = ChunkedData(Flaky(npy), ZEROS)
        data.source.broken = True
        workspace, x = data.open(), Point(np.ones(D))
        with pytest.raises(OSError, match="Input/output error"):
            workspace.fold(FormPredictions(), [x])
        assert not workspace.holds(x)
        assert workspace.rows_read == 0
        data.source.broken = False
        workspace.fold(FormPredictions(), [x])
        assert workspace.holds(x)
        assert workspace.rows_read == N
        np.testing.assert_allclose(data.apply(np.ones(D)), held[0].sum(axis=1), rtol=1e-12, atol=1e-12)
