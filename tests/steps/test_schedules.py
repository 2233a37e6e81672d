"""Steps fixed beforehand: the first is exactly one, and they fall as they should."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree import LastGradient, LogAdaptive, OpenLoop

SCHEDULES = [OpenLoop(), OpenLoop(4.0), OpenLoop(0.3), LogAdaptive()]


@given(st.floats(1e-12, 1e9))
def test_the_first_step_is_exactly_one(ell):
    """A first weight of 1 - 1e-16 would leave a trace of the start in every average of tangents."""
    assert OpenLoop(ell).weight(1) == 1.0
    assert LogAdaptive().weight(1) == 1.0


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_steps_decrease_to_zero(schedule):
    weights = [schedule.weight(t) for t in range(1, 2000)]
    assert all(0.0 < b < a <= 1.0 for a, b in pairwise(weights))
    assert weights[-1] < 0.01


def test_formulas():
    assert [OpenLoop().weight(t) for t in (1, 2, 3, 9)] == [1.0, 2 / 3, 0.5, 0.2]
    assert OpenLoop(4).weight(5) == 0.5
    ell = 2 + math.log(11)
    assert LogAdaptive().weight(10) == pytest.approx(ell / (9 + ell))
    assert [LastGradient().weight(t) for t in (1, 7)] == [1.0, 1.0]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_a_schedule_is_a_rule_that_looks_at_nothing(schedule):
    assert schedule(7, None, 0.25) == (schedule.weight(7), 0.25)


@given(st.sampled_from([2, 3, 5]), st.integers(2, 300))
def test_weights_of_an_average(ell, t):
    """With ell = 2 the k-th of t terms has the weight 2k / (t (t + 1)); in general they grow like k^(ell - 1)."""
    shares, schedule = [], OpenLoop(ell)
    for k in range(1, t + 1):
        a = schedule.weight(k)
        shares = [(1 - a) * share for share in shares] + [a]
    assert sum(shares) == pytest.approx(1.0)
    rising = [math.comb(k + ell - 2, ell - 1) for k in range(1, t + 1)]
    assert shares == pytest.approx([r / sum(rising) for r in rising], rel=1e-9)


@pytest.mark.parametrize(("ell", "shown"), [(0.0, "0.0"), (-1, "-1"), (math.inf, "inf"), (math.nan, "nan")])
def test_refusals(ell, shown):
    sentence = rf"`OpenLoop\(ell=\.\.\.\)` must be positive and finite, got {shown}\. Use `LastGradient"
    with pytest.raises(ValueError, match=sentence):
        OpenLoop(ell)
