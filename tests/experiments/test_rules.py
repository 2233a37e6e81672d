"""Verdicts follow from the numbers: the same rule gives each verdict when fed with numbers that deserve it."""

from __future__ import annotations

import pandas as pd
import pytest

from projfree.experiments import EXPERIMENTS, Verdict
from projfree.experiments.judging import NOTHING, judge_factor, ratios, span, spread
from projfree.experiments.store import COLUMNS

BY_NAME = {(e.name, c.key): c for e in EXPERIMENTS for c in e.claims}


def table(rows):
    return pd.DataFrame([{**dict.fromkeys(COLUMNS), "stand_in": False, **row} for row in rows], columns=list(COLUMNS))


def times(pa, other, other_measure="time", name="FWPLR", rho=0.5):
    place = {"problem": "regression", "rho": rho}
    return [
        {**place, "solver": "PA", "measure": "time", "value": pa},
        {**place, "solver": name, "measure": other_measure, "value": other},
    ]


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (times(1.0, 4.0), Verdict.HOLDS),
        (times(1.0, 2.0), Verdict.FAILS),
        (times(1.0, 4.0) + times(1.0, 1.0, rho=2.0), Verdict.PARTLY),
        (times(1.0, 2.0, "time at least"), Verdict.UNMEASURED),
        (times(1.0, 9.0, "time at least"), Verdict.HOLDS),
        ([], Verdict.UNMEASURED),
    ],
)
def test_factors(rows, verdict):
    assert BY_NAME["variants", "regression-fwplr"].judge(table(rows)).verdict is verdict


def test_a_fast_method_that_was_cut_off_gives_no_ratio():
    rows = times(1.0, 4.0)
    rows[0]["measure"] = "time at least"
    assert ratios(table(rows), "PA", "FWPLR", "time") == {}


def test_lower_bounds_are_shown_as_such():
    assert judge_factor({0.5: (9.0, False)}, 3.7).ours == "≥ 9.0 at \u03c1 = 0.5"


def slopes(*values, radius=1.0, window="[10, 100]"):
    return [
        {
            "problem": "logistic",
            "solver": "PA",
            "radius": radius,
            "variant": window,
            "measure": "slope",
            "value": v,
            "seed": k,
        }
        for k, v in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("key", "rows", "verdict"),
    [
        ("logistic-theorem", slopes(-2.0, -1.95), Verdict.HOLDS),
        ("logistic-theorem", slopes(-1.2), Verdict.FAILS),
        ("logistic-theorem", slopes(-2.0) + slopes(-1.0, radius=9.0), Verdict.PARTLY),
        ("logistic-number", slopes(-2.0) + slopes(-2.6, radius=9.0), Verdict.HOLDS),
        ("logistic-number", slopes(-2.0, -2.1), Verdict.FAILS),
        ("logistic-number", [], Verdict.UNMEASURED),
    ],
)
def test_slopes(key, rows, verdict):
    assert BY_NAME["rates", key].judge(table(rows)).verdict is verdict


@pytest.mark.parametrize(("worst", "verdict"), [(0.9, Verdict.HOLDS), (1.1, Verdict.FAILS)])
def test_bound_three(worst, verdict):
    rows = table([{"problem": "bound (3)", "rho": 0.5, "measure": "share", "value": worst}])
    assert BY_NAME["perturbation", "bound-3"].judge(rows).verdict is verdict


@pytest.mark.parametrize(("over", "verdict"), [(0.0, Verdict.HOLDS), (1e-9, Verdict.FAILS)])
def test_a_bound_above_the_minimum_is_noticed(over, verdict):
    rows = table(
        [{"problem": "certificate", "set": "l_2", "solver": "PA", "measure": "bound above minimum", "value": over}]
    )
    assert BY_NAME["beyond", "certificates"].judge(rows).verdict is verdict


@pytest.mark.parametrize("claim", BY_NAME, ids="/".join)
def test_no_rows_no_verdict(claim):
    assert BY_NAME[claim].judge(table([])).verdict is Verdict.UNMEASURED


def test_every_claim_states_its_rule_and_has_a_name_of_its_own():
    for experiment in EXPERIMENTS:
        keys = [claim.key for claim in experiment.claims]
        assert len(keys) == len(set(keys)) > 0
        assert all(claim.rule and claim.text and claim.paper for claim in experiment.claims)
        for mode in ("quick", "full"):
            names = [task.key for task in experiment.tasks(mode)]
            assert len(names) == len(set(names)) > 0


def test_quick_budgets_fit_into_four_minutes():
    assert sum(experiment.budget["quick"] for experiment in EXPERIMENTS) <= 200


def test_words():
    assert NOTHING.verdict is Verdict.UNMEASURED
    assert span([1.0, 2.0]) == "1.00 to 2.00"
    assert spread([1.0, 3.0]) == "2.00 ± 1.41"


def passes(pa, pa_measure, corrective):
    place = {"problem": "least squares", "set": "l_2"}
    return [
        {**place, "solver": "PA", "measure": pa_measure, "value": pa},
        {**place, "solver": "corrective PA", "measure": "passes", "value": corrective},
    ]


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (passes(100.0, "passes", 10.0), Verdict.HOLDS),
        (passes(5.0, "passes", 10.0), Verdict.FAILS),
        (passes(100.0, "passes at least", 10.0), Verdict.HOLDS),
        (passes(5.0, "passes at least", 10.0), Verdict.UNMEASURED),
    ],
)
def test_a_run_that_was_cut_off_early_decides_nothing(rows, verdict):
    assert BY_NAME["beyond", "corrective"].judge(table(rows)).verdict is verdict


def test_a_radius_without_a_slope_is_not_passed_over():
    lost = [{"problem": "logistic", "solver": "PA", "radius": 9.0, "t": 1, "measure": "error", "value": 1.0}]
    found = BY_NAME["rates", "logistic-theorem"].judge(table(slopes(-2.0) + lost))
    assert found.verdict is Verdict.PARTLY
    assert "no slope for r = 9" in found.reason
