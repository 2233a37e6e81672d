"""The findings of a run: every claim judged by its rule from the rows of its experiment."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reproduction.base import Claim, Experiment, Finding, Origin, Panel, Verdict
from reproduction.words import NOTHING

#: What stands before a verdict, so that colour is not all that tells them apart.
SYMBOLS = {
    Verdict.HOLDS: "✓",
    Verdict.CHOICE: "◐",
    Verdict.ATTAINABLE: "✓",
    Verdict.FAILS: "✗",
    Verdict.UNATTAINED: "✗",
    Verdict.OPEN: "?",
    Verdict.UNDEFINED: "∅",
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


def rows_of(experiment: Experiment, table: Any) -> Any:
    """The rows of an experiment and of those that it reads."""
    return table[table["experiment"].isin([experiment.name, *experiment.reads])]


def judged(experiments: Sequence[Experiment], table: Any) -> Iterator[Judged]:
    """All claims of the experiments that have rows; a rule that fails says so instead of hiding its claim."""
    for experiment in experiments:
        rows = rows_of(experiment, table)
        for claim in experiment.claims:
            try:
                finding = claim.judge(rows)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1].name
                finding = Finding(Verdict.OPEN, NOTHING, f"the rule failed in {where}: {error}")
            yield Judged(experiment, claim, finding)


def drawn(experiment: Experiment, table: Any) -> list[Panel]:
    """The panels of an experiment that have something to show."""
    rows = rows_of(experiment, table)
    panels = experiment.panels(rows) if len(rows) else []
    return [p for p in panels if p is not None and (p.grid is not None or any(len(s.y) for s in p.series))]


def counts(found: Sequence[Judged]) -> dict[Verdict, int]:
    """How often each verdict was given."""
    return {verdict: sum(one.finding.verdict is verdict for one in found) for verdict in Verdict}


def of_origin(found: Sequence[Judged], origin: Origin) -> list[Judged]:
    """The claims that the paper states, that it implies, or that we add."""
    return [one for one in found if one.claim.origin is origin]
