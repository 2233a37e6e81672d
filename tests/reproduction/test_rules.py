"""Verdicts follow from the numbers: each rule is fed with numbers that deserve a yes, and with numbers that do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import CASES, counts, equal, slopes
from judged import CLAIMS, table

from projfree.sets import LpBall
from reproduction import EXPERIMENTS, Origin, Verdict
from reproduction.base import AGAINST, FOR
from reproduction.counting import FWPLR, PA
from reproduction.definition import SigmoidMean, minimiser
from reproduction.judging import at_most, decided, judge_factor, sized

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


def test_a_slope_between_two_radii_is_not_attained():
    rows = slopes(-2.0, -2.1, **LOGISTIC) + [{**row, "radius": 9.0} for row in slopes(-2.6, -2.7, **LOGISTIC)]
    assert CLAIMS["rates", "logistic-number"].judge(table(rows)).verdict is Verdict.UNATTAINED


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


def test_the_minimiser_of_the_definition_is_one():
    f, ball = SigmoidMean(), LpBall(2, 1.0)
    star = minimiser(f, ball, 0)
    g = f.gradient(star)
    assert np.linalg.norm(star) <= 1 + 1e-12
    assert float(g @ star) + float(np.linalg.norm(g)) < 1e-11  # the Frank-Wolfe gap
