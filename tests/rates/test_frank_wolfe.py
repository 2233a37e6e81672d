"""Frank-Wolfe: the transient of fixed steps, and the linear convergence of short and exact steps away from rho = 1.

Slopes of 2/(t+1) on [10, 1e2] / [1e2, 1e3] / [1e3, 1e4] as measured on the fixture `problem`; the transient lasts
longer the closer rho is to one and p to one.

====  ======================  ======================  ======================  ======================
p     rho = 0.5               0.9                     1                       2
====  ======================  ======================  ======================  ======================
2     -2.01/-2.00/-2.00       -1.17/-2.00/-2.01       -1.15/-1.38/-1.86       -1.39/-1.43/-1.87
1.5                           -1.18/-1.49/-2.03
1.1   -1.25/-1.99/-2.00       -1.26/-0.99/-1.52
====  ======================  ======================  ======================  ======================
"""

from __future__ import annotations

import numpy as np
import pytest

from projfree import ExactLineSearch, FrankWolfe, LogAdaptive, OpenLoop, ShortStep


@pytest.mark.slow
@pytest.mark.parametrize(("p", "rho"), [(2, 0.9), (1.5, 0.9), (1.1, 0.5)])
def test_fixed_steps_begin_near_minus_one_and_end_at_minus_two(problem, p, rho):
    curve = problem.curve(FrankWolfe(OpenLoop()), p, rho, 10_000)
    assert -1.4 <= curve.slope(10, 1e2) <= -1.0
    assert -2.1 <= curve.slope(1e3, 1e4) <= -1.9


@pytest.mark.slow
def test_the_transient_lasts_longer_near_the_exact_radius_and_near_p_one(problem):
    fixed = FrankWolfe(OpenLoop())
    assert problem.curve(fixed, 2, 0.5, 1_000).slope(10, 1e2) <= -1.9  # -2.01: over at once
    assert -1.5 <= problem.curve(fixed, 2, 1, 1_000).slope(1e2, 1e3) <= -1.2  # -1.38
    assert -1.2 <= problem.curve(fixed, 1.1, 0.9, 1_000).slope(1e2, 1e3) <= -0.9  # -0.99


@pytest.mark.slow
def test_larger_fixed_steps_give_a_larger_power_once_the_transient_is_over(problem):
    """l_2, rho = 0.5, [1e2, 1e3]: -3.98 with ell = 4, -7.80 with logarithmic weights."""
    assert -4.1 <= problem.curve(FrankWolfe(OpenLoop(4)), 2, 0.5, 1_000).slope(1e2, 1e3) <= -3.9
    assert problem.curve(FrankWolfe(LogAdaptive()), 2, 0.5, 1_000).slope(1e2, 1e3) <= -7


# Iterations to 1e-6 / 1e-8 / 1e-10 as measured. A linear rate makes each further digit cost the same; even t^-4 would
# need ten times as many iterations for 1e-10 as for 1e-6. These steps zigzag, and a change of the last bit of the data
# moves single counts by up to 40 %, so the counts themselves are held only within a factor of two.
SHORT = [
    (2, 0.5, (37, 48, 57)),
    (2, 0.9, (861, 1012, 1096)),
    (2, 2, (2191, 3678, 5266)),
    (1.5, 0.9, (1061, 1172, 1382)),
    (1.1, 0.5, (330, 437, 454)),
]
EXACT = [
    (2, 0.5, (40, 46, 61)),
    (2, 0.9, (238, 326, 464)),
    (2, 2, (369, 559, 784)),
    (1.5, 0.9, (691, 923, 1077)),
    (1.5, 2, (1040, 1577, 2237)),
    (1.1, 0.5, (327, 396, 464)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "p", "rho", "measured"), [("short", *row) for row in SHORT] + [("exact", *row) for row in EXACT]
)
def test_short_and_exact_steps_converge_linearly_away_from_the_exact_radius(problem, rule, p, rho, measured):
    step = ShortStep(problem.form.smoothness()) if rule == "short" else ExactLineSearch()
    # The middle one of three radii next to each other: rounding moves single counts.
    curves = [problem.curve(FrankWolfe(step), p, share * rho, 2 * measured[-1]) for share in (0.999, 1.0, 1.001)]
    middle = {level: sorted(curve.first(level) for curve in curves)[1] for level in (1e-6, 1e-10)}
    assert measured[-1] / 2 <= middle[1e-10] <= 2 * measured[-1]
    assert middle[1e-10] <= 4 * middle[1e-6]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "measured"), [("short", -2.53), ("exact", -3.01)])
def test_at_the_exact_radius_no_step_rule_is_linear(problem, rule, measured):
    """l_2, rho = 1, [1e3, 1e4]: a power, where Primal Averaging has -4.09."""
    step = ShortStep(problem.form.smoothness()) if rule == "short" else ExactLineSearch()
    curve = problem.curve(FrankWolfe(step), 2, 1, 10_000)
    assert curve.slope(1e3, 1e4) == pytest.approx(measured, abs=0.5)
    assert curve.errors[-1] >= 1e-9


@pytest.mark.parametrize("rule", ["short", "exact"])
def test_linear_convergence_in_miniature(small, rule):
    """l_2, rho = 2, iterations to 1e-6 / 1e-8 / 1e-10: 108/156/206 short, 39/53/60 exact."""
    step = ShortStep(small.form.smoothness()) if rule == "short" else ExactLineSearch()
    curve = small.curve(FrankWolfe(step), 2, 2, 300)
    assert curve.first(1e-10) <= 3 * curve.first(1e-6)
    # Exact and short steps descend, up to the rounding of the error itself.
    assert np.diff(curve.errors).max() <= 1e-15


def test_fixed_steps_in_miniature(small):
    """l_1.5, rho = 0.9: -1.63 on [10, 1e2], -2.02 on [1e2, 1e3]."""
    curve = small.curve(FrankWolfe(OpenLoop()), 1.5, 0.9, 1_000)
    assert -1.8 <= curve.slope(10, 1e2) <= -1.3
    assert -2.1 <= curve.slope(1e2, 1e3) <= -1.9
