"""Centring and scaling as a view: the numbers of a centred copy, without the copy, with honest bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from projfree import Entries, Objective, Squared, as_data
from projfree.data import gram
from projfree.data.column_stats import TableErrors
from projfree.data.gram import largest_eigenvalue

SHIFT, SCALE = np.array([0.5, -2.0, 0.0, 100.0, 1.0]), np.array([2.0, 0.25, 1.0, 30.0, 1e-2])
FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}

every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def numbers(X):
    return (X.toarray() if sp.issparse(X) else X).astype(np.float64)


@every_form
@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "compiled"])
def test_agrees_with_a_copy(judge, table, form, compiled, request):
    if compiled:
        request.getfixturevalue("small_is_large")
    X, y, s = table(2500, 5)
    X = form(X)
    A, size = (numbers(X) - SHIFT) / SCALE, (np.abs(numbers(X)) + np.abs(SHIFT)) / SCALE
    data = as_data(X, y, s, centre=SHIFT, scale=SCALE)
    for outputs in ((), (3,)):
        judge.linear(data, A, size, outputs)
    judge.measures(data, A, size)
    judge.smoothness(data, A)
    judge.tangents(data, as_data(A, y, s), size)


@every_form
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_and_deviation(table, form, weighted):
    X, y, s = table(2500, 5)
    X[:, 1], X[:, 3] = 0.1, X[:, 3] + 1000.0
    X = form(X)
    s = s if weighted else None
    data = as_data(X, y, s, centre=True, scale=True)
    A = numbers(X)
    mean = np.average(A, axis=0, weights=s)
    deviation = np.sqrt(np.average((A - mean) ** 2, axis=0, weights=s))
    deviation[1] = 1.0
    np.testing.assert_allclose(data.scaling[0], mean, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(data.scaling[1], deviation, rtol=1e-9)
    np.testing.assert_allclose(data.column_stats.mean, 0.0, atol=1e-12)


def test_large_means_cost_no_digits_of_the_deviation():
    x = np.random.default_rng(0).standard_normal((4000, 1))
    for form in (np.asarray, sp.csr_array):
        data = as_data(form(x + 1e6), np.ones(4000), scale=True)
        np.testing.assert_allclose(data.scaling[1], (x + 1e6).std(axis=0), rtol=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(-6, 6), st.booleans())
def test_the_allowance_covers_the_cancellation(seed, power, sparse):
    """The tangent of the view is within its stated error of one from numbers that need no rounding."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (64, 3)) / 8.0
    shift = np.round(10.0**power, 3) * np.array([1.0, -1.0, 0.0])
    raw = X + shift  # rounded; what the table holds is taken as exact
    exact = [[_fraction(a) - _fraction(c) for a, c in zip(row, shift, strict=True)] for row in raw.tolist()]
    y = rng.integers(-4, 5, 64) / 4.0
    f = Objective(Squared(), as_data(sp.csr_array(raw) if sparse else raw, y, centre=shift))
    x = f.point(rng.standard_normal(3))
    m = f.evaluate(x).slope
    u = f.data.apply(x.w)
    r = [(2 * (_fraction(a) - _fraction(b))) / 64 for a, b in zip(u.tolist(), y.tolist(), strict=True)]
    gradient = [sum(ri * row[j] for ri, row in zip(r, exact, strict=True)) for j in range(3)]
    error = sum((float(_fraction(float(g)) - h)) ** 2 for g, h in zip(m.gradient, gradient, strict=True)) ** 0.5
    assert error <= m.gradient_error


def _fraction(x):
    from fractions import Fraction

    return Fraction(float(x))


def test_raw_units(judge, table):
    X, y, s = table(400, 5)
    f = Objective(Squared(), as_data(X, y, s, centre=True, scale=True), fit_intercept=True)
    result = judge.certificate(f)
    w, b = f.data.column_stats.raw(result.w, result.intercept)
    prediction = f.data.apply(result.w) + result.intercept
    np.testing.assert_allclose(X @ w + b, prediction, atol=1e-14)
    W, k = as_data(X, y, centre=SHIFT, scale=SCALE).column_stats.raw(np.ones((5, 3)), np.arange(3.0))
    np.testing.assert_allclose(X @ W + k, (X - SHIFT) / SCALE @ np.ones((5, 3)) + np.arange(3.0), atol=1e-9)
    same, zero = as_data(X, y).column_stats.raw(np.ones(5))
    assert same.tolist() == [1.0] * 5
    assert zero == 0.0


