"""The summary as Markdown, for a repository or a note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from projfree.experiments.base import Experiment, Origin, Panel, Verdict
from projfree.experiments.report import preface
from projfree.experiments.report.findings import SYMBOLS, Judged, counts
from projfree.experiments.report.marks import HEADING
from projfree.experiments.report.static import file_stem


def summary(
    experiments: Sequence[Experiment],
    found: Sequence[Judged],
    facts: dict[str, str],
    command: str,
    panels: Mapping[str, Sequence[Panel]],
) -> str:
    """In words, then the tallies, then one table for each experiment and the figures that were written as files."""
    commit = f", commit {facts['commit']}" if facts.get("commit") else ""
    lines = [HEADING, "", " ".join(preface.opening(found, facts["mode"])), ""]
    lines += [f"* {_sentence(one)}" for one in preface.headlines(found)]
    lines += ["", *(f"* {line}" for origin in Origin if (line := preface.tally(found, origin)))]
    lines += [
        "",
        f"`{command}` on {facts['date']}: {facts['processor']}, {facts['cores']} cores; projfree {facts['projfree']}"
        f"{commit}, NumPy {facts['numpy']}, Python {facts['python']}. {preface.circumstances(facts)}",
        "",
        f"The paper: {preface.PAPER}",
        "",
        f"This reproduction: {preface.citation(facts)}",
    ]
    if facts.get("stand_in"):
        lines += ["", f"**Stand-ins** (generated data, not the real ones): {facts['stand_in']}."]
    for experiment in experiments:
        lines += ["", f"## {experiment.title}", "", f"{experiment.question} ({experiment.paper})", ""]
        lines += ["| claim | whose | place | paper | ours | verdict | reason |", "|---|---|---|---|---|---|---|"]
        lines += [_row(one) for one in found if one.experiment is experiment]
        lines += ["", f"How: {experiment.method}"]
        for panel in panels.get(experiment.name, ()):
            lines += ["", f"![{_alternative(panel)}](figures/{file_stem(experiment.name, panel)}.svg)"]
            lines += ["", f"{panel.title}.{f' {panel.note}' if panel.note else ''}"]
    lines += [
        "",
        "## Abbreviations",
        "",
        *(f"* **{short}**: {what}" for short, what in preface.ABBREVIATIONS.items()),
    ]
    return "\n".join([*lines, ""])


def _alternative(panel: Panel) -> str:
    """The text alternative without the signs that would end it in Markdown."""
    return (panel.alt or panel.title).replace("[", "(").replace("]", ")")


def _sentence(one: Judged) -> str:
    return f"{one.claim.text} ({one.claim.where}): **{one.finding.verdict.value}**; ours: {one.finding.ours}."


def _row(one: Judged) -> str:
    cells = (
        one.claim.text,
        one.claim.origin.value,
        one.claim.where,
        one.claim.paper,
        one.finding.ours,
        f"{SYMBOLS[one.finding.verdict]} {one.finding.verdict.value}",
        one.finding.reason,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def one_line(found: Sequence[Judged]) -> str:
    """The counts for a terminal."""
    return ", ".join(f"{SYMBOLS[v]} {n} {v.value}" for v, n in counts(found).items() if n or v is Verdict.HOLDS)
