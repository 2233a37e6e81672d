"""`smoothness` is an upper bound on the largest eigenvalue of A' S A, and close to it where it can be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from projfree import Entries, as_data
from projfree.data import gram
from projfree.data.gram import largest_eigenvalue

SHAPES = [(40, 5), (5, 40), (20, 20), (1, 3), (200, 1)]

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
centred = pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])


def problem(shape, weighted):
    rng = np.random.default_rng(sum(shape))
    X = rng.standard_normal(shape) + 3.0  # an offset, so that centring matters
    weight = rng.uniform(0.1, 1.0, shape[0]) if weighted else None
    s = np.full(shape[0], 1.0 / shape[0]) if weight is None else weight / weight.sum()
    return X, weight, s


def largest(X, s, centred):
    rows = (X - (s @ X if centred else 0.0)) * np.sqrt(s)[:, None]
    return float(np.linalg.svd(rows, compute_uv=False)[0] ** 2)


@every_shape
@centred
@weighted
def test_upper_bound_and_close(shape, centred, weighted):
    X, weight, s = problem(shape, weighted)
    data, true = as_data(X, np.zeros(len(X)), weight), largest(X, s, centred)
    found = largest_eigenvalue(data, centred=centred)
    assert found >= true * (1 - 1e-15)
    assert found <= true * (1 + 1e-11) + 1e-12


@every_shape
@centred
@weighted
def test_upper_bound_for_wide_tables(shape, centred, weighted, monkeypatch):
    monkeypatch.setattr(gram, "GRAM_SIDE", 0)
    X, weight, s = problem(shape, weighted)
    data, true = as_data(X, np.zeros(len(X)), weight), largest(X, s, centred)
    found = largest_eigenvalue(data, centred=centred)
    assert found >= true * (1 - 1e-15)
    assert found <= s @ np.sum(X**2, axis=1) * (1 + 1e-11)


@pytest.mark.parametrize("wide", [False, True], ids=["gram", "wide"])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7)], ids=str)
def test_never_below_the_exact_value(shape, wide, monkeypatch):
    """A table of rank one has a rational eigenvalue, |a|^2 |b|^2 / n: rounding may not fall below it."""
    monkeypatch.setattr(gram, "GRAM_SIDE", 0 if wide else 3_000)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, b = (rng.integers(1, 10**6, size).astype(float) for size in shape)
        squares = [sum(Fraction(x) ** 2 for x in v) for v in (a, b)]
        found = largest_eigenvalue(as_data(np.outer(a, b), np.zeros(shape[0])), centred=False)
        assert Fraction(found) >= squares[0] * squares[1] / shape[0]


@pytest.mark.parametrize("seed", range(10))
def test_never_below_the_exact_variance_where_sums_were_taken_about_a_far_place(seed):
    """One far row of hardly any weight moves the centre of the sums and not the mean: moving them back costs digits."""
    rng = np.random.default_rng(seed)
    X, weight = rng.standard_normal((50, 1)), np.ones(50)
    X[0], weight[0] = 10.0 ** rng.uniform(5.0, 9.0), 2.0**-60
    data = as_data(X, np.zeros(50), weight)
    s, x = [Fraction(v) for v in weight], [Fraction(float(v)) for v in X[:, 0]]
    mean = sum(a * b for a, b in zip(s, x, strict=True)) / sum(s)
    variance = sum(a * (b - mean) ** 2 for a, b in zip(s, x, strict=True)) / sum(s)
    assert Fraction(largest_eigenvalue(data, centred=True)) >= variance


def test_float32_is_widened():
    X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    wide = largest_eigenvalue(as_data(X.astype(np.float64), np.zeros(30)), centred=True)
    assert largest_eigenvalue(as_data(X, np.zeros(30)), centred=True) == pytest.approx(wide, rel=1e-14)


def test_entries_count_how_often_a_place_is_observed():
    places = Entries([0, 0, 1, 1, 1], [1, 1, 0, 0, 0], shape=(2, 2))
    data = as_data(places, np.zeros(5))
    assert (
        Fraction(3, 5)
        <= Fraction(largest_eigenvalue(data, centred=False))
        <= Fraction(3, 5) * (1 + Fraction(1, 10**12))
    )
    weighted = as_data(places, np.zeros(5), [5, 1, 1, 1, 1])
    assert largest_eigenvalue(weighted, centred=True) == pytest.approx(6 / 9, rel=1e-12)
