"""Ratings in every form: what is read, and what is refused with a sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from completion.problems import entries

from projfree import MatrixCompletion, load
from projfree.completion.ratings import read_pairs, read_ratings

COLUMNS = ("user", "item", "rating")
RATINGS = entries(30, 20, 300, seed=3)


def quick(**settings):
    return MatrixCompletion(**{"rank": 3, "radius": 5.0, "max_sweeps": 4, "certify": False, **settings})


def test_a_tuple_of_tuples_is_triples_and_of_arrays_or_lists_columns():
    rows = ((1, 2, 3.0), (1, 4, 5.0), (2, 2, 2.0))
    for X in (rows, list(rows), [list(row) for row in rows], np.array(rows)):
        found = read_ratings(X, None, COLUMNS)
        assert found.users.tolist() == [1, 1, 2]
        assert found.values.tolist() == [3.0, 5.0, 2.0]
    for kind in (list, np.asarray, pd.Series):
        found = read_ratings(tuple(kind(row) for row in rows), None, COLUMNS)
        assert found.users.tolist() == [1, 2, 3]
        assert found.values.tolist() == [2.0, 2.0, 2.0]
    users, _ = read_pairs((("ann", "up"), ("bob", "heat")), COLUMNS)
    assert users.tolist() == ["ann", "bob"]


def test_no_pairs_have_no_predictions():
    model = quick().fit(RATINGS)
    for none in ([], np.empty((0, 2)), ([], [])):
        assert model.predict(none).shape == (0,)


@pytest.mark.parametrize(
    "X",
    [RATINGS, sp.coo_array((RATINGS[2], RATINGS[:2])), pd.DataFrame(dict(zip(COLUMNS, RATINGS, strict=True)))],
    ids=["triples", "sparse", "frame"],
)
def test_y_beside_ratings_is_refused(X):
    with pytest.raises(ValueError, match=r"^`y` must be left out if `X` holds the ratings; give pairs"):
        quick().fit(X, RATINGS[2])


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([(1, 2, 3.0), ("a", 2, 3.0)], r"^`users` must be labels of one type, got int and str; convert"),
        (([1, 2], [1, "a"], [1.0, 2.0]), r"^`items` must be labels of one type, got int and str"),
        (([1, None], [1, 2], [1.0, 2.0]), r"^`users` must not have missing labels, got None at index 1; drop"),
        ((["a", float("nan")], [1, 2], [1.0, 2.0]), r"^`users` must not have missing labels, got nan at index 1; drop"),
        (([True, 3], [1, 2], [1.0, 2.0]), r"^`users` must be labels of one type, got bool and int"),
        (([None, None], [1, 2], [1.0, 2.0]), r"^`users` must not have missing labels, got None at index 0"),
        ((np.array(["2020-01-01"], "M8[D]"), [1], [1.0]), r"whole numbers or strings, got datetime64\[D\]; convert"),
        (([1.0, np.nan], [1, 2], [1.0, 2.0]), r"^`users` must not have missing labels, got nan at index 1; drop"),
        (([1.0, np.inf], [1, 2], [1.0, 2.0]), r"^`users` must be whole numbers below 2\*\*63 .* got inf"),
        (([2**70, 1], [1, 2], [1.0, 2.0]), r"^`users` must be whole numbers below 2\*\*63 .* got 1.1805916"),
        ((np.array([2**63], np.uint64), [1], [1.0]), r"^`users` must be whole numbers below 2\*\*63 .* got 9223372"),
        (([1e300, 1.0], [1, 2], [1.0, 2.0]), r"^`users` must be whole numbers below 2\*\*63 .* got 1e\+300"),
        ([(1, 2, 3.0), (1, 2)], r"^`X` must have rows of one length, got rows of 2 and 3\.$"),
        (sp.coo_array((3, 4)), r"^`X` must hold at least one rating, got none\.$"),
        ([(1, 2)], r"^the ratings are missing: give them as `y`, or as the third column of `X`, in frames 'rating'"),
    ],
    ids=str,
)
def test_what_cannot_be_read(X, words):
    with pytest.raises((TypeError, ValueError), match=words):
        quick().fit(X)


def test_pairs_that_cannot_be_read():
    model = quick().fit([(1, 2, 3.0), (2, 3, 4.0)])
    for pair in ((1, 2), [1, 2]):
        with pytest.raises(ValueError, match=r"^`X` must be .* of which one is \[\(user, item\)\], .* got shape"):
            model.predict(pair)


@pytest.mark.parametrize("columns", [(0, 1, 2), ["who", "what", "stars"]], ids=str)
def test_names_of_columns_may_be_numbers_and_in_a_list(columns, tmp_path):
    """As those of a file without a heading are."""
    frame = pd.DataFrame(dict(zip(columns, RATINGS, strict=True)))
    model = quick(columns=columns).fit(frame)
    np.testing.assert_array_equal(model.predict(frame), quick().fit(RATINGS).predict(RATINGS[:2]))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(frame), model.predict(frame))


def test_labels_of_every_accepted_kind():
    users, items, y = RATINGS
    plain = quick().fit(RATINGS)
    large = 2**62 + users
    kinds = [users.astype(float), users.astype(np.uint8), users.astype(object), large, users.astype(str)]
    kinds += [[np.int64(u) if u % 2 else int(u) for u in users], pd.array(users, dtype="Int64")]
    for labels in kinds:
        model = quick().fit((labels, items, y))
        assert model.predict((labels, items)).shape == y.shape
        if len(model.user_ids_) == len(plain.user_ids_) and model.user_ids_.dtype.kind == "i":
            np.testing.assert_array_equal(model.predict((labels, items)), plain.predict((users, items)))
    assert quick().fit((large, items, y)).user_ids_[0] == 2**62 + users.min()


def test_labels_of_another_kind_are_refused_and_not_predicted_as_unknown():
    users, items, y = RATINGS
    numbers, text = quick().fit(RATINGS), quick().fit((users.astype(str), items, y))
    words = r"^`users` must be whole numbers, as in the fit, got text, such as 'ann'; convert them first\.$"
    for call in (numbers.predict, numbers.decision_function):
        with pytest.raises(TypeError, match=words):
            call([("ann", 3)])
    with pytest.raises(TypeError, match=r"^`user` must be whole numbers, as in the fit, got text"):
        numbers.recommend("ann")
    with pytest.raises(TypeError, match=r"^`users` must be text, as in the fit, got whole numbers, such as 3"):
        text.predict([(3, 3)])
    assert np.isfinite(text.predict([("never seen", 3)])).all()


def test_more_ratings_keep_the_kind_of_labels():
    users, items, y = RATINGS
    model = quick().fit(RATINGS)
    with pytest.raises(TypeError, match=r"^`users` must be whole numbers, as in the fit, got text, such as 'ann'"):
        model.partial_fit([("ann", 3, 4.0)])
    with pytest.raises(TypeError, match=r"^`items` must be whole numbers, as in the fit, got text, such as 'up'"):
        model.partial_fit([(1, "up", 4.0)])
    np.testing.assert_array_equal(model.user_ids_, np.unique(users))
    model.partial_fit((np.array([7.0, 99.0]), np.array([1, 2], np.uint16), [4.0, 2.0]))
    assert model.user_ids_.dtype == users.dtype
    assert model.user_ids_[-1] == 99
    named = quick().fit((users.astype(str), items, y)).partial_fit([("a much longer name than any other", 3, 4.0)])
    assert "a much longer name than any other" in named.user_ids_


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.zeros(300), r"^`sample_weight` must be non-negative with a positive sum, got 0 to 0; drop the rows"),
        (-np.ones(300), r"^`sample_weight` must be non-negative with a positive sum, got -1 to -1"),
        (np.full(300, np.nan), r"^`sample_weight` must be finite, got nan at index 0"),
        (np.ones(3), r"^`sample_weight` must have one entry for each of the 300 rows, got shape \(3,\)"),
    ],
    ids=["zero", "negative", "nan", "short"],
)
def test_weights_that_cannot_be(weight, words):
    with pytest.raises(ValueError, match=words):
        quick().fit(RATINGS, sample_weight=weight)
    model = quick().fit(RATINGS, sample_weight=np.ones(300))
    with pytest.raises(ValueError, match=words):
        model.partial_fit(RATINGS, sample_weight=weight)


@pytest.mark.parametrize("settings", [{}, {"radius": None}], ids=str)
def test_a_weight_of_zero_is_no_rating(settings):
    users, items, y = RATINGS
    weight = np.where(np.arange(300) % 4 == 0, 0.0, 2.0)
    at = weight > 0
    some = quick(**settings).fit((users[at], items[at], y[at]), sample_weight=weight[at])
    every = quick(**settings).fit((users, items, np.where(at, y, 1e6)), sample_weight=weight)
    np.testing.assert_array_equal(every.predict((users, items)), some.predict((users, items)))
    one = quick(radius=None).fit(RATINGS, sample_weight=np.append(np.zeros(299), 1.0))
    assert one.predict([(users[-1], items[-1])])[0] == pytest.approx(y[-1])


@pytest.mark.parametrize("settings", [{}, {"p": 1.2}, {"offsets": False}], ids=str)
@pytest.mark.parametrize("value", [0.0, 4.0])
def test_constant_ratings(settings, value):
    users, items, _ = RATINGS
    model = MatrixCompletion(rank=3, **settings).fit((users, items, np.full(300, value)))
    np.testing.assert_allclose(model.predict((users, items)), value, rtol=1e-6)
    assert 0.0 <= model.certify_to(1e-3).relative_gap_ <= 1e-3


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**10])
@pytest.mark.parametrize("settings", [{"implicit": 0.0}, {"radius": 60.0}])
def test_ratings_in_any_unit_have_the_same_model(settings, unit):
    rows, cols, y = entries(60, 40, 900, seed=0, rank=3, noise=0.5)
    usual = MatrixCompletion(rank=6, **settings).fit((rows, cols, y))
    settings = {name: value * unit if name == "radius" else value for name, value in settings.items()}
    other = MatrixCompletion(rank=6, **settings).fit((rows, cols, unit * y))
    np.testing.assert_allclose(other.predict((rows, cols)) / unit, usual.predict((rows, cols)), rtol=1e-9)
    assert other.radius_ / unit == pytest.approx(usual.radius_, rel=1e-9)


def test_small_ratings_are_not_outweighed_by_zeros_and_ones():
    rows, cols, y = entries(60, 40, 900, seed=0, rank=3, noise=0.5)
    small = MatrixCompletion(certify=False).fit((rows, cols, 1e-6 * y))
    alone = MatrixCompletion(certify=False, implicit=0.0).fit((rows, cols, 1e-6 * y))
    assert small.settings_.implicit == 0.0
    np.testing.assert_array_equal(small.predict((rows, cols)), alone.predict((rows, cols)))


@pytest.mark.parametrize("unit", [1e-150, 1e-16, 1e16, 1e150])
def test_ratings_beyond_all_units_are_refused(unit):
    rows, cols, y = entries()
    with pytest.raises(ValueError, match=r"must differ by between 1e-15 and 1e\+15, got .*; multiply them by"):
        MatrixCompletion().fit((rows, cols, unit * y))
