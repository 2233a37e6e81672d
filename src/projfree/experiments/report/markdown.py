"""The summary as Markdown, for a repository or a note."""

from __future__ import annotations

from collections.abc import Sequence

from projfree.experiments.base import Experiment, Verdict
from projfree.experiments.report.findings import SYMBOLS, Judged, counts


def summary(experiments: Sequence[Experiment], found: Sequence[Judged], facts: dict[str, str], command: str) -> str:
    """Counts, then one table for each experiment."""
    tally = ", ".join(f"{n} {verdict.value}" for verdict, n in counts(found).items() if n)
    lines = [
        "# The paper, reproduced",
        "",
        f"{len(found)} claims: {tally}.",
        "",
        f"`{command}` on {facts['date']}: {facts['processor']}, {facts['cores']} cores; projfree {facts['projfree']}, "
        f"NumPy {facts['numpy']}, Python {facts['python']}.",
    ]
    if facts.get("stand_in"):
        lines += ["", f"**Stand-ins** (generated data, not the real ones): {facts['stand_in']}."]
    for experiment in experiments:
        lines += ["", f"## {experiment.title}", "", f"{experiment.question} ({experiment.paper})", ""]
        lines += ["| claim | paper | ours | verdict | reason |", "|---|---|---|---|---|"]
        lines += [_row(one) for one in found if one.experiment is experiment]
        lines += ["", f"How: {experiment.method}"]
    return "\n".join([*lines, ""])


def _row(one: Judged) -> str:
    cells = (
        one.claim.text,
        one.claim.paper,
        one.finding.ours,
        f"{SYMBOLS[one.finding.verdict]} {one.finding.verdict.value}",
        one.finding.reason,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def one_line(found: Sequence[Judged]) -> str:
    """The counts for a terminal."""
    return ", ".join(f"{SYMBOLS[v]} {n} {v.value}" for v, n in counts(found).items() if n or v is Verdict.HOLDS)
