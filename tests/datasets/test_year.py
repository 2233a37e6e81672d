from __future__ import annotations

import gzip
import io
import zipfile

import numpy as np
import pytest

from projfree.datasets import load_year, load_year_sample
from projfree.datasets.year import FIRST_ROW, parse

LINE = ",".join(map(str, [2001, *FIRST_ROW[1:], *range(86)])) + "\n"


@pytest.fixture(scope="module")
def sample():
    return load_year_sample(standardize=False)


def test_shape(sample):
    assert sample.X.shape == (7_000, 90)
    assert sample.X.flags.c_contiguous
    assert len(sample.feature_names) == 90
    assert (sample.y.min(), sample.y.max()) == (1926, 2010)
    assert sample.n_train == 5_000


def test_standardised():
    X = load_year_sample().X
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1, rtol=1e-12)


def test_bit_exact_against_the_original(sample, real_data):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(real_data / "year_prediction_msd_sample" / "year_msd_random7000.parquet")
    X = np.column_stack([table[name].to_numpy() for name in sample.feature_names])
    assert X.tobytes() == sample.X.tobytes()
    assert np.array_equal(table["year"].to_numpy(), sample.y)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LINE, r"\(1, 91\)"),
        (LINE * 3, r"\(3, 91\)"),
        (LINE.replace("2001", "2002") * 2, r"its first row begins \(2002.0"),
        (LINE + "1,2,3\n", "do not fit"),
        (LINE + LINE.replace("2001", "year"), "do not fit"),
        (LINE.replace("\n", ",7\n") * 2, r"\(2, 92\)"),
    ],
)
def test_not_the_original(text, why):
    with pytest.raises(ValueError, match=rf"with 2 rows of 91 numbers, but 'here' is not that: .*{why}"):
        parse(io.StringIO(text), 2, "here")


def write(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data/YearPredictionMSD.txt", text)
    else:
        path.write_text(text)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zip"])
@pytest.mark.parametrize("folder", ["", "year_prediction_msd"])
def test_the_file_is_found_and_checked(tmp_path, monkeypatch, suffix, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    write(tmp_path / folder / f"YearPredictionMSD.txt{suffix}", LINE * 4)
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"with 515,345 rows of 91 numbers, but .* is not that: .*\(4, 91\)"):
        load_year()


def test_a_zip_without_the_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "Other.txt.zip", "w"):
        pass
    with pytest.raises(ValueError, match=r"holds no Other.txt; get the original archive again"):
        load_year(tmp_path / "Other.txt.zip")


@pytest.mark.parametrize("value", [None, "."])
def test_missing(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    if value:
        monkeypatch.setenv("PROJFREE_DATA", value)
    why = r"there is none in '\.'" if value else "that variable is not set"
    with pytest.raises(FileNotFoundError, match=rf"`load_year\(\)` needs YearPredictionMSD.txt .*{why}.*; get it from"):
        load_year()


@pytest.mark.slow
def test_a_file_of_full_size(tmp_path):
    (tmp_path / "YearPredictionMSD.txt").write_text(LINE + ("1999," + ",".join(map(str, range(90))) + "\n") * 515_344)
    year = load_year(tmp_path / "YearPredictionMSD.txt", standardize=False)
    assert year.X.shape == (515_345, 90)
    assert year.n_train == 463_715
    assert year.X[-1].tolist() == list(range(90))
    assert (year.y[0], year.y[-1]) == (2001, 1999)
