"""Tables: how they are read, what is refused, and what becomes of text and missing values."""

from __future__ import annotations

import gzip
import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from projfree import load
from projfree.cli.options import Layout
from projfree.cli.tables import read_table, to_ids


def fit(path, out, *more):
    return ("fit", path, "--target", "y", "--radius", 2, "--out", out, "--hold-out", 0, *more)


REFUSED = {  # a text file, and what the sentence names
    "longer rows": ("a,b,y\n1,2,3,4\n5,6,7,8\n", ["t.csv", "Length of header", "--sep"]),
    "a longer row": ("a,b,y\n1,2,3\n5,6,7,8\n", ["line 3", "4"]),
    "a shorter row": ("a,b,y\n1,2,3\n\n5,6\n", ["'y'", "row 2"]),
    "target twice": ("a,y,y\n1,2,3\n4,5,6\n", ["'y' twice", "1 and 2"]),
    "feature twice": ("a,a,y\n1,2,3\n4,5,6\n", ["'a' twice", "0 and 1"]),
    "a mistake": ("a,y\n1,2\n2,3\n3,4\nx7,5\n5,6\n", ["'a'", "'x7'", "row 4"]),
    "identifiers": ("a,y\n" + "\n".join(f"person {k},{k}" for k in range(60)), ["'a'", "60", "leave it out"]),
    "missing": ("a,y\n1,1\n,2\n", ["'a'", "row 2", "--impute median"]),
    "infinite": ("a,y\n1,1\ninf,2\n,3\n", ["'a' is infinite in row 2; correct it"]),
    "no header fits": ("a b y\n1 2 3\n", ["'y'", "a b y", "--sep"]),
    "not text": (b"a,y\n\xff\xfe,1\n", ["t.csv", "UTF-8"]),
    "blank": ("\n\n", ["t.csv"]),
    "empty": ("", ["t.csv", "cannot be read"]),
    "no rows": ("a,b,y\n", ["t.csv", "no rows"]),
    "a target with commas": ('a,y\n1,3\n2,"1,5"\n3,3\n4,"1,5"\n', ["'y'", "'1,5'", "decimal point"]),
    "a feature with commas": ('a,y\n"1,5",3\n,4\n"1,5",5\n"-2,5e3",6\n', ["'a'", "'1,5'", "decimal point"]),
    "one class": ("a,y\n1,yes\n2,yes\n", ["'yes'"]),
    "the target alone": ("y\n1\n2\n", ["no columns besides y"]),
}


@pytest.mark.parametrize(("text", "told"), REFUSED.values(), ids=REFUSED)
def test_text_files_that_are_refused(call, tmp_path, text, told):
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    result = call(*fit(tmp_path / "t.csv", tmp_path / "m"))
    assert result.exit_code == 2, result.output
    assert all(word in result.output for word in told), result.output
    assert not (tmp_path / "m").exists()