def test_tables_outside_memory(judge, small, held, tmp_path):
    X, y, s = held
    np.save(tmp_path / "X.npy", X)
    data, known = (as_data(form, y, s, centre=True, scale=True) for form in (tmp_path / "X.npy", X))
    assert type(data).__name__ == "ChunkedData"
    np.testing.assert_allclose(data.scaling[1], known.scaling[1], rtol=1e-13)
    np.testing.assert_array_equal(data.scaling[0], known.scaling[0])
    A, size = (X - data.scaling[0]) / data.scaling[1], (np.abs(X) + np.abs(data.scaling[0])) / data.scaling[1]
    judge.linear(data, A, size)
    judge.measures(data, A, size)
    judge.smoothness(data, A)
    judge.tangents(data, as_data(A, y, s), size, losses=[Squared()])


def test_views_of_views(judge, table):
    X, y, s = table(300, 5)
    once = as_data(sp.csr_array(X), y, s, centre=SHIFT, scale=SCALE)
    twice = once.standardized(np.ones(5), 2 * np.ones(5))
    A = ((X - SHIFT) / SCALE - 1.0) / 2.0
    size = ((np.abs(X) + np.abs(SHIFT)) / SCALE + 1.0) / 2.0
    judge.linear(twice, A, size)
    judge.tangents(twice, as_data(A, y, s), size)


@pytest.mark.parametrize("scaled", [False, True])
def test_what_is_known_of_a_table_stays_with_its_rows(table, scaled):
    """Errors of the table, and the sum of the weights, in which products of rows that are appended later count."""
    X, y, s = table(300, 5)
    data, rows = as_data(X, y, s, scale=scaled), np.arange(100)
    errors = TableErrors(1.0, 2.0, 3.0, 4.0)
    data.column_stats = replace(data.column_stats, errors=errors)
    part, heavy = data.subset(rows), data.with_targets(np.sign, np.abs)
    assert part.column_stats.errors == heavy.column_stats.errors == errors
    assert part.total_weight == pytest.approx(s[rows].sum())
    assert part.gram().total_weight == pytest.approx(s[rows].sum())
    weighed = s * np.abs(y)
    assert heavy.total_weight == pytest.approx(weighed.sum())
    third = heavy.subset(rows).with_targets(np.abs, lambda y: 3.0 + 0.0 * y)
    assert third.total_weight == pytest.approx(3.0 * weighed[rows].sum())
    assert third.column_stats.errors == errors


def test_threads_do_not_show(identical, table, small_is_large):
    X, y, s = table(9000, 6)
    for form in (sp.csr_array(X), X):
        identical(lambda threads, form=form: as_data(form, y, s, centre=True, scale=True, threads=threads))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("n", "d"), [(200, 6), (6, 200)])
def test_smoothness_is_an_upper_bound_either_way(judge, table, monkeypatch, n, d, sparse):
    X, y, s = table(n, d)
    X += 2.0
    data = as_data(sp.csr_array(X) if sparse else X, y, s, centre=np.ones(d), scale=np.linspace(0.5, 2.0, d))
    A = (X - 1.0) / np.linspace(0.5, 2.0, d)
    judge.smoothness(data, A)
    top = np.linalg.eigvalsh((A.T * data.weight) @ A)[-1]
    if n > d or not sparse:
        assert largest_eigenvalue(data, centred=False) <= top * (1 + 1e-9)
    monkeypatch.setattr(gram, "GRAM_SIDE", 0)
    judge.smoothness(data, A)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"centre": [1.0]}, r"`centre` must have one entry for each of the 2 columns, got shape \(1,\)"),
        ({"scale": [1.0, 0.0]}, r"`scale` must be positive, got 0\.0 for column 1; use 1 to leave it"),
        ({"scale": [1.0, np.nan]}, r"`scale` must be finite, got nan at index 1"),
        ({"scale": [1.0, 1e-200]}, r"`scale` is too small for the features, down to 1e-200: scaled rows overflow"),
    ],
)
def test_sentences(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_data(np.ones((3, 2)), np.ones(3), **settings)


def test_entries_have_no_features():
    for settings in ({"centre": True}, {"scale": True}):
        with pytest.raises(TypeError, match="EntriesData has no"):
            as_data(Entries([0, 1], [1, 0], shape=(2, 2)), [4.0, 5.0], **settings)
