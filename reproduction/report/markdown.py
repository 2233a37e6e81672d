"""The summary as Markdown, for a repository or a note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduction.base import Experiment, Origin, Panel, Verdict
from reproduction.report import preface
from reproduction.report.findings import SYMBOLS, Judged, counts
from reproduction.report.marks import HEADING
from reproduction.report.static import file_stem


def summary(
    experiments: Sequence[Experiment],
    found: Sequence[Judged],
    facts: dict[str, str],
    command: str,
    panels: Mapping[str, Sequence[Panel]],
) -> str:
    """In words, then the tallies, then one table for each experiment and the figures that were written as files."""
    lines = [HEADING, "", " ".join(preface.opening(found, facts["mode"])), ""]
    for title, some in (
        ("What most readers look for:", preface.headlines(found)),
        ("What does not hold or is not defined:", preface.against(found)),
    ):
        lines += [title, "", *map(_sentence, some), ""] if some else []
    lines += ["In all:", "", *(f"* {line}" for origin in Origin if (line := preface.tally(found, origin)))]
    lines += [
        "",
        f"`{command}` on {preface.days(facts)}: {facts['processor']}, {preface.cores(facts)}; projfree "
        f"{facts['projfree']}{preface.commits(facts)}, NumPy {facts['numpy']}, Python {facts['python']}. "
        f"{preface.circumstances(facts)}",
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
        lines += ["", f"How: {experiment.method}", "", "The rules:", ""]
        lines += _rules([one for one in found if one.experiment is experiment])
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
    """A claim of the first minute in a line of a list."""
    verdict = f"{SYMBOLS[one.finding.verdict]} **{one.finding.verdict.value}**"
    said = preface.in_short(one)
    return f"* {verdict}: {one.claim.text}. {one.claim.where}; {said}{'' if said.endswith('…') else '.'}"


def _rules(found: Sequence[Judged]) -> list[str]:
    """Each rule once, with the claims that it judges, and below it the numbers that the table has no room for."""
    claims: dict[str, list[str]] = {}
    for one in found:
        rule = one.claim.rule + ("; measured with a clock" if one.claim.timed else "")
        claims.setdefault(rule, []).append(_stressed(one.claim.text))
    lines = [f"* {'; '.join(texts)}: {rule}." for rule, texts in claims.items()]
    numbers = [f"* {_stressed(one.claim.text)}: {one.finding.numbers}." for one in found if one.finding.numbers]
    folded = ["", "<details><summary>All numbers</summary>", "", *numbers, "", "</details>"]
    return [*lines, *(folded if numbers else [])]


def _stressed(text: str) -> str:
    """A text in italics, whose own asterisks stay."""
    return f"*{text.replace('*', chr(92) + '*')}*"


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
