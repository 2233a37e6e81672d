"""Tables: how they are read, what is refused, and what becomes of text and missing values."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest

from projfree.cli.tables import Reading, read_table
from projfree.estimators import load


def fit(path, out, *more):
    return ("fit", path, "--target", "y", "--radius", 2, "--out", out, "--hold-out", 0, *more)


COMMAS = "column '{}' holds numbers with decimal commas, such as '1,5'; write them with a decimal point, or leave"
REFUSED = {
    "longer rows": ("a,b,y\n1,2,3,4\n5,6,7,8\n", r"rows of '.*' have more fields than its first line, which has 3"),
    "a longer row": (
        "a,b,y\n1,2,3\n5,6,7,8\n",
        r"cannot be read as text in columns: .*Expected 3 fields in line 3, saw 4",
    ),
    "a shorter row": ("a,b,y\n1,2,3\n\n5,6\n", r"column 'y' is missing or infinite in row 2"),
    "target twice": ("a,y,y\n1,2,3\n4,5,6\n", r"has the column 'y' twice, in places 1 and 2"),
    "feature twice": ("a,a,y\n1,2,3\n4,5,6\n", r"has the column 'a' twice, in places 0 and 1"),
    "a mistake": ("a,y\n1,2\n2,3\n3,4\nx7,5\n5,6\n", r"column 'a' must hold numbers, got 'x7' in row 4"),
    "identifiers": (
        "a,y\n" + "\n".join(f"person {k},{k}" for k in range(60)),
        r"column 'a' has 60 different texts in 60 rows, too many for a category; leave it out",
    ),
    "no numbers": ("a,y\n,1\n,2\n", r"column 'a' is missing or infinite in row 1"),
    "infinite": ("a,y\n1,1\ninf,2\n", r"column 'a' is missing or infinite in row 2"),
    "not text": (b"a,y\n\xff\xfe,1\n", r"cannot be read as text in columns: 'utf-8' codec can't decode byte 0xff"),
    "blank": ("\n\n", r"cannot be read as text in columns: No columns to parse"),
    "a target with commas": ('a,y\n1,3\n2,"1,5"\n3,3\n4,"1,5"\n', COMMAS.format("y")),
    "a feature with commas": ('a,y\n"1,5",3\n,4\n"1,5",5\n"-2,5e3",6\n', COMMAS.format("a")),
}


@pytest.mark.parametrize(("text", "sentence"), REFUSED.values(), ids=REFUSED)
def test_text_files_that_are_refused(call, tmp_path, text, sentence):
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    result = call(*fit(tmp_path / "t.csv", tmp_path / "m"))
    assert result.exit_code == 2, result.output
    assert re.search(sentence, result.output), result.output
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("gone", [False, True])
def test_times_are_not_numbers(call, tmp_path, gone):
    times = pd.to_datetime(["2020-01-01", None if gone else "2020-01-02"])
    pd.DataFrame({"a": [1.0, 2.0], "when": times, "y": [1.0, 3.0]}).to_parquet(tmp_path / "t.parquet")
    result = call(*fit(tmp_path / "t.parquet", tmp_path / "m"))
    assert result.exit_code == 2, result.output
    assert re.search(r"column 'when' holds datetime64\S+ \(row 1: 2020-01-01 00:00:00\)", result.output), result.output
    result = call("fit", tmp_path / "t.parquet", "--target", "when", "--out", tmp_path / "m", "--hold-out", 0)
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize("dtype", [complex, "M8[s]", "m8[s]", "U3"])
def test_arrays_that_hold_no_real_numbers(call, tmp_path, dtype):
    np.save(tmp_path / "t.npy", np.ones((5, 3)).astype(np.int64).astype(dtype))
    result = call("fit", tmp_path / "t.npy", "--target", "0", "--radius", 1, "--out", tmp_path / "m")
    assert result.exit_code == 2, result.output
    assert "must hold real numbers, got dtype" in result.output


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_an_array_that_declares_more_than_it_holds(call, tmp_path, table, command):
    with (tmp_path / "t.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**5)})
        file.write(bytes(800))
    words = {"fit": ("--target", "0", "--out", tmp_path / "m"), "explain": ("--target", "0"), "predict": ()}
    first = (tmp_path / "model",) if command == "predict" else ()
    if command == "predict":
        assert call(*fit(table, tmp_path / "model")).exit_code == 0
    result = call(command, *first, tmp_path / "t.npy", *words[command])
    assert result.exit_code == 2, result.output
    assert "is truncated: it holds 800 of 800000000000 bytes (up to row 0 of 1000000)" in result.output


def test_parquet_columns_of_one_name(call, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_arrays([[1.0, 2.0]] * 3, ["a", "y", "y"]), tmp_path / "t.parquet")
    result = call(*fit(tmp_path / "t.parquet", tmp_path / "m"))
    assert result.exit_code == 2, result.output
    assert "'y'" in result.output
    assert not (tmp_path / "m").exists()


# ------------------------------------------------------------------ separators and headers


@pytest.mark.parametrize(("name", "sep", "given"), [("t.csv", ",", None), ("t.tsv", "\t", None), ("t.txt", ";", ";")])
@pytest.mark.parametrize("zipped", [False, True])
def test_separators(tmp_path, table, name, sep, given, zipped):
    text = table.read_text().replace(",", sep).encode("utf-8-sig")
    path = tmp_path / (name + ".gz" if zipped else name)
    path.write_bytes(gzip.compress(text) if zipped else text)
    read = read_table(path, Reading(given))
    pd.testing.assert_frame_equal(read.frame, pd.read_csv(table))
    assert not read.remark


def test_a_header_that_looks_like_one_column(call, tmp_path):
    (tmp_path / "t.csv").write_text("a b y\n1 2 3\n2 3 5\n3 5 8\n")
    result = call(*fit(tmp_path / "t.csv", tmp_path / "m"))
    assert result.exit_code == 2
    assert "got 'y'; its columns are a b y; give --sep if that is more than one" in result.output
    assert call(*fit(tmp_path / "t.csv", tmp_path / "m", "--sep", "space")).exit_code == 0
    refused = call(*fit(tmp_path / "t.csv", tmp_path / "n", "--sep", "ab"))
    assert "--sep must be one character, or tab or space, got 'ab'" in refused.output


@pytest.mark.parametrize(("text", "headed"), [("a, b,y\n1,2,3\n", True), ("39, State-gov,1\n38, Private,2\n", False)])
def test_a_first_line_with_a_number_is_no_header(tmp_path, text, headed):
    (tmp_path / "t.csv").write_text(text)
    read = read_table(tmp_path / "t.csv")
    assert list(read.frame.columns) == (["a", "b", "y"] if headed else ["0", "1", "2"])
    assert len(read.frame) == (1 if headed else 2)
    assert ("has no header, so its columns are 0 to 2 (--header if not)" in read.remark) is not headed
    other = read_table(tmp_path / "t.csv", Reading(header=not headed))
    assert len(other.frame) == (2 if headed else 1)
    assert not other.remark


# ------------------------------------------------------------------ text and missing values


@pytest.fixture
def people(tmp_path):
    """Without a header, with text and missing values."""
    rng, lines = np.random.default_rng(1), []
    for k in range(120):
        city, age = rng.choice(["Rome", "Oslo", "?"]), int(rng.integers(20, 60))
        label = ">50K" if (city == "Rome") + age / 60 + 0.1 * rng.random() > 1 else "<=50K"
        lines.append(f"{'?' if k % 20 == 7 else age}, {city}, {rng.integers(0, 9)}, {label}")
    (tmp_path / "people.data").write_text("\n".join(lines) + "\n\n")
    return tmp_path / "people.data"


def test_text_and_missing_values_in_one_line(call, people, tmp_path):
    words = ("fit", people, "--target", "-1", "--radius", 3, "--standardize", "--out", tmp_path / "m")
    refused = call(*words)
    assert refused.exit_code == 2
    assert re.search("column '0' is missing or infinite in row \\d+; fill it or .*--impute median", refused.output)
    fitted = call(*words, "--impute", "median", "--json")
    assert fitted.exit_code == 0, fitted.output
    record = json.loads(fitted.output)
    assert (record["loss"], record["features"], record["score_kind"]) == ("logistic", 5, "accuracy")
    assert record["score"] > 0.8
    model = load(tmp_path / "m")
    names = list(model.named_steps["model"].feature_names_in_)
    assert names == ["0", "1=(missing)", "1=Oslo", "1=Rome", "2"]
    frame = read_table(people).frame
    said = call("predict", tmp_path / "m", people)
    assert said.output.splitlines()[-120:] == model.predict(frame).tolist()


def test_rows_with_missing_values_can_be_dropped(call, people, tmp_path):
    words = ("fit", people, "--target", "3", "--impute", "drop", "--radius", 3, "--out", tmp_path / "m")
    fitted = call(*words)
    assert fitted.exit_code == 0, fitted.output
    whole = read_table(people).frame.notna().all(axis=1).sum()
    assert f"{120 - whole} of 120 rows have missing values and are left out" in fitted.output


def test_levels_that_the_fit_had_not_seen(call, people, tmp_path):
    call("fit", people, "--target", "3", "--impute", "median", "--radius", 3, "--out", tmp_path / "m")
    (tmp_path / "new.data").write_text("40, Paris, 2\n41, Rome, 3\n")
    result = call("predict", tmp_path / "m", tmp_path / "new.data")
    assert result.exit_code == 0, result.output
    assert "1 row has a level of column '1' that the fit had not seen" in result.output


def test_a_level_that_looks_like_a_number_is_still_text(call, tmp_path):
    codes = ["1a", "2", "3"] * 20
    pd.DataFrame({"code": ["x" + c for c in codes], "y": range(60)}).to_csv(tmp_path / "t.csv", index=False)
    frame = pd.DataFrame({"code": [c.replace("3", "x3") for c in codes], "y": np.arange(60.0) % 3})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert call(*fit(tmp_path / "t.csv", tmp_path / "m")).exit_code == 0
    frame[frame["code"] == "2"].to_csv(tmp_path / "twos.csv", index=False)
    result = call("predict", tmp_path / "m", tmp_path / "twos.csv")
    assert "had not seen" not in result.output
    assert float(result.output.split()[0]) == pytest.approx(1.0, abs=0.3)
