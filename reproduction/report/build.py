"""Making the report: the page, the figures and the summary, from the table alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from projfree.persist import atomic_write
from reproduction.base import Experiment, Panel
from reproduction.report import markdown, page, static
from reproduction.report.findings import Judged, drawn, judged
from reproduction.store import DONE, FILE, TIMES, read_store
from reproduction.words import typeset


@dataclass(frozen=True, eq=False)
class JudgedReport:
    """What a report is made of, all of it from one table."""

    experiments: list[Experiment]
    found: list[Judged]
    panels: dict[str, list[Panel]]
    facts: dict[str, str]
    command: str

    def summary(self, *, figures: bool = True) -> str:
        """The summary as Markdown, with links to the files of the figures where there are some."""
        shown = self.panels if figures else {}
        return markdown.summary(self.experiments, self.found, self.facts, self.command, shown)


def judged_report(experiments: Sequence[Experiment], folder: Path, command: str) -> JudgedReport:
    """Judge the table of a folder; experiments without rows are left out."""
    table, facts = read_store(folder / FILE)
    there = set(table["experiment"])
    kept = [experiment for experiment in experiments if experiment.name in there]
    panels = {experiment.name: drawn(experiment, table) for experiment in kept}
    return JudgedReport(kept, list(judged(kept, table)), panels, {**facts, **_circumstances(table)}, command)


def build(
    experiments: Sequence[Experiment],
    folder: Path,
    command: str,
    show: Callable[[str], None] | None = None,
    *,
    figures: bool = True,
) -> list[Judged]:
    """Write ``report.html``, ``summary.md`` and ``figures/`` next to the table; return the findings.

    Parameters
    ----------
    experiments : sequence of Experiment
        Those to report on; the ones without rows are left out.
    folder : path
        Where ``results.parquet`` is.
    command : str
        What repeats the run.
    show : callable, optional
        Told what is being made.
    figures : bool
        Whether PNG and SVG files are written.
    """
    report, tell = judged_report(experiments, folder, command), show or (lambda text: None)
    if figures:
        for name, some in report.panels.items():
            tell(f"figures of {name}")
            for panel in some:
                list(static.save(panel, folder / "figures", static.file_stem(name, panel)))
    tell("page")
    text = page.page(report.experiments, report.found, report.panels, report.facts, command, figures=figures)
    for name, content in (("report.html", text), ("summary.md", report.summary(figures=figures))):
        with atomic_write(folder / name) as path:
            path.write_text(content, encoding="utf-8")
    return report.found


def _circumstances(table: Any) -> dict[str, str]:
    """What the rows tell of the run as a whole: generated data, minutes of measuring, and the load of the machine.

    The load is told apart for the experiments that measure times and for the others.
    """
    done = table[table["measure"] == DONE]
    timed = done["experiment"].isin(set(table.loc[table["measure"].isin(TIMES), "experiment"]))
    return {
        "stand_in": typeset("; ".join(sorted(set(table.loc[table["stand_in"], "data"])))),
        "minutes": f"{done['value'].sum() / 60:.0f}",
        "load": _ends(done.loc[timed, "note"]),
        "load elsewhere": _ends(done.loc[~timed, "note"]),
    }


def _ends(notes: Iterable[str]) -> str:
    """The smallest and the largest load, empty where none was noted."""
    loads = [float(note) for note in notes if note]
    return f"{min(loads):.1f} to {max(loads):.1f}" if loads else ""
