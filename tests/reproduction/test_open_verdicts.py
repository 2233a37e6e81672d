"""Verdicts near a threshold, and of what was not measured: neither decides anything."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import CASES, OUR_PROJECTION, counts, dear, equal, share, slopes, steps, times
from judged import CLAIMS, RHO, ended, table, verdict_of

from reproduction import Verdict
from reproduction.counting import FWLS, FWPLR, OPTION_B, PA
from reproduction.judging import UNMEASURED, judge_factor
from reproduction.projection_rules import LIBRARY
from reproduction.stochastic import SGD, SPA
from reproduction.words import span, spread


@pytest.mark.parametrize(
    ("pa", "verdict"), [(0.9, Verdict.HOLDS), (1.29, Verdict.HOLDS), (1.35, Verdict.OPEN), (1.5, Verdict.FAILS)]
)
def test_a_step_just_outside_the_claimed_range_decides_nothing(pa, verdict):
    assert verdict_of("iteration-time", "pa-fwplr", steps({PA: pa, FWPLR: 1.0})) is verdict


@pytest.mark.parametrize(
    ("slope", "verdict"),
    [(-1.93, Verdict.HOLDS), (-1.89, Verdict.OPEN), (-1.8, Verdict.FAILS), (math.nan, Verdict.OPEN)],
)
def test_the_rate_of_the_search_has_the_same_margin(slope, verdict):
    assert verdict_of("rates", "fwls-rate", slopes(slope, problem="least squares", solver=FWLS)) is verdict


def test_a_setting_at_which_nothing_converged_is_open_and_named():
    rows = counts({PA: 10, FWPLR: 40}) + ended(counts({PA: 10, FWPLR: 40}, 0.9), PA) + equal
    for key, what in (("regression-fwplr", f"no factor at {RHO} = 0.9"), ("fewer", f"nothing measured at {RHO} = 0.9")):
        found = CLAIMS["variants", key].judge(table(rows))
        assert found.verdict is Verdict.CHOICE
        assert what in found.ours


def test_neither_stochastic_method_converged():
    rows = [{**row, "measure": "time at least"} for row in times({SGD: 1.0, SPA: 5.0}, 2.0)]
    found = CLAIMS["stochastic", "l2"].judge(table(rows))
    assert found.verdict is Verdict.OPEN
    assert f"no factor at {RHO} = 0.3, constant step" in found.ours
    assert verdict_of("stochastic", "sides", rows) is Verdict.OPEN


def test_a_run_that_did_not_end_says_little_about_the_radius():
    rows = counts({PA: 10}) + ended(counts({PA: 20}, 0.9), PA)
    assert verdict_of("variants", "alpha", rows) is Verdict.OPEN


@pytest.mark.parametrize(("which", "verdict"), [("regression", Verdict.HOLDS), ("completion", Verdict.OPEN)])
def test_a_lower_bound_decides_in_one_direction(which, verdict):
    both = {
        "regression": counts({PA: 10, FWPLR: 40}),
        "completion": counts({PA: 10, FWPLR: 20}, note="2 % of f*", problem="completion"),
    }
    both[which] = ended(both[which], FWPLR)
    assert verdict_of("variants", "drastic", both["regression"] + both["completion"]) is verdict


def test_a_ball_without_the_papers_projection_is_open():
    """As where no general-purpose solver is installed: the l_1.5 ball has our projection only."""
    for key in ("costly", "larger", "falling"):
        rows = CASES["projection-share", key][0]
        assert verdict_of("projection-share", key, rows) is Verdict.HOLDS
        more = [row for row in rows if row["set"] != "l₁.₅"] + share("l₁.₅", 0.9, kind=OUR_PROJECTION)
        found = CLAIMS["projection-share", key].judge(table(more))
        assert found.verdict is Verdict.CHOICE
        assert "not measured in the paper's way" in found.reason


@pytest.mark.parametrize(("value", "verdict"), [(0.56, Verdict.HOLDS), (0.48, Verdict.OPEN), (0.44, Verdict.FAILS)])
def test_a_share_near_one_half_is_neither_costly_nor_cheap(value, verdict):
    assert verdict_of("projection-share", "costly", share("Schatten-1", value)) is verdict


def test_shares_on_both_sides_of_the_range_leave_it_open():
    place = {"method": "SGD", "size": "one row"}
    both = share("l∞", 0.85, **place) + share("l∞", 0.14, kind=LIBRARY, **place)
    found = CLAIMS["projection-share", "SGD-l∞"].judge(table(both))
    assert found.verdict is Verdict.OPEN
    assert "not measured for a step of a cost between the two, with which the share falls" in found.reason
    above = share("l∞", 0.85, **place) + share("l∞", 0.75, kind=LIBRARY, **place)
    assert verdict_of("projection-share", "SGD-l∞", above) is Verdict.FAILS


def test_many_ratios_are_summed_up():
    rows = [{"problem": "lemma 1", "variant": f"l{k}", "measure": "ratio", "value": k / 10} for k in range(9)]
    found = CLAIMS["theory", "lemma-1"].judge(table(rows))
    assert found.ours == "at most 0.80 over 9 settings"


def test_a_projection_at_every_step_and_only_outside_the_ball_are_two_readings():
    rows = dear(0.01, 30)
    place = {"p": 1.1, "rho": 0.3, "n": 515_345, "variant": "constant step"}
    rows.append({"measure": "iterations", "solver": SGD, "value": 300.0, **place})
    found = CLAIMS["stochastic", "l1.1"].judge(table(rows))
    assert found.verdict is Verdict.CHOICE
    assert f"30.1 at {RHO} = 0.3, constant step, a call at every step" in found.ours
    assert f"3.1 at {RHO} = 0.3, constant step, a call outside the ball" in found.ours
    rows[-1]["value"] = 40.0
    assert verdict_of("stochastic", "l1.1", rows) is Verdict.FAILS


@pytest.mark.parametrize(("iterations", "clear"), [(20, False), (22, False), (24, True)])
def test_the_end_of_a_range_has_a_margin_too(iterations, clear):
    rows = counts({PA: 10, FWPLR: iterations, FWLS: 160}) + equal
    found = CLAIMS["variants", "range-fw"].judge(table(rows))
    assert ("not reached clearly here for 2.8\N{MULTIPLICATION SIGN} over FWPLR" in found.reason) is not clear


def test_the_end_of_a_range_where_nothing_converged_is_open():
    rows = ended(counts({PA: 10, FWPLR: 40, FWLS: 160}), PA) + equal
    found = CLAIMS["variants", "range-fw"].judge(table(rows))
    assert found.verdict is Verdict.OPEN
    assert "2.8\N{MULTIPLICATION SIGN} over FWPLR: nothing measured" in found.ours


def test_completion_is_judged_in_both_readings_of_the_search():
    place = {"note": "2 % of f*", "problem": "completion"}
    rows = counts({PA: 10, FWLS: 20, OPTION_B: 150}, **place) + steps(
        {name: 1.0 for name in (PA, FWLS, OPTION_B)}, problem="completion"
    )
    found = CLAIMS["variants", "completion-fwls"].judge(table(rows))
    assert found.verdict is Verdict.CHOICE
    assert found.ours == f"option B as printed: 15.0 at {RHO} = 0.5; search of Section 2: 2.0 at {RHO} = 0.5"


def test_a_race_that_nobody_finished_is_open():
    rows = [{**row, "measure": "time at least"} for row in CASES["beyond", "auto"][0]]
    assert verdict_of("beyond", "auto", rows) is Verdict.OPEN


def test_an_accuracy_that_f_itself_does_not_reach_is_open():
    rows = [{**row, "value": 1.0} if row["solver"] == "f itself" else row for row in CASES["perturbation", "gain"][0]]
    assert verdict_of("perturbation", "gain", rows) is Verdict.OPEN


def test_words():
    assert UNMEASURED.verdict is Verdict.OPEN
    assert span([1.0, 2.0]) == "1.00 to 2.00"
    assert spread([1.0, 3.0]) == "2.00 ± 1.41"


@pytest.mark.parametrize(("factor", "said"), [(5000.0, True), (9.0, False)])
def test_a_factor_far_above_the_claimed_one_is_told(factor, said):
    rows = [{"measure": "factor", "rho": rho, "value": factor} for rho in (0.3, 0.9)]
    found = judge_factor(table(rows), 4.6, "rho", str)
    assert found.verdict is Verdict.HOLDS
    assert ("everywhere more than 10 times the claimed factor itself" in found.reason) is said


def test_the_proof_of_lemma_one_names_the_step_that_loses_the_factor():
    """The distance of two directions reaches 2|p - q|/(|p| + |q|), so the factor is lost in that step."""
    rows = [{"problem": "lemma 1", "variant": "l₂", "measure": "ratio", "value": 2.0}]
    found = CLAIMS["theory", "lemma-1"].judge(table(rows))
    assert found.verdict is Verdict.FAILS
    assert "the distance of the two directions is at most 2‖p" in found.reason
    rng = np.random.default_rng(0)
    ratios = []
    for scale in np.geomspace(1e-2, 1e2, 200):
        p, q = rng.standard_normal((2, 5)) * [[1.0], [scale]]
        a, b = np.linalg.norm(p), np.linalg.norm(q)
        ratios.append(np.linalg.norm(p / a - q / b) * (a + b) / np.linalg.norm(p - q))
    assert 1.9 < max(ratios) <= 2 + 1e-12
