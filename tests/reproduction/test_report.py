"""The whole report on a tiny run."""

from __future__ import annotations

import re

import pytest
from judged import without_figure
from tiny_run import TINY_EXPERIMENTS

from reproduction import Origin
from reproduction.report import build
from reproduction.report.build import judged_report
from reproduction.report.preface import against
from reproduction.store import FILE, read_store

pytestmark = pytest.mark.slow


def test_every_claim_that_was_measured_has_a_figure_in_a_quick_report_too(tiny):
    assert without_figure(judged_report(TINY_EXPERIMENTS, tiny, "python -m reproduction")) == []


def test_the_files_of_a_report(tiny):
    build(TINY_EXPERIMENTS[:1], tiny, "python -m reproduction --quick")
    text = (tiny / "report.html").read_text(encoding="utf-8")
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r'(src|href)="(https?:|//)', markup)
    names = {path.name for path in (tiny / "figures").iterdir()}
    assert {"rates-completion-2.svg", "rates-completion-2.png"} <= names


def test_the_summary_comes_before_any_table(tiny):
    build(TINY_EXPERIMENTS, tiny, "python -m reproduction --quick", figures=False)
    for name, first in (("report.html", "<table"), ("summary.md", "| claim |")):
        text = (tiny / name).read_text(encoding="utf-8")
        assert "statements of the paper" in text[: text.index(first)]
        assert "Rector-Brooks" in text
        assert "FWPLR" in text
    for origin in Origin:
        assert f"What {origin.value}" in (tiny / "report.html").read_text(encoding="utf-8")


def test_the_summary_says_what_fails_and_prints_every_rule(tiny):
    report = judged_report(TINY_EXPERIMENTS, tiny, "python -m reproduction --quick")
    text = report.summary()
    first, rest = text[: text.index("| claim |")], text[text.index("| claim |") :]
    for one in against(report.found):
        assert f"**{one.finding.verdict.value}**: {one.claim.text}" in first
    for one in report.found:
        assert one.claim.rule in rest
        assert one.finding.numbers in rest


def test_links_of_the_page_lead_somewhere(tiny):
    build(TINY_EXPERIMENTS, tiny, "python -m reproduction --quick", figures=False)
    markup = re.sub(r"<script.*?</script>", "", (tiny / "report.html").read_text(encoding="utf-8"), flags=re.S)
    targets = set(re.findall(r'href="#([^"]+)"', markup))
    assert len(targets) > 30
    assert targets <= set(re.findall(r'id="([^"]+)"', markup))


def test_a_figure_on_generated_data_says_so(tiny):
    table, _ = read_store(tiny / FILE)
    for experiment in TINY_EXPERIMENTS:
        for panel in filter(None, experiment.panels(table[table["experiment"] == experiment.name])):
            assert panel.alt
            if panel.key.startswith("completion") and "stand-in" in str(panel.series[0].name):
                assert "stand-in" in panel.note
