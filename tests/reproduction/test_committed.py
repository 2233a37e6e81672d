"""The full run that the repository holds: complete, and judged by the rules of today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from judged import without_figure

from reproduction import EXPERIMENTS, Origin, Verdict
from reproduction.command import command
from reproduction.counting import FWLS, OPTION_B
from reproduction.non_convex import ON_H, PRINTED_ON_H
from reproduction.report.build import judged_report
from reproduction.report.static import file_stem
from reproduction.runner import key_of, planned
from reproduction.store import DONE, FAILED, FILE, read_store

FOLDER = Path("docs/reproduced")
ROOT = Path(__file__).parents[2]
PLACE = ["experiment", "problem", "data", "radius", "rho"]


@pytest.fixture(scope="module")
def report():
    """The committed table, judged again."""
    return judged_report(EXPERIMENTS, ROOT / FOLDER, command("full", FOLDER))


def test_every_task_of_a_full_run_was_measured():
    table, facts = read_store(ROOT / FOLDER / FILE)
    assert facts["mode"] == "full"
    assert facts["processor"]
    done = table[table["measure"] == DONE]
    assert list(done["task"]) == [key_of(one) for one in planned(EXPERIMENTS, "full")]
    assert not len(table[table["measure"] == FAILED])
    assert (done["note"] != "").all()  # the load of the machine, for the claims about time


def test_option_b_runs_wherever_the_exact_search_does():
    table, _ = read_store(ROOT / FOLDER / FILE)
    for exact, printed in ((FWLS, OPTION_B), (ON_H, PRINTED_ON_H)):
        places = [set(map(tuple, table.loc[table["solver"] == name, PLACE].astype(str).to_numpy().tolist()))
                  for name in (exact, printed)]  # fmt: skip
        assert places[0]
        assert places[0] <= places[1]


def test_the_verdicts_follow_from_the_numbers(report):
    """After a rule has changed: python -m reproduction --report-only --out docs/reproduced."""
    assert (ROOT / FOLDER / "summary.md").read_text(encoding="utf-8") == report.summary()


def test_every_figure_is_there_and_no_other(report):
    wanted = {f"{file_stem(name, panel)}.svg" for name, some in report.panels.items() for panel in some}
    assert {path.name for path in (ROOT / FOLDER / "figures").glob("*.svg")} == wanted


def test_a_claim_that_depends_on_a_choice_has_a_map_of_where_it_holds(report):
    without = {
        (one.experiment.name, one.claim.key)
        for one in report.found
        if one.finding.verdict is Verdict.CHOICE and one.claim.origin is not Origin.OURS
        and not [panel for panel in report.panels[one.experiment.name]
                 if panel.grid is not None and panel.key.startswith(tuple(one.claim.figure.split()))]
    }  # fmt: skip
    assert not without


def test_every_claim_that_was_measured_has_a_figure_with_words(report):
    assert without_figure(report) == []
    assert all(panel.alt for some in report.panels.values() for panel in some)


def test_maps_say_what_the_rules_say(report):
    """A claim that holds at every setting has no cross in its own map, one that holds at none has no tick."""
    panels = {(name, panel.key): panel for name, some in report.panels.items() for panel in some}
    shares = panels["projection-share", "map-gd"].grid
    verdicts = {one.claim.key: one.finding.verdict for one in report.found}
    for ball, states in zip(shares.rows, shares.states, strict=True):
        wanted = {True: Verdict.HOLDS, False: Verdict.FAILS}.get(states[0]) if len(set(states)) == 1 else Verdict.CHOICE
        assert verdicts[f"GD-{ball}"] is wanted
    judged = {one.claim.key: one.finding for one in report.found}
    for name, key, claims in (
        ("stochastic-rate", "map", ("stream", "sample", "stream-h", "squares")),
        ("non-convex", "map-gap", ("gap", "gap-h")),
        ("quasi-convex", "map-below", ("below",)),
    ):
        states = [state for line in panels[name, key].grid.states for state in line]
        said = " ".join(judged[claim].numbers.split("In short: ")[1] for claim in claims)
        named = {True: "yes:", False: "no:", None: "open:"}
        assert {named[state] for state in states} == {word for word in named.values() if word in said}
    bound = panels["non-convex", "map-bound"].grid
    assert [all(column) for column in zip(*bound.states, strict=True)] == [True, True, False]


def test_no_rule_fails(report):
    assert not [one.finding.reason for one in report.found if "the rule failed" in one.finding.reason]


def test_a_claim_about_time_says_how_many_of_five_rounds_flip(report):
    for one in report.found:
        if one.claim.timed:
            assert re.search(r"flips in \d of 5", one.finding.ours + one.finding.numbers), one.claim.text


def test_the_folder_is_small():
    files = [path for kind in ("parquet", "md", "svg") for path in (ROOT / FOLDER).rglob(f"*.{kind}")]
    assert sum(path.stat().st_size for path in files) < 5e6
