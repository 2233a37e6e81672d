"""The random problems are what they claim to be: every loss, set, form, condition and method comes up."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from agreement.data import CONDITIONS
from agreement.exact import Mean, Quadratic
from agreement.inside import norm, pulled
from agreement.methods import CORRECTIVE, FREE, PROJECTING, PROJECTING_SAMPLED, SAMPLED, draw_method
from agreement.problems import CONVEX, FORMS, MORE, MORE_FORMS, convex_problem, more_problem

from projfree import (
    Gamma,
    GroupBall,
    LpBall,
    Poisson,
    Quantile,
    SchattenBall,
    Squared,
    SquaredHinge,
    Weighted,
)
from projfree.sets import SETS, Birkhoff, KSupportBall, OracleSet, OwlBall, Positive, WeightedSchattenBall, WithFree
from projfree.solvers import SOLVERS, HessianFreeNewton
from projfree.testing.sets import examples


def test_the_fast_problems_cover_everything() -> None:
    problems = [convex_problem(seed) for seed in range(264)]
    met = Counter((type(p.loss), type(p.ball)) for p in problems)
    for loss, kind in product(CONVEX, SETS):
        # These have referees of their own, in tests/sets, tests/completion and test_polytopes.py.
        apart = (OracleSet, Positive, WithFree, WeightedSchattenBall, KSupportBall, OwlBall, Birkhoff)
        assert met[type(loss), kind] or kind in apart, (loss, kind)
    assert {p.form for p in problems} == set(FORMS)
    assert {p.table.condition for p in problems} == {*CONDITIONS, "entries"}
    solvers = [draw_method(p) for p in problems]
    few = {HessianFreeNewton}  # which is for few sets
    assert {type(s) for s in solvers} | few == set(SOLVERS)
    known = {*FREE, *CORRECTIVE, *SAMPLED, *PROJECTING, *PROJECTING_SAMPLED}
    assert known - set(solvers) == set()
    assert any(p.intercept for p in problems)
    assert any(p.table.weight is not None and (p.table.weight == 0).any() for p in problems)


def test_the_problems_of_more_losses_cover_them() -> None:
    problems = [more_problem(seed) for seed in range(48)]
    assert {p.form for p in problems} == set(MORE_FORMS)
    for loss in MORE:
        of = [p for p in problems if p.loss == loss]
        assert {type(p.ball) for p in of} >= {type(p.ball) for p in problems}
        assert {p.intercept for p in of} == {False, True}
        assert any(p.table.weight is not None for p in of)


def test_exact_values_of_more_losses_done_by_hand() -> None:
    assert Mean(Quantile(0.25), [[1.0], [2.0]], [1.0, 1.0])([2.0]) == Decimal("1.5")  # residuals -1 and -3
    assert Mean(SquaredHinge(), [[1.0], [2.0]], [1.0, -1.0])([2.0]) == Decimal("12.5")
    one = Mean(Poisson(), [[1.0]], [1.0])
    assert float(one([1.0])) == pytest.approx(np.e - 2.0, rel=1e-15)
    assert float(one([81.0])) == pytest.approx(2.0 * np.exp(80.0), rel=1e-15)
    assert float(Mean(Gamma(), [[1.0]], [1.0])([1.0])) == pytest.approx(1.0 / np.e, rel=1e-15)
    assert float(Mean(Gamma(), [[1.0]], [1.0])([-46.0])) == pytest.approx(2.0 * np.exp(45.0), rel=1e-15)


def test_a_number_determines_its_problem() -> None:
    first, again = convex_problem(7), convex_problem(7)
    assert str(first) == str(again)
    assert np.array_equal(first.table.X, again.table.X)
    assert draw_method(first) == draw_method(again)


@pytest.mark.parametrize("ball", [b for k in (LpBall, GroupBall, SchattenBall, Weighted) for b in examples(k)], ids=str)
def test_exact_norms_agree_with_those_of_the_package(ball: LpBall) -> None:
    w = np.array([[3.0, -1.0, 0.5], [0.0, 2.0, 1.0], [0.25, -4.0, 1.5]])
    inside = pulled(ball, w)
    assert float(norm(ball, inside)) == pytest.approx(ball.radius, rel=1e-15)
    assert norm(ball, inside) <= ball.radius
    assert ball.norm(inside.astype(np.float64)) == pytest.approx(ball.radius, rel=1e-13)


def test_exact_values_of_a_problem_done_by_hand() -> None:
    mean = Mean(Squared(), [[1.0], [2.0]], [1.0, 4.0])
    assert mean([1.0]) == 2
    assert Mean(Squared(), [[1.0], [2.0]], [1.0, 4.0], intercept=True)([1.0]) == 1
    assert Mean(Squared(), [[1.0], [2.0]], [1.0, 4.0], weight=[3.0, 1.0])([1.0]) == 1
    assert Quadratic([[2.0]], [3.0], 1.0)([2.0]) == -1
