"""Making the report: the page, the figures and the summary, from the table alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from projfree.experiments.base import Experiment
from projfree.experiments.report import markdown, page, static
from projfree.experiments.report.findings import Judged, drawn, judged
from projfree.experiments.store import FILE, read_store


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
    table, facts = read_store(folder / FILE)
    there = set(table["experiment"])
    kept = [experiment for experiment in experiments if experiment.name in there]
    stand_ins = sorted(set(table.loc[table["stand_in"], "data"]))
    facts = {**facts, "stand_in": "; ".join(stand_ins)}
    found = list(judged(kept, table))
    panels = {experiment.name: drawn(experiment, table) for experiment in kept}
    if figures:
        for name, some in panels.items():
            if show is not None:
                show(f"figures of {name}")
            for panel in some:
                list(static.save(panel, folder / "figures", f"{name}-{panel.key}"))
    if show is not None:
        show("page")
    text = page.page(kept, found, panels, facts, command, figures=figures)
    (folder / "report.html").write_text(text, encoding="utf-8")
    (folder / "summary.md").write_text(markdown.summary(kept, found, facts, command), encoding="utf-8")
    return found
