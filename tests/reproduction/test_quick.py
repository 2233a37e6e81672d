"""The whole quick run: no task fails, no rule fails, and what the size of the data decides is left open."""

from __future__ import annotations

import pytest
from judged import without_figure
from tiny_run import FACTS

from reproduction import EXPERIMENTS, Origin, Verdict
from reproduction.base import AGAINST
from reproduction.implementations import general_available
from reproduction.report import build
from reproduction.report.build import judged_report
from reproduction.runner import run
from reproduction.store import Store

#: Statements that no number of rows changes.
SETTLED = {
    ("variants", "fewer"): Verdict.HOLDS,
    ("variants", "completion-fwplr"): Verdict.UNDEFINED,
    ("projection-share", "vectorised"): Verdict.FAILS,
    ("quasi-convex", "perceptron"): Verdict.UNDEFINED,
    ("stochastic-rate", "sample"): Verdict.OPEN,
    ("theory", "lemma-1"): Verdict.FAILS,
    ("theory", "lemma-2"): Verdict.FAILS,
    ("beyond", "certificates"): Verdict.HOLDS,
}


@pytest.mark.slow
def test_the_whole_quick_run(tmp_path):
    assert run(EXPERIMENTS, "quick", Store(tmp_path, FACTS)) == []
    found = build(EXPERIMENTS, tmp_path, "python -m reproduction --quick", figures=False)
    assert not [one.finding.reason for one in found if "the rule failed" in one.finding.reason]
    if general_available():
        assert not [one.claim.text for one in found if one.finding.ours == "nothing measured"]
    assert without_figure(judged_report(EXPERIMENTS, tmp_path, "python -m reproduction --quick")) == []
    verdicts = {(one.experiment.name, one.claim.key): one.finding.verdict for one in found}
    assert {key: verdicts[key] for key in SETTLED} == SETTLED
    against = [one for one in found if one.claim.origin is Origin.STATED and one.finding.verdict in AGAINST]
    assert {one.experiment.name for one in against} <= {"projection-share", "theory"}  # proofs, which need no size
