"""Verdicts follow from the numbers: each rule is fed with numbers that deserve a yes, and with numbers that do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import CASES, counts, dear, equal, growing, slopes, steps
from judged import ALPHA, CLAIMS, MINUS, RHO, ended, table, verdict_of

from projfree.sets import LpBall
from reproduction import EXPERIMENTS, Origin, Verdict
from reproduction.base import AGAINST, FOR
from reproduction.counting import FWLS, FWPLR, OPTION_B, PA
from reproduction.definition import SigmoidMean, minimiser
from reproduction.gradient_descent import named
from reproduction.implementations import GD
from reproduction.iteration_time import ACCELERATED
from reproduction.judging import at_most, decided, judge_factor, sized
from reproduction.rates import EXPERIMENT as RATES
from reproduction.stochastic import EXPERIMENT as STOCHASTIC
from reproduction.stochastic import SGD, SPA, rows_read
from reproduction.theory.constants import _multiplier

SECTIONS = (
    "Section",
    "Appendix",
    "Theorem",
    "Lemma",
    "Equation",
    "Figure",
    "Table",
    "proof",
    "after",
    "source",
    "not in",
)


def test_every_claim_has_its_two_tables():
    assert set(CASES) == set(CLAIMS)


@pytest.mark.parametrize("claim", CASES, ids="/".join)
def test_the_table_that_must_hold(claim):
    found = CLAIMS[claim].judge(table(CASES[claim][0]))
    assert found.verdict in FOR, found


@pytest.mark.parametrize("claim", CASES, ids="/".join)
def test_the_table_that_must_not(claim):
    found, verdict = CLAIMS[claim].judge(table(CASES[claim][1])), CASES[claim][2]
    assert found.verdict in ((verdict,) if verdict else AGAINST), found


@pytest.mark.parametrize("claim", CLAIMS, ids="/".join)
def test_no_rows_no_verdict(claim):
    found = CLAIMS[claim].judge(table([]))
    assert found.verdict is Verdict.OPEN
    assert found.ours == "nothing measured"


def test_every_claim_states_its_rule_and_its_place():
    for experiment in EXPERIMENTS:
        keys = [claim.key for claim in experiment.claims]
        assert len(keys) == len(set(keys)) > 0
        for claim in experiment.claims:
            assert claim.rule
            assert claim.paper
            assert claim.where.startswith(SECTIONS), claim.where
        for mode in ("quick", "full"):
            names = [task.key for task in experiment.tasks(mode)]
            assert len(names) == len(set(names)) > 0


def test_an_experiment_stands_after_those_that_it_reads():
    names = [experiment.name for experiment in EXPERIMENTS]
    for experiment in EXPERIMENTS:
        assert all(names.index(read) < names.index(experiment.name) for read in experiment.reads)


# ------------------------------------------------------------------ what the rules share


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        ({"a": True, "b": True}, Verdict.HOLDS),
        ({"a": True, "b": False}, Verdict.CHOICE),
        ({"a": True, "b": None}, Verdict.CHOICE),
        ({"a": False, "b": None}, Verdict.OPEN),
        ({"a": None}, Verdict.OPEN),
        ({"a": False}, Verdict.FAILS),
        ({}, Verdict.OPEN),
    ],
)
def test_settings(states, verdict):
    assert decided(states, list(states), "yes", "no").verdict is verdict


def test_many_settings_are_counted_in_the_sentence_and_listed_in_the_numbers():
    found = decided({f"s{k}": k < 3 for k in range(9)}, [f"n{k}" for k in range(9)], "yes", "no")
    assert found.ours == "as claimed at 3 of 9 settings"
    assert found.reason == "yes for s0, s1 and s2; no at 6 of 9 settings"
    assert "n8. In short: yes: s0, s1 and s2; no: s3" in found.numbers


@pytest.mark.parametrize(
    ("value", "state"), [(-1.93, True), (-1.91, None), (-1.89, None), (-1.87, False), (math.nan, None)]
)
def test_a_slope_near_its_level_decides_nothing(value, state):
    assert at_most(value, -1.9) is state


def judged_rate(rows):
    return CLAIMS["rates", "logistic-theorem"].judge(table(rows))


LOGISTIC = {"problem": "logistic", "solver": PA}


def test_a_slope_that_still_steepens_decides_nothing():
    early = slopes(-1.2, **LOGISTIC)
    late = [{**row, "variant": "[30, 300]", "value": -1.5} for row in early]
    assert judged_rate(early + late).verdict is Verdict.OPEN
    assert judged_rate(early + [{**row, "value": -1.25} for row in late]).verdict is Verdict.FAILS


def test_a_radius_without_a_slope_is_not_passed_over():
    lost = [{"problem": "logistic", "solver": PA, "radius": 9.0, "t": 1, "measure": "error", "value": 1.0}]
    found = judged_rate(slopes(-2.0, **LOGISTIC) + lost)
    assert found.verdict is Verdict.CHOICE
    assert "r = 9" in found.reason
    assert judged_rate(lost).verdict is Verdict.OPEN


def test_a_single_slope_says_how_near_ours_come():
    rows = slopes(-2.0, -2.3, -2.9, **LOGISTIC)
    found = CLAIMS["rates", "logistic-number"].judge(table(rows))
    assert found.verdict is Verdict.ATTAINABLE
    assert "the nearest is \N{MINUS SIGN}2.30 (r = 1 on [10, 100])" in found.reason
    lost = [{**rows[0], "radius": 9.0, "value": math.nan}]
    assert "no slope for r = 9 on [10, 100]" in CLAIMS["rates", "logistic-number"].judge(table(rows + lost)).numbers


def test_a_slope_between_two_radii_is_not_attained():
    rows = slopes(-2.0, -2.1, **LOGISTIC) + [{**row, "radius": 9.0} for row in slopes(-2.6, -2.7, **LOGISTIC)]
    assert CLAIMS["rates", "logistic-number"].judge(table(rows)).verdict is Verdict.UNATTAINED


def test_a_printed_slope_is_looked_for_on_more_windows_than_the_fitted_ones():
    place = {"problem": "regression", "radius": 2.0, "solver": FWLS, "seed": 0}
    bent = [{**place, "measure": "error", "t": t, "value": 1.0 / (t + t**2)} for t in range(1, 101)]
    rows = [{**place, "measure": "slope", "variant": "[30, 100]", "value": -1.98}]
    assert CLAIMS["non-convex", "number"].judge(table(rows)).verdict is Verdict.UNATTAINED
    found = CLAIMS["non-convex", "number"].judge(table(rows + bent))
    assert found.verdict is Verdict.UNATTAINED  # even from t = 1 the slope is steeper
    assert "on [1, 100]" in found.numbers
    flat = [{**row, "value": 1.0 / (200 + row["t"] ** 2)} for row in bent]
    assert CLAIMS["non-convex", "number"].judge(table(rows + flat)).verdict is Verdict.ATTAINABLE


def completion_runs():
    """One run of four is steep on the first data set, and none on the second, at the same radius."""
    place = {"problem": "completion", "p": 2.0, "solver": PA, "measure": "slope", "radius": 12_000.0, "n": 100_000}
    return [
        {**place, "data": data, "variant": window, "seed": seed, "value": value}
        for data, first in (("A", -2.44), ("B", -1.9))
        for window in ("[2, 20]", "[10, 100]")
        for seed, value in enumerate((first if window == "[2, 20]" else -2.0, -1.95, -1.96, -1.97))
    ]


def test_the_verdict_on_a_single_slope_counts_the_places_that_its_map_counts():
    rows = completion_runs()
    found = CLAIMS["rates", "completion-number"].judge(table(rows))
    assert found.verdict is Verdict.ATTAINABLE
    assert f"of single runs the nearest is {MINUS}2.44 (r = 12,000 on [2, 20], A)" in found.reason
    said = f"at most {MINUS}2.41 at 1 of 4 places (settings and windows), the median over runs at 0"
    assert said in found.reason
    large = [{"problem": "logistic", "n": 20_000}]  # maps are drawn in full runs only
    drawn = {panel.key: panel for panel in RATES.panels(table(rows + large)) if panel}
    assert "the median over starts" in drawn["map-completion"].title
    assert drawn["map-completion"].alt.endswith("0 of 4 places.")


def test_a_slope_between_two_data_sets_is_not_attained():
    rows = [{**row, "value": -2.6 if row["data"] == "A" else -2.0} for row in completion_runs()]
    assert CLAIMS["rates", "completion-number"].judge(table(rows)).verdict is Verdict.UNATTAINED


def test_many_more_iterations_than_gradient_descent_are_told_for_each_form_of_it():
    rows = counts({FWPLR: 40, ACCELERATED: 10, GD: 25, named(0.1): 200})
    found = CLAIMS["gradient-descent", "frank-wolfe"].judge(table(rows))
    assert found.verdict is Verdict.CHOICE
    assert found.ours.startswith(f"4.0 (accelerated GD, {RHO} = 0.5, standardised); 1.6 (GD, ")
    assert "more iterations than gradient descent at 2 of 3" in found.reason
    lower = ended(counts({FWPLR: 40, ACCELERATED: 30}), FWPLR)
    assert verdict_of("gradient-descent", "frank-wolfe", lower) is Verdict.OPEN


def test_an_error_that_grows_faster_than_its_bound_is_told_in_both_sentences():
    rows = growing(d=1.0, alpha=3.07, delta=0.0)
    share = [{**row, "measure": "share", "value": 0.007} for row in rows]
    of_alpha = f"(1/{ALPHA})^3.07"
    bound = CLAIMS["theory", "constant-alpha"].judge(table(rows + share))
    assert bound.verdict is Verdict.HOLDS
    assert "the bound is never exceeded" in bound.reason
    assert f"the error grows faster, like {of_alpha}" in bound.reason
    growth = CLAIMS["theory", "constant-growth"].judge(table(rows))
    assert f"faster in 1/{ALPHA} ({of_alpha} against (1/{ALPHA})^2)" in growth.reason
    assert "no faster than the bound in d and 1/" in growth.reason


def test_the_gradient_at_the_solution_shrinks_over_the_grid_of_radii():
    """The reason that is given for the faster growth."""
    c, values = np.full(30, 30**-0.5), np.geomspace(1e-2, 1.0, 30)
    norms = [_multiplier(values, c, r) * r for r in (0.1, 0.2, 0.4, 0.8)]
    assert norms == sorted(norms, reverse=True)
    assert norms[0] > 10 * norms[-1]


def factor(values, measure="factor"):
    rows = table([{"rho": 0.5, "measure": measure, "value": v, "seed": k} for k, v in enumerate(values)])
    return judge_factor(rows, 4.0, "rho", lambda rho: f"rho {rho:g}")


@pytest.mark.parametrize(
    ("values", "measure", "verdict"),
    [
        ([4.0, 5.0, 6.0], "factor", Verdict.HOLDS),
        ([2.0, 2.1, 2.2], "factor", Verdict.FAILS),
        ([3.1, 3.1, 3.1], "factor", Verdict.OPEN),  # within a tenth of three quarters of 4
        ([9.0], "factor at least", Verdict.HOLDS),
        ([2.0], "factor at least", Verdict.OPEN),
        ([2.0], "factor at most", Verdict.FAILS),
        ([9.0], "factor at most", Verdict.OPEN),
    ],
)
def test_factors(values, measure, verdict):
    assert factor(values, measure).verdict is verdict


def test_repeats_that_would_have_said_otherwise_are_counted():
    assert factor([2.0, 5.0, 6.0]).ours == "5.0 (2.0 to 6.0; flips in 1 of 3) at rho 0.5"


def test_fewer_rows_than_the_papers_decide_nothing_against_it():
    rows = table([{"n": 7_000, "value": 1.0}])
    found = factor([1.0, 1.0])
    assert found.verdict is Verdict.FAILS
    assert sized(found, rows, 515_345).verdict is Verdict.OPEN
    assert "measured on 7,000 rows, where the paper has 515,345" in sized(found, rows, 515_345).reason
    assert sized(found, rows, 7_000) is found


def _on_slopes(claim):
    """Whether a claim of the paper is judged by slopes alone, on a table whose size matters."""
    slopes = all(row.get("measure") in ("slope", "gap slope") for row in CASES[claim][1])
    return claim[0] in {"rates", "quasi-convex", "non-convex"} and CLAIMS[claim].origin is Origin.STATED and slopes


@pytest.mark.parametrize("claim", [claim for claim in CASES if _on_slopes(claim)], ids="-".join)
def test_a_slope_on_fewer_rows_decides_nothing_against_the_paper(claim):
    """With the rows of a quick run every slope that would speak against a claim leaves it open."""
    problem = {"quasi-convex": "squared sigmoid"}.get(claim[0])
    rows = [{**row, "n": 7_000, **({"problem": problem} if problem else {})} for row in CASES[claim][1]]
    found = CLAIMS[claim].judge(table(rows))
    assert found.verdict is Verdict.OPEN
    assert "measured on 7,000 rows, where the paper has" in found.reason


def test_a_fast_method_that_did_not_converge_gives_no_factor():
    rows = counts({PA: 10, FWPLR: 40})
    rows[0]["measure"] = "iterations at least"
    assert CLAIMS["variants", "regression-fwplr"].judge(table(rows + equal)).verdict is Verdict.OPEN


def test_a_factor_is_taken_apart():
    rows = counts({PA: 10, FWPLR: 40}) + steps({PA: 1.0, FWPLR: 3.0})
    reason = CLAIMS["variants", "regression-fwplr"].judge(table(rows)).reason
    assert "a step of FWPLR costs 3.00 of PA's in the paper's implementation: 1.00 times the reads" in reason


def test_each_reading_of_the_search_has_its_own_numbers():
    rows = counts({PA: 10, FWLS: 20, OPTION_B: 160}) + equal
    found = CLAIMS["variants", "regression-fwls"].judge(table(rows))
    assert found.verdict is Verdict.CHOICE
    shown = (
        f"option B as printed: 16.0 at {RHO} = 0.5, standardised; search of Section 2: 2.0 at {RHO} = 0.5, standardised"
    )
    assert found.ours == shown
    for text in (found.reason, found.numbers):
        assert text.startswith("option B as printed: ")
        assert "; search of Section 2: " in text


def test_completion_with_a_minimum_of_zero_is_not_defined():
    place = {"problem": "completion", "measure": "minimum", "value": 0.0}
    rows = [*counts({PA: 10, FWPLR: 40}, note="2 % of f*", problem="completion"), place]
    found = CLAIMS["variants", "completion-fwplr"].judge(
        table(rows + steps({PA: 1.0, FWPLR: 1.0}, problem="completion"))
    )
    assert found.verdict is Verdict.UNDEFINED
    assert "holds" in found.reason


def test_the_seconds_of_stochastic_methods_are_shared_out_by_rows():
    part = table([{"t": t, "n": 100} for t in (1, 2, 3, 5)])
    assert rows_read(part, 4).tolist() == [1, 17, 98, 298]  # 1 + 16 + 81 + 100 + 100
    assert rows_read(part, 0).tolist() == [1, 2, 3, 5]


def test_figure_8c_shows_both_projections():
    losses = [{"measure": "loss", "t": t, "value": 1.0 / t} for t in (1, 2)]
    place = {"experiment": "stochastic", "p": 1.1, "rho": 0.3, "n": 7000, "data": "rows"}
    rows = [{**row, **place} for row in dear(0.01, 300)] + [
        {**row, **place, "solver": name, "variant": step} for name, step in ((SPA, ""), (SGD, "constant step"))
        for row in losses
    ]  # fmt: skip
    rows.append({**place, "solver": SGD, "variant": "constant step", "measure": "iterations", "value": 300.0})
    (panel,) = STOCHASTIC.panels(table(rows))
    ends = {series.name: series.mark for series in panel.series}
    assert ends["SGD, constant step, fast projection"] == pytest.approx(1e-3)
    assert ends["SGD, constant step, general-purpose projection"] == pytest.approx(0.301)


def test_without_the_general_solver_its_claims_are_open_and_say_what_to_install():
    rows = [row for row in dear(0.01, 300) if row["measure"] != "projection"]
    found = CLAIMS["stochastic", "l1.1"].judge(table(rows))
    assert found.verdict is Verdict.OPEN
    assert "pip install -e '.[reproduce]'" in found.reason


def test_a_definition_for_every_w_is_judged_at_random_points_and_not_at_iterates_alone():
    place = {"measure": "towards the minimum"}
    iterates = [{**place, "variant": "r = 1", "value": 1.0}]
    assert verdict_of("quasi-convex", "definition", iterates) is Verdict.HOLDS
    for share, verdict in ((1.0, Verdict.HOLDS), (0.999, Verdict.CHOICE)):
        at_random = {**place, "variant": "r = 1, random w", "value": share}
        assert verdict_of("quasi-convex", "definition", [*iterates, at_random]) is verdict


def test_the_minimiser_of_the_definition_is_one():
    f, ball = SigmoidMean(), LpBall(2, 1.0)
    star = minimiser(f, ball, 0)
    g = f.gradient(star)
    assert np.linalg.norm(star) <= 1 + 1e-12
    assert float(g @ star) + float(np.linalg.norm(g)) < 1e-11  # the Frank-Wolfe gap
