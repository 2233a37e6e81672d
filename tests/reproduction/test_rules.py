"""The decision rules: every row counts, and printed numbers have a band on both sides."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction.base import Setting, Verdict
from reproduction.report import rich, typeset
from reproduction.rules import Rule, answer, compare, data_names, factor_rule, judge_all, number, select, slope_rule

NOTHING = pd.DataFrame()


@pytest.mark.parametrize(
    ("rule", "value", "state"),
    [
        (slope_rule(-2.34), -2.34, "within"),
        (slope_rule(-2.34), -2.10, "within"),
        (slope_rule(-2.34), -2.60, "beyond"),
        (slope_rule(-2.34), -2.08, "short"),
        (factor_rule(3.7), 5.5, "within"),
        (factor_rule(3.7), 5.6, "beyond"),
        (factor_rule(3.7), 2.4, "short"),
        (Rule(1.2, 1.3, more=False, digits=1), 1.0, "beyond"),
        (Rule(1.2, 1.3, more=False, digits=1), 1.33, "within"),
        (Rule(1.2, 1.3, more=False, digits=1), 1.36, "short"),
        (Rule(69, 99, digits=0), 99.4, "within"),
        (Rule(69, 99, digits=0), 99.6, "beyond"),
        (Rule(0, 7, more=False, digits=0), 7.4, "within"),
        (Rule(0, 7, more=False, digits=0), 7.6, "short"),
        (factor_rule(3.7), math.nan, "open"),
    ],
)
def test_a_band_has_two_sides(rule: Rule, value: float, state: str) -> None:
    assert rule.state(value) == state


def test_a_bound_decides_only_beyond_its_side() -> None:
    rule = factor_rule(10.0)
    assert rule.state(16.0, "at least") == "beyond"
    assert rule.state(10.0, "at least") == rule.state(1.0, "at least") == "open"
    assert rule.state(5.0, "at most") == "short"
    assert rule.state(10.0, "at most") == "open"


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_band_of_a_factor_is_the_same_up_and_down(paper: float, value: float) -> None:
    state, inverse = factor_rule(paper).state(value), factor_rule(1 / paper).state(1 / value)
    if min(abs(value / paper - 1.5), abs(paper / value - 1.5)) > 1e-6:
        assert inverse == {"within": "within", "beyond": "short", "short": "beyond"}[state]


def settings(*states: str) -> list[Setting]:
    return [Setting(f"place {k}", float(k), state) for k, state in enumerate(states)]


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        (("within", "within"), Verdict.REPRODUCED),
        (("within", "beyond"), Verdict.EXCEEDED),
        (("within", "short"), Verdict.CHOICE),
        (("beyond", "short"), Verdict.CHOICE),
        (("short", "short"), Verdict.NOT_REPRODUCED),
        (("within", "open"), Verdict.REPRODUCED),
        (("open",), Verdict.OPEN),
        ((), Verdict.OPEN),
    ],
)
def test_one_short_row_takes_a_printed_number_out_of_reproduced(states: tuple[str, ...], verdict: Verdict) -> None:
    finding = compare(settings(*states), NOTHING)
    assert finding.verdict is verdict
    assert verdict is Verdict.OPEN or all(s.name in finding.reason for s in finding.settings)


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        (("yes", "yes"), Verdict.HOLDS),
        (("yes", "no"), Verdict.SOME),
        (("no", "no"), Verdict.FAILS),
        (("no", "open"), Verdict.FAILS),
        (("yes", "open"), Verdict.OPEN),
        ((), Verdict.OPEN),
    ],
)
def test_a_statement_holds_only_if_it_does_at_every_row(states: tuple[str, ...], verdict: Verdict) -> None:
    assert judge_all(settings(*states), NOTHING).verdict is verdict


def test_many_settings_are_counted_and_few_are_named() -> None:
    finding = judge_all(settings(*["yes"] * 5, "no"), NOTHING, "so", "not so")
    assert finding.reason == "so at 5 of 6 settings; not so at place 5"
    assert finding.ours == "0 to 5.00 over 6 settings"


def test_starts_are_taken_together_by_their_median_and_range() -> None:
    setting = slope_rule(-2.0).at("here", [-1.0, -2.1, -9.0, math.nan])
    assert (setting.value, setting.low, setting.high, setting.state) == (-2.1, -9.0, -1.0, "within")
    assert slope_rule(-2.0).at("here", [math.nan]).state == "open"


def test_none_is_open() -> None:
    assert [answer("", 1.0, holds).state for holds in (True, False, None)] == ["yes", "no", "open"]


def test_select_takes_lists_and_missing_columns() -> None:
    table = pd.DataFrame({"a": [1, 2, 3], "value": [1.0, 2.0, 3.0]})
    assert list(select(table, a=[1, 3])["value"]) == [1.0, 3.0]
    assert len(select(table, b=1)) == 0


def test_stand_ins_are_named() -> None:
    table = pd.DataFrame({"data": ["Adult", "like M"], "stand_in": [False, True]})
    assert data_names(table) == "real: Adult; stand-in: like M"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-2.345, "−2.35"), (12.34, "12.3"), (1234.5, "1,234"), (1.2e-7, "1.2·10⁻⁷"), (math.nan, "–")],
)
def test_numbers_are_written_as_in_print(value: float, text: str) -> None:
    assert number(value) == text


def test_typesetting_makes_minus_signs_and_dashes() -> None:
    assert typeset("1.2-1.3 at -2, f - f*, t^-1/3, Schatten-2") == "1.2–1.3 at −2, f − f*, t^−1/3, Schatten-2"
    assert rich("w_t < t^-1/3 & ‖C_i‖_z") == "w<sub>t</sub> &lt; t<sup>−1/3</sup> &amp; ‖C<sub>i</sub>‖<sub>z</sub>"
