"""What the command shows: a bar while it measures, and the verdicts in the end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from projfree.cli.output import as_json
from reproduction.base import Origin
from reproduction.report.findings import SYMBOLS, of_origin
from reproduction.report.markdown import one_line


def out() -> Console:
    """The output stream: styled on a terminal, plain and unwrapped in a pipe."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def err() -> Console:
    """The error stream, for progress and sentences."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


class Show:
    """A bar over the tasks with about the time left on an idle machine; plain lines in a pipe."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.live, self.last = quiet, sys.stderr.isatty() and not quiet, ""
        self._bar: Any = None

    def __enter__(self) -> Show:
        if self.live:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("[bold]{task.description}[/]"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[what]}", style="dim"),
                TimeElapsedColumn(),
                console=err(),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("reproduce", total=None, what="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def progress(self, at: Any) -> None:
        """Before a task."""
        left = f"about {max(1, round(at.left / 60))} min left" if at.left > 90 else f"about {at.left:.0f} s left"
        if self.live:
            what = f"{at.task.key}, {left}"
            self._bar.update(self._task, description=at.experiment.name, completed=at.done, total=at.total, what=what)
        elif not self.quiet and at.experiment.name != self.last:
            err().print(f"{at.experiment.name} ({at.done} of {at.total} measurements done, {left})")
        self.last = at.experiment.name

    def note(self, text: str) -> None:
        """Something else is being made."""
        if self.live:
            self._bar.update(self._task, description="report", what=text)


def show_findings(found: Any, folder: Path, seconds: float, json: bool) -> None:
    """The verdicts as a table with the three tallies, or as JSON."""
    if json:
        claims = [
            {
                "experiment": one.experiment.name,
                "key": one.claim.key,
                "claim": one.claim.text,
                "whose": one.claim.origin.value,
                "where": one.claim.where,
                "timed": one.claim.timed,
                "paper": one.claim.paper,
                "ours": one.finding.ours,
                "verdict": one.finding.verdict.value,
                "reason": one.finding.reason,
                "numbers": one.finding.numbers,
            }
            for one in found
        ]
        sys.stdout.write(as_json({"seconds": seconds, "report": str(folder / "report.html"), "claims": claims}) + "\n")
        return
    from rich.table import Table
    from rich.text import Text

    styles = {"✓": "green", "◐": "cyan", "✗": "red", "∅": "magenta", "?": "dim"}
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("claim", "paper", "verdict"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "claim")
    last = None
    for one in found:
        if one.experiment is not last:
            table.add_row(Text(one.experiment.title, style="bold"), "", "")
            last = one.experiment
        symbol = SYMBOLS[one.finding.verdict]
        table.add_row(
            "  " + one.claim.text, one.claim.paper, Text(f"{symbol} {one.finding.verdict.value}", styles[symbol])
        )
    console = out()
    if not console.is_terminal:
        console.width = 140
    console.print(table)
    console.print()
    for origin in Origin:
        if own := of_origin(found, origin):
            console.print(f"What {origin.value}, {len(own)}: {one_line(own)}")
    console.print(
        f"[bold]{folder / 'report.html'}[/]  [dim](also summary.md, figures/, results.parquet; {seconds:.0f} s)[/]"
    )
