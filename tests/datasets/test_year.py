from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pytest

from projfree.datasets import load_year, load_year_sample
from projfree.datasets.year import FIRST_ROW

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


def test_bit_exact_against_the_original(sample, real_data):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(real_data / "year_prediction_msd_sample" / "year_msd_random7000.parquet")
    X = np.column_stack([table[name].to_numpy() for name in sample.feature_names])
    assert X.tobytes() == sample.X.tobytes()
    assert np.array_equal(table["year"].to_numpy(), sample.y)


@pytest.fixture
def three_rows(monkeypatch):
    """Let the original have three rows."""
    monkeypatch.setattr("projfree.datasets.year.N_ROWS", 3)


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data/YearPredictionMSD.txt", text)
    else:
        path.write_text(text)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zip"])
@pytest.mark.parametrize("folder", ["", "year_prediction_msd"])
def test_the_file_is_found_and_read(tmp_path, monkeypatch, three_rows, suffix, folder):
    write(tmp_path / folder / f"YearPredictionMSD.txt{suffix}", LINE + ("1999," + ",".join(["7"] * 90) + "\n") * 2)
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    year = load_year(standardize=False)
    assert year.y.tolist() == [2001, 1999, 1999]
    assert (year.X[0, 0], year.X[2].tolist()) == (FIRST_ROW[1], [7.0] * 90)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LINE, "1 x 91"),
        (LINE.replace("2001", "2002") * 3, r"a first row that begins \[2002.0"),
        (LINE + "1,2,3\n" * 2, "something else"),
        (LINE * 2 + LINE.replace("2001", "year"), "something else"),
        (LINE.replace("\n", ",7\n") * 3, "3 x 92"),
    ],
)
def test_not_the_original(tmp_path, monkeypatch, three_rows, text, why):
    write(tmp_path / "YearPredictionMSD.txt", text)
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=rf"3 rows of a year and 90 features in .*Year.*txt'.*{why}"):
        load_year()
