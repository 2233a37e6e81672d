"""The findings of a run: every claim judged by its rule from the rows of its experiment."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from projfree.experiments.base import Claim, Experiment, Finding, Panel, Verdict

#: What stands before a verdict, so that colour is not all that tells them apart.
SYMBOLS = {
    Verdict.HOLDS: "✓",
    Verdict.PARTLY: "◐",
    Verdict.FAILS: "✗",
    Verdict.UNDEFINED: "∅",
    Verdict.UNMEASURED: "–",
}


@dataclass(frozen=True)
class Judged:
    """One claim with its finding."""

    experiment: Experiment
    claim: Claim
    finding: Finding

    @property
    def anchor(self) -> str:
        """Where the claim stands in the report."""
        return f"{self.experiment.name}--{self.claim.key}"


def judged(experiments: Sequence[Experiment], table: Any) -> Iterator[Judged]:
    """All claims of the experiments that have rows; a rule that fails says so instead of hiding its claim."""
    for experiment in experiments:
        rows = table[table["experiment"] == experiment.name]
        for claim in experiment.claims:
            try:
                finding = claim.judge(rows)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1].name
                finding = Finding(Verdict.UNMEASURED, "-", f"the rule failed in {where}: {error}")
            yield Judged(experiment, claim, finding)


def drawn(experiment: Experiment, table: Any) -> list[Panel]:
    """The panels of an experiment that have something to show."""
    rows = table[table["experiment"] == experiment.name]
    panels = experiment.panels(rows) if len(rows) else []
    return [panel for panel in panels if any(len(series.y) for series in panel.series)]


def counts(found: Sequence[Judged]) -> dict[Verdict, int]:
    """How often each verdict was given."""
    return {verdict: sum(one.finding.verdict is verdict for one in found) for verdict in Verdict}
