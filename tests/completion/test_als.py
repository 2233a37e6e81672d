"""The alternating sweeps: exact regressions, descent, and fixed points that are optimal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from completion.problems import CASES, SHAPE, entries, problem

from projfree import MatrixCompletion
from projfree.completion import als
from projfree.completion.als import ALS, update_factors
from projfree.completion.model import Factors
from projfree.completion.selection import run_sweeps
from projfree.losses import Huber, Squared


def model_of(f, seed=0, rank=3):
    rng = np.random.default_rng(seed)
    lefts, rights = (0.3 * rng.standard_normal((side, rank)) for side in f.shape)
    return Factors.of(f, lefts, rights, np.linspace(-1.0, 1.0, 1 + sum(SHAPE)), np.ones(rank))


@pytest.mark.parametrize(("implicit", "sides"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_half_sweeps_converge_to_the_regressions(implicit, sides, weighted):
    """The Gram matrix that all rows share is part of each regression, whatever the ridge of the components."""
    f = problem(implicit, sides, weighted=weighted)
    e, now = f.entries, model_of(f)
    ridge, scale = np.array([0.3, 0.5, 0.9]), np.linspace(0.5, 2.0, SHAPE[0])
    found, q = now, f.n * f.side.weights[0]
    for _ in range(40):
        found = replace(now, lefts=np.concatenate([found.left, now.left_extra]), rows=found.rows)
        found = update_factors(f, found, 0, ridge, scale)
    rows, cols, s = e.pattern.rows, e.pattern.indices, f.n * np.broadcast_to(e.s, f.n)
    users = np.zeros((SHAPE[0], 0)) if f.features[0] is None else f.features[0].toarray()
    B = np.zeros((SHAPE[0], SHAPE[1] if implicit else 0))
    if implicit:
        B[rows, cols] = 1.0
    known = np.hstack([B, users])
    for i in range(SHAPE[0]):
        at = rows == i
        T = np.column_stack([np.ones(at.sum()), now.right[cols[at]]])
        A = T.T @ (s[at, None] * T) + np.diag(np.append(e.ridge, ridge * scale[i]))
        A[1:, 1:] += now.right_extra.T @ (q[:, None] * now.right_extra)
        b = T.T @ (s[at] * (e.y[at] - e.base - now.shift - now.cols[cols[at]]))
        b[1:] += now.right_extra.T @ (q * known[i])
        expected = np.linalg.solve(A, b) if at.any() else np.zeros(4)
        np.testing.assert_allclose(np.append(found.rows[i], found.left[i]), expected, atol=1e-9)
    items = np.zeros((0, SHAPE[1])) if f.features[1] is None else f.features[1].toarray().T
    for line, target in enumerate(np.vstack([B, items]) if implicit else items):
        w = (f.n * f.side.weights[1])[line]
        gram = w * now.right.T @ now.right + np.diag(ridge)
        np.testing.assert_allclose(found.left_extra[line], w * np.linalg.solve(gram, now.right.T @ target), atol=1e-9)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5)], ids=["squared", "huber"])
@pytest.mark.parametrize(("implicit", "sides"), CASES)
def test_sweeps_descend(implicit, sides, loss):
    """With a fixed strength and p = 1 no sweep raises the penalised problem."""
    f, totals = problem(implicit, sides, loss, kinds=(False, True, True)), []

    def total(run):
        now, e = Factors.of_point(f, run.state.x, run.state.sigma), f.entries
        u = now.margin(e.pattern.rows, e.pattern.indices) - e.offsets(now.offsets)
        squares = f.side.value(now.lefts, now.rights) if f.side.any else 0.0
        totals.append(f.n * (e.value(u, now.offsets) + squares) + 2.0 * now.sigma.sum())

    run_sweeps(f, ALS(3, 1.0), None, max_iter=20, callbacks=[total])
    assert len(totals) == 20
    assert (np.diff(totals) <= 1e-9 * np.abs(totals[:-1])).all()


@pytest.mark.parametrize("p", [1.0, 1.2])
def test_a_fixed_point_minimises_over_the_ball_of_its_norm(p):
    """Also if the frequencies of users differ a hundredfold, and the norm weighs them."""
    rng = np.random.default_rng(0)
    users, items = (30 * rng.random(400) ** 3).astype(int), (20 * rng.random(400) ** 2).astype(int)
    ratings = users, items, rng.integers(1, 6, 400) + 0.1 * (users % 3) * (items % 4)
    model = MatrixCompletion(p=p, rank=20, max_sweeps=400, certify="sharp", radius=30.0).fit(ratings)
    assert 0.0 <= model.relative_gap_ <= 2e-3


@pytest.mark.parametrize("implicit", [0.0, 0.5])
def test_an_answer_in_single_precision_lies_inside_the_ball(implicit, monkeypatch):
    monkeypatch.setattr(als, "MIN_SINGLE_PRECISION", 100)
    model = MatrixCompletion(rank=6, implicit=implicit, certify=False).fit(entries(60, 40, 900, rank=3, noise=0.5))
    f = model._problem(model.ratings_)
    assert f.ball(model.radius_).norm(model.factors_.point(f).w) == pytest.approx(model.norm_, rel=1e-12)
    assert model.norm_ <= model.radius_
    assert model.certify_to(1e-2).relative_gap_ <= 1e-2


TABLE = np.random.default_rng(2).standard_normal((30, 3))


@pytest.mark.parametrize("settings", [{"implicit": 1.0}, {"user_features": TABLE}], ids=["implicit", "features"])
@pytest.mark.parametrize(("m", "n"), [(7, 5), (30, 20)])
def test_constant_ratings_in_a_wide_ball_have_regressions(m, n, settings):
    """The ratings leave no penalty, and the squares of what was rated have an exact factorisation."""
    rows, cols = np.divmod(np.arange(m * n), n)
    if "user_features" in settings:
        settings = {"user_features": settings["user_features"][:m]}
    model = MatrixCompletion(radius=4.0 * np.sqrt(m * n), rank=5, max_sweeps=200, certify=False, **settings)
    with pytest.warns(UserWarning, match="larger than these ratings need"):
        model.fit((rows, cols, np.full(m * n, 3.0)))
    np.testing.assert_allclose(model.predict((rows, cols)), 3.0, rtol=1e-6)
    f = model._problem(model.ratings_)
    assert f(model.factors_.point(f)) < 0.01


def fitted(weight=None, **settings):
    given = {"rank": 20, "radius": 12.0, "certify": False, "max_sweeps": 400, **settings}
    return MatrixCompletion(**given).fit(entries(30, 20, 300, seed=3), sample_weight=weight)


@pytest.mark.parametrize(("p", "loss", "implicit"), [(1.0, "squared", 1.0), (1.0, "huber", 0.0), (1.3, "squared", 0.0)])
def test_a_convex_answer_has_the_penalty_of_sweeps_that_have_converged(p, loss, implicit):
    settings = {"p": p, "loss": loss, "implicit": implicit}
    swept, model = fitted(**settings, rank=40), fitted(**settings, max_sweeps=1).certify_to(1e-6)
    assert model.strength_ == pytest.approx(swept.strength_, rel=1e-3 if p == 1.0 or not implicit else 1e-2)


@pytest.mark.parametrize("settings", [{}, {"implicit": 1.0}, {"user_features": TABLE}])
def test_of_weights_only_ratios_count(settings):
    weight, pairs = np.random.default_rng(0).uniform(0.5, 2.0, 300), entries(30, 20, 300, seed=3)[:2]
    # A power of two changes no rounding, which sweeps that have not converged would amplify.
    one, other = (fitted(each, max_sweeps=20, **settings).predict(pairs) for each in (weight, 16.0 * weight))
    np.testing.assert_allclose(one, other, rtol=1e-12)
