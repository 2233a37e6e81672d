"""The Gram form: one pass, open for more rows, equal to least squares on the data, also far from the origin."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from projfree import Entries, Objective, Squared, as_data
from projfree.data import Gram
from projfree.objectives import gram_form

FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def second(gram):
    """The weighted sums of ``x x^T`` and of ``x y^T``."""
    H, b, _ = gram.quadratic()
    return H * gram.total_weight / 2.0, b * gram.total_weight / 2.0


@every_form
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_sums(agreement, table, form, weighted, outputs):
    X, _, s = table(3000, 6)
    y = np.random.default_rng(1).standard_normal((3000, *outputs))
    A = FORMS["float32"](X).astype(np.float64) if form is FORMS["float32"] else X
    s = s if weighted else None
    gram, t = as_data(form(X), y, s).gram(), np.ones(3000) if s is None else s
    agreement(second(gram)[0], (A.T * t) @ A, (np.abs(A).T * t) @ np.abs(A))
    agreement(second(gram)[1], (A.T * t) @ y, (np.abs(A).T * t) @ np.abs(y))
    np.testing.assert_allclose(gram.mean, np.average(A, axis=0, weights=s), atol=1e-14)
    np.testing.assert_allclose(gram.mean_target, np.average(y, axis=0, weights=s), atol=1e-14)
    assert gram.total_weight == pytest.approx(t.sum(), rel=1e-13)
    assert gram.n == 3000


@every_form
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("outputs", [(), (2,)])
@pytest.mark.parametrize("view", [{}, {"centre": True, "scale": True}], ids=["plain", "standardized"])
def test_form_is_the_objective(table, form, intercept, outputs, view):
    X, _, s = table(500, 6)
    rng = np.random.default_rng(2)
    y = rng.standard_normal((500, *outputs)) + 3.0
    data = as_data(form(X), y, s, **view)
    f, gram = Objective(Squared(), data, intercept), data.gram()
    q = gram_form(gram, intercept)
    for _ in range(3):
        w = rng.standard_normal(f.shape)
        x, z = f.point(w), q.point(w)
        assert q(z) == pytest.approx(f(x), rel=1e-12)
        np.testing.assert_allclose(q.evaluate(z).slope.gradient, f.evaluate(x).slope.gradient, atol=1e-11)
        if intercept:
            np.testing.assert_allclose(gram.intercept(w), f.evaluate(x).intercept, atol=1e-11)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("order", ["mixed", "sorted"])
def test_large_means_do_not_cancel(form, order):
    """Columns of mean 1e6 and deviation 1: the plain sums would lose twelve of sixteen digits."""
    rng = np.random.default_rng(3)
    base = rng.integers(-4, 5, (20_000, 3)) / 4.0
    base = base[np.argsort(base[:, 0])] if order == "sorted" else base
    y = base @ [1.0, -2.0, 0.5] + rng.integers(-2, 3, 20_000) + 1e6
    H, b, c = as_data(form(base + 1e6), y).gram().quadratic(fit_intercept=True)
    Z, t = base - base.mean(axis=0), y - 1e6 - (y - 1e6).mean()
    np.testing.assert_allclose(H, 2 * Z.T @ Z / len(Z), atol=1e-13)
    np.testing.assert_allclose(b, 2 * Z.T @ t / len(Z), atol=1e-12)
    assert c == pytest.approx(t @ t / len(Z), rel=1e-12)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 30), min_size=1, max_size=5), st.booleans(), st.booleans())
def test_any_order_of_adding_and_merging(seed, sizes, weighted, sparse):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X, y, s = rng.standard_normal((n, 3)) + 5.0, rng.standard_normal(n), rng.uniform(0.5, 2.0, n) if weighted else None
    X *= rng.random((n, 3)) < 0.8
    form = sp.csr_array if sparse else np.asarray
    whole = as_data(form(X), y, s).gram()
    added, merged, start = Gram(3), Gram(3), 0
    for m in sizes:
        rows = slice(start, start + m)
        part = form(X[rows]), y[rows], None if s is None else s[rows]
        assert added.include(as_data(*part)) is added
        assert merged.merge(Gram(3).include(as_data(*part))) is merged
        start += m
    for gram in (added, merged):
        assert gram.n == whole.n
        assert gram.total_weight == pytest.approx(whole.total_weight, rel=1e-13)
        for a, b in zip(gram.quadratic(True), whole.quadratic(True), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
        np.testing.assert_allclose(second(gram)[0], second(whole)[0], rtol=1e-12)


def test_tables_outside_memory(small, held, tmp_path):
    X, y, s = held
    np.save(tmp_path / "X.npy", X)
    data = as_data(tmp_path / "X.npy", y, s)
    gram, known = data.gram(), as_data(X, y, s).gram()
    f = Objective(Squared(), data)
    np.testing.assert_array_equal(f.quadratic_form().H, gram_form(gram).H)
    assert f.workspace.rows_read == len(X)
    np.testing.assert_allclose(second(gram)[0], second(known)[0], rtol=1e-12)
    for a, b in zip(gram.quadratic(True), known.quadratic(True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    scarce = as_data(tmp_path / "X.npy", y, s, memory=1 << 18)
    np.testing.assert_allclose(second(scarce.gram())[0], second(known)[0], rtol=1e-12)


def test_dependent_columns_stay_convex():
    X = np.random.default_rng(4).standard_normal((1000, 10))
    X = np.hstack([X, X @ np.ones((10, 10)), np.ones((1000, 1))])
    for intercept in (False, True):
        assert gram_form(as_data(X, X[:, 0]).gram(), intercept).convex


def test_sentences():
    with pytest.raises(TypeError, match="`gram` needs a table of features; EntriesData"):
        as_data(Entries([0, 1], [1, 0], shape=(2, 2)), [4.0, 5.0]).gram()
    with pytest.raises(ValueError, match=r"`X` and `y` must have 3 columns .* got 2 and \(\)"):
        Gram(3).include(as_data(np.ones((2, 2)), np.ones(2)))
    with pytest.raises(ValueError, match=r"`X` and `y` must have 3 columns .* got 2 and \(\)"):
        Gram(3).merge(Gram(2))
    with pytest.raises(ValueError, match="This Gram has no rows yet; `add` some first"):
        Gram(3).quadratic()


def exact_form(gram, w):
    """The quadratic form that a Gram matrix amounts to, without any further rounding."""
    H, b, c = gram.quadratic()
    w = [Fraction(v) for v in w.tolist()]
    rows = [sum(Fraction(h) * v for h, v in zip(row, w, strict=True)) for row in H.tolist()]
    along = sum(Fraction(t) * v for t, v in zip(b.tolist(), w, strict=True))
    return sum(r * v for r, v in zip(rows, w, strict=True)) / 2 - along + Fraction(c)


@pytest.mark.parametrize("zero", ["targets", "parameter", "nothing"])
def test_the_form_errs_by_no_more_than_is_stated(zero):
    """Without targets only the term of the curvature is left, at zero only that of the targets."""
    off = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y, w = rng.standard_normal((300, 3)), rng.standard_normal(300), rng.standard_normal(3)
        y, w = (0.0 * y if zero == "targets" else y), (0.0 * w if zero == "parameter" else w)
        gram, exact = as_data(X, y).gram(), Fraction(0)
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            u = sum(Fraction(x) * Fraction(v) for x, v in zip(row, w.tolist(), strict=True))
            exact += (u - Fraction(target)) ** 2 / 300
        constant, curvature = map(Fraction, gram.errors())
        away = abs(exact_form(gram, w) - exact)
        off += away > 0
        assert away <= constant + curvature * sum(Fraction(v) ** 2 for v in w.tolist()) / 2
    assert off > 5
