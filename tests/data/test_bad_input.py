"""Bad data get one sentence that names the argument, the rule, the value and, where there is one, the way out."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import Entries, as_data

X, Y = np.ones((3, 2)), np.ones(3)


def with_entry(array, at, value):
    out = np.array(array, dtype=float)
    out[at] = value
    return out


FINITE = {
    "X": (with_entry(X, (1, 0), np.nan), Y, None, r"`X` must be finite, got nan at index \(1, 0\); drop or impute"),
    "X inf": (with_entry(X, (2, 1), np.inf), Y, None, r"`X` must be finite, got inf at index \(2, 1\); drop or impute"),
    "y": (X, with_entry(Y, 1, np.nan), None, r"`y` must be finite, got nan at index 1; drop or impute"),
    "y inf": (X, with_entry(Y, 2, -np.inf), None, r"`y` must be finite, got -inf at index 2; drop or impute"),
    "weight": (X, Y, [1, np.nan, 1], r"`sample_weight` must be finite, got nan at index 1; drop or impute"),
    "weight inf": (X, Y, [1, 1, np.inf], r"`sample_weight` must be finite, got inf at index 2; drop or impute"),
    "X huge": (with_entry(X, (0, 0), 1e200), Y, None, r"`X` has entries as large as 1e\+200; rescale its columns\."),
    "y huge": (
        X,
        with_entry(Y, 1, -1e200),
        None,
        r"`y` has entries as large as 1e\+200, whose squares overflow; rescale",
    ),
}
SHAPES = {
    "X vector": (Y, Y, None, r"`X` must be a table with at least one row and one column, got shape \(3,\)\."),
    "X cube": (np.ones((2, 2, 2)), Y, None, r"`X` must be a table .* got shape \(2, 2, 2\)\."),
    "no rows": (np.ones((0, 2)), [], None, r"`X` must be a table with at least one row .* got shape \(0, 2\)\."),
    "no columns": (np.ones((3, 0)), Y, None, r"`X` must be a table .* one column, got shape \(3, 0\)\."),
    "y short": (X, Y[:2], None, r"`y` must have one row for each of the 3 rows of `X` .* got shape \(2,\)\."),
    "y cube": (X, np.ones((3, 1, 1)), None, r"`y` .* one or two dimensions, got shape \(3, 1, 1\)\."),
    "y without columns": (X, np.ones((3, 0)), None, r"`y` must have at least one column, got shape \(3, 0\)\."),
    "weight short": (X, Y, [1.0], r"`sample_weight` must have one entry for each of the 3 rows, got shape \(1,\)\."),
    "weight table": (X, Y, X, r"`sample_weight` must have one entry for each of the 3 rows, got shape \(3, 2\)\."),
    "weight negative": (X, Y, [1, -2, 1], r"`sample_weight` must be non-negative .* got -2 to 1; drop the rows"),
    "weight zero": (X, Y, [0, 0, 0], r"`sample_weight` .* with a positive sum, got 0 to 0; drop the rows"),
}
DTYPES = {
    "X": (X.astype(object), Y, None, r"`X` must hold real numbers, got dtype object; convert it first, e\.g\. with"),
    "X text": (X.astype(str), Y, None, r"`X` must hold real numbers, got dtype <U\d+; convert it first"),
    "X complex": (X + 1j, Y, None, r"`X` must hold real numbers, got dtype complex128; convert it first"),
    "y": (X, Y.astype(object), None, r"`y` must hold real numbers, got dtype object; convert it first"),
    "weight": (X, Y, Y.astype(object), r"`sample_weight` must hold real numbers, got dtype object; convert it first"),
}


def of(table):
    return pytest.mark.parametrize(("X", "y", "weight", "sentence"), table.values(), ids=table)


@of(FINITE | SHAPES)
def test_values_and_shapes(X, y, weight, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_data(X, y, weight)


@of(DTYPES)
def test_dtypes(X, y, weight, sentence):
    with pytest.raises(TypeError, match=sentence):
        as_data(X, y, weight)


def test_the_first_bad_entry_of_a_later_block_is_named():
    table = np.ones((70_000, 3), dtype=np.float32)
    table[66_000, 2] = np.nan
    with pytest.raises(ValueError, match=r"`X` must be finite, got nan at index \(66000, 2\)"):
        as_data(table, np.ones(70_000))


def test_data_are_data_already():
    with pytest.raises(TypeError, match="this is data already, pass it to the objective as it is"):
        as_data(as_data(X, Y), Y)


ENTRIES = {
    "below": ([0, -1], [0, 0], (2, 2), r"`rows` must lie between 0 and 1, got -1 to 0; map labels to places first"),
    "beyond": ([0, 1], [0, 2], (2, 2), r"`cols` must lie between 0 and 1, got 0 to 2; map labels to places first"),
    "fractions": ([0.5], [0], (2, 2), r"`rows` must be a non-empty vector of whole numbers, got float64 \(1,\)\."),
    "empty": (np.array([], int), [0], (2, 2), r"`rows` must be a non-empty vector of whole numbers, got int64 \(0,\)"),
    "table": ([0], [[0]], (2, 2), r"`cols` must be a non-empty vector of whole numbers, got int64 \(1, 1\)"),
    "lengths": ([0, 1], [0], (2, 2), r"`rows` and `cols` must be of one length, got 2 and 1\."),
    "no side": ([0], [0], (2, 0), r"`shape` must be a whole number of at least 1, got 0\."),
    "three sides": ([0], [0], (2, 2, 2), r"`shape` must be that of a matrix, two whole numbers, got \(2, 2, 2\)\."),
}


@pytest.mark.parametrize(("rows", "cols", "shape", "sentence"), ENTRIES.values(), ids=ENTRIES)
def test_places(rows, cols, shape, sentence):
    with pytest.raises(ValueError, match=sentence):
        Entries(rows, cols, shape)


def test_targets_of_entries():
    places = Entries([0, 1], [0, 1], (2, 2))
    with pytest.raises(
        ValueError, match=r"`y` must be a vector, one value for each observed entry, got shape \(2, 1\)"
    ):
        as_data(places, np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"`y` must have one row for each of the 2 rows"):
        as_data(places, np.ones(3))
