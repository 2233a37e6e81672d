"""Whatever happens to a file, the answer is one sentence with its name, and never a part of a result."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from projfree import Objective, Squared, as_data
from projfree.algebra import Point
from projfree.data import ChangedError, ChunkedData, NpySource, csv_to_parquet
from projfree.data.rows import FormImages

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
        with pytest.raises(ValueError, match=r"X\.npy is truncated: .*up to row 348 of 700"):
            as_data(npy, ZEROS)

    @pytest.mark.parametrize("content", [b"", b"abc", b"\x93NUMPY\x01\x00\x76\x00{'descr': 'garbage"])
    def test_no_npy(self, npy, content):
        npy.write_bytes(content)
        with pytest.raises(ValueError, match=r"X\.npy is no \.npy file, or its head is damaged"):
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
        with pytest.raises(ValueError, match=rf"each row of .*{path.name}, 700, got 699"):
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

    def test_a_file_cut_off_while_it_is_read(self, npy):
        """It is seen to end too early before anybody looks at its stamp again."""
        source, fill = NpySource(npy), NpySource._fill

        def cut(self, *parts):
            truncate(npy, 0.4)
            fill(self, *parts)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(NpySource, "_fill", cut)
            with pytest.raises(ChangedError, match="has changed"):
                next(source.tables([(0, source.n)]))

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
            workspace.fold(FormImages(), [x])
        assert not workspace.holds(x)
        assert workspace.rows_read == 0
        data.source.broken = False
        workspace.fold(FormImages(), [x])
        assert workspace.holds(x)
        assert workspace.rows_read == N
        np.testing.assert_allclose(data.apply(np.ones(D)), held[0].sum(axis=1), rtol=1e-12, atol=1e-12)


FULL = """
import resource, sys
from projfree.data import csv_to_parquet
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    csv_to_parquet(sys.argv[1], sys.argv[2])
except OSError as error:
    sys.stdout.write(str(error))
"""


class TestWriting:
    @pytest.fixture
    def csv(self, tmp_path):
        (tmp_path / "x.csv").write_text("a,b\n" + "0.123456789,2\n" * 20_000)
        return tmp_path / "x.csv"

    @pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
    def test_no_room(self, csv, tmp_path):
        command = [sys.executable, "-c", FULL, str(csv), str(tmp_path / "x.parquet")]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "x.parquet could not be written" in run.stdout, run.stderr
        assert "nothing was left behind" in run.stdout
        assert [file.name for file in tmp_path.iterdir()] == ["x.csv"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
    def test_failure_at_the_end_keeps_the_old_file(self, monkeypatch, csv, tmp_path, error):
        (tmp_path / "x.parquet").write_text("old")

        def fails(descriptor):
            raise error

        monkeypatch.setattr(os, "fsync", fails)
        with pytest.raises(type(error) if isinstance(error, OSError) else error):
            csv_to_parquet(csv, tmp_path / "x.parquet")
        assert (tmp_path / "x.parquet").read_text() == "old"
        assert sorted(file.name for file in tmp_path.iterdir()) == ["x.csv", "x.parquet"]