def test_other_files_that_are_refused(call, tmp_path):
    times = pd.to_datetime(["2020-01-01", "2020-01-02"])
    pd.DataFrame({"a": [1.0, 2.0], "when": times, "y": [1.0, 3.0]}).to_parquet(tmp_path / "times.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but no more")
    np.save(tmp_path / "complex.npy", np.ones((5, 3), complex))
    np.save(tmp_path / "text.npy", np.ones((5, 3)).astype(str))
    with (tmp_path / "short.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**5)})
        file.write(bytes(800))
    (tmp_path / "t.xlsx").write_text("no")
    for name, target, told in (
        ("times.parquet", "y", "'when' must hold numbers"),
        ("times.parquet", "when", "'when' must hold numbers"),
        ("broken.parquet", "y", "broken.parquet"),
        ("complex.npy", "0", "complex128"),
        ("text.npy", "0", "dtype"),
        ("short.npy", "0", "damaged or truncated"),
        ("t.xlsx", "y", ".parquet"),
        ("none.csv", "y", "none.csv' does not exist"),
    ):
        words = ("fit", tmp_path / name, "--target", target, "--drop", "y" if target == "when" else "a")
        result = call(*words[: 4 if name.endswith("npy") else 6], "--radius", 1, "--out", tmp_path / "m")
        assert result.exit_code == 2, result.output
        assert told in result.output, result.output


@pytest.mark.parametrize(("name", "sep", "given"), [("t.csv", ",", None), ("t.tsv", "\t", None), ("t.txt", ";", ";")])
@pytest.mark.parametrize("zipped", [False, True])
def test_separators(tmp_path, table, name, sep, given, zipped):
    text = table.read_text().replace(",", sep).encode("utf-8-sig")
    path = tmp_path / (name + ".gz" if zipped else name)
    path.write_bytes(gzip.compress(text) if zipped else text)
    pd.testing.assert_frame_equal(read_table(path, Layout(given)), pd.read_csv(table))


@pytest.mark.parametrize(("text", "headed"), [("a, b,y\n1,2,3\n", True), ("39, State-gov,1\n38, Private,2\n", False)])
def test_a_first_line_with_a_number_is_no_header(tmp_path, text, headed):
    (tmp_path / "t.csv").write_text(text)
    with nullcontext() if headed else pytest.warns(UserWarning, match="--header"):
        frame = read_table(tmp_path / "t.csv", Layout())
    assert list(frame.columns) == (["a", "b", "y"] if headed else ["0", "1", "2"])
    assert len(frame) == (1 if headed else 2)
    assert len(read_table(tmp_path / "t.csv", Layout(header=not headed))) == (2 if headed else 1)


# ---------------------------------------------------------------- text and missing values


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


def test_text_and_missing_values(call, people, tmp_path):
    words = ("fit", people, "--target", "-1", "--radius", 3, "--standardize", "--out", tmp_path / "m")
    assert "--impute median" in call(*words).output
    record = call.json(*words, "--impute", "median")
    assert (record["loss"], record["features"], record["score_kind"]) == ("logistic", 5, "accuracy")
    assert record["score"] > 0.8
    model = load(tmp_path / "m")
    assert list(model.named_steps["model"].feature_names_in_) == ["0", "2", "1=(missing)", "1=Oslo", "1=Rome"]
    frame = read_table(people, Layout(header=False))
    predicted = call("predict", tmp_path / "m", people)
    assert predicted.output.splitlines()[-120:] == model.predict(frame).tolist()
    median = frame.assign(**{"0": frame["0"].fillna(frame["0"].median())})
    assert model.predict(median).tolist() == model.predict(frame).tolist()
    (tmp_path / "new.data").write_text("40, Paris, 2\n41, Rome, 3\n")
    result = call("predict", tmp_path / "m", tmp_path / "new.data")
    assert result.exit_code == 0, result.output
    assert "1 row has a level of column '1'" in result.output


def test_rows_with_missing_values_can_be_dropped(call, people, tmp_path):
    fitted = call("fit", people, "--target", "3", "--impute", "drop", "--radius", 3, "--out", tmp_path / "m")
    assert fitted.exit_code == 0, fitted.output
    whole = read_table(people, Layout(header=False)).notna().all(axis=1).sum()
    assert f"{120 - whole} of 120 rows" in fitted.output


def test_text_is_refused_if_it_is_not_to_be_encoded(call, people, tmp_path):
    refused = call("fit", people, "--target", "2", "--one-hot", "none", "--impute", "median", "--out", tmp_path / "m")
    assert refused.exit_code == 2
    assert re.search(r"'1'.*'(Rome|Oslo)'", refused.output)


def test_codes_are_text_if_asked_for(call, tmp_path):
    """01 is not 1, neither in the fit nor in a prediction."""
    frame = pd.DataFrame({"code": ["01", "1", "2"] * 20, "y": np.arange(60.0) % 3})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert call(*fit(tmp_path / "t.csv", tmp_path / "m", "--one-hot", "code")).exit_code == 0
    frame[frame["code"] == "1"].to_csv(tmp_path / "ones.csv", index=False)
    result = call("predict", tmp_path / "m", tmp_path / "ones.csv")
    assert "had not seen" not in result.output
    assert float(result.output.split()[0]) == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize(
    ("column", "ids"),
    [
        (["3", "-2", "0", "3"], [3, -2, 0, 3]),
        (["9223372036854775807"], [2**63 - 1]),
        (["007", "07", "7"], ["007", "07", "7"]),
        (["+7", "7"], ["+7", "7"]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["1.0", "1"], ["1.0", "1"]),
        (["-0", "0"], ["-0", "0"]),
        (["1_0", "5"], ["1_0", "5"]),
    ],
)
def test_ids_are_numbers_if_these_print_the_same(column, ids):
    assert to_ids(pd.Series(column, index=range(5, 5 + len(column)), name="user")).tolist() == ids
