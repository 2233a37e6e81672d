"""Step rules: steps lie in [0, 1], rules that look never climb, and each is what its name says."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import optimize

from projfree import Backtracking, ExactLineSearch, LogAdaptive, OpenLoop, ShortStep

RULES = [OpenLoop(), LogAdaptive(), ShortStep(), ShortStep(L=50.0), ExactLineSearch(), Backtracking()]
MONOTONE = [ShortStep(), ExactLineSearch(), Backtracking()]
RADII = (0.1, 1.0, 30.0)

radii = pytest.mark.parametrize("radius", RADII)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@radii
def test_steps_lie_between_zero_and_one(segment, name, rule, radius):
    memory = math.nan
    for t in range(1, 5):
        gamma, memory = rule(t, segment(name, t, radius).hull, memory)
        assert isinstance(gamma, float)
        assert 0.0 <= gamma <= 1.0


@pytest.mark.parametrize("rule", MONOTONE, ids=repr)
@radii
def test_values_never_increase(segment, name, rule, radius):
    memory = math.nan
    for seed in range(4):
        s = segment(name, seed, radius)
        gamma, memory = rule(seed + 1, s.hull, memory)
        start = s.value(0.0)
        assert s.value(gamma) <= start + 1e-14 * abs(start)
        assert gamma > 0.0 or s.hull.gap <= 1e-9 * abs(start), "there is a descent to be had"


@pytest.mark.parametrize("rule", [r for r in MONOTONE if r != ShortStep()], ids=repr)
def test_uphill_the_step_is_zero(segment, rule):
    s = segment("logistic")
    up = s.f.hull((s.x, s.f.point(2 * s.x.w - s.v.w)), s.m.gradient)
    assert up.gap < 0
    assert rule(1, up, 0.5)[0] == 0.0
    assert ShortStep()(1, up, 0.5)[0] == 0.0
    assert ShortStep(L=1.0)(1, up, 0.5)[0] == 0.0


@pytest.mark.parametrize("rule", RULES[2:], ids=repr)
def test_a_segment_without_length(segment, name, rule):
    s = segment(name)
    same = s.f.hull((s.x, s.f.point(s.x.w)), s.m.gradient)
    assert 0.0 <= rule(1, same, math.nan)[0] <= 1.0


@radii
def test_short_step_with_a_constant(segment, name, radius):
    s = segment(name, radius=radius)
    L = s.f.smoothness()
    gap, length = np.vdot(s.m.gradient, s.x.w - s.v.w), np.sum((s.x.w - s.v.w) ** 2)
    gamma, _ = ShortStep(L=L)(1, s.hull, math.nan)
    assert gamma == pytest.approx(min(1.0, gap / (L * length)), rel=1e-12)
    # Its promise, from smoothness alone.
    promise = s.value(0.0) - gamma * gap + 0.5 * gamma**2 * L * length
    assert s.value(gamma) <= promise + 1e-12 * abs(promise)


@radii
def test_short_step_with_the_curvature_along_the_segment(segment, radius):
    s = segment("logistic", radius=radius)
    d = s.f.data.X @ (s.v.w - s.x.w)
    bend = 0.25 * np.mean(d**2)
    gamma, _ = ShortStep()(1, s.hull, math.nan)
    assert gamma == pytest.approx(min(1.0, s.hull.gap / bend), rel=1e-10)
    assert gamma >= ShortStep(L=s.f.smoothness())(1, s.hull, math.nan)[0]


@radii
@pytest.mark.parametrize("seed", range(2))
def test_exact_line_search(segment, convex_name, radius, seed):
    s = segment(convex_name, seed, radius)
    gamma, _ = ExactLineSearch()(1, s.hull, math.nan)
    referee = optimize.minimize_scalar(s.value, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
    best, start = min(referee.fun, s.value(1.0)), s.value(0.0)
    assert s.value(gamma) <= best + 1e-8 * (start - best) + 1e-14 * abs(start)
    assert gamma == pytest.approx(referee.x, abs=1e-4)


@pytest.mark.parametrize("bent", ["biweight", "saddle"])
@radii
def test_exact_line_search_without_convexity_is_no_worse_than_a_short_step(segment, bent, radius):
    for seed in range(4):
        s = segment(bent, seed, radius)
        exact, short = ExactLineSearch()(1, s.hull, math.nan)[0], ShortStep()(1, s.hull, math.nan)[0]
        assert s.value(exact) <= s.value(short) + 1e-14


@radii
def test_backtracking_keeps_its_promise(segment, name, radius):
    """f at the step lies below the quadratic with the estimate that the rule hands on."""
    s = segment(name, radius=radius)
    gamma, M = Backtracking()(1, s.hull, math.nan)
    length = s.hull.squared_length
    assert gamma == pytest.approx(min(1.0, s.hull.gap / (M * length)), rel=1e-12)
    promise = s.value(0.0) - gamma * s.hull.gap + 0.5 * gamma**2 * M * length
    assert s.value(gamma) <= promise + 1e-12 * abs(promise)


REFUSED = [
    (ShortStep, {"L": 0.0}, ValueError, "must be positive and finite, got 0.0."),
    (ShortStep, {"L": math.inf}, ValueError, "must be positive and finite, got inf."),
    (ShortStep, {"L": "1"}, TypeError, "must be a real number, got '1' of type str."),
]


@pytest.mark.parametrize(("cls", "setting", "error", "rule"), REFUSED)
def test_refusals(cls, setting, error, rule):
    (name,) = setting
    with pytest.raises(error, match=re.escape(f"`{cls.__name__}({name}=...)` {rule}")):
        cls(**setting)
