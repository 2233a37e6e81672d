"""`projfree reproduce`: the paper's experiments, measured, judged and reported."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from projfree.cli.checkpoints import resume_command
from projfree.cli.output import DONE, INTERRUPTED, SHORT, Debug, Force, Json, Quiet, err, fail, guarded, out, show_json

EPILOG = (
    "Examples:\n\nprojfree reproduce --quick                 # everything, within four minutes\n\n"
    "projfree reproduce rates variants --full --out results\n\n"
    "projfree reproduce --quick --resume        # go on where an interrupted run was\n\n"
    "Experiments: rates, variants, iteration-time, gradient-descent, stochastic, projection-share, quasi-convex, "
    "non-convex, perturbation, beyond."
)


@guarded
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments; all by default.", show_default=False)] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The real sizes (hours), or small ones (minutes).")
    ] = False,
    to: Annotated[Path, typer.Option("--out", help="The folder of results.")] = Path("reproduction"),
    resume: Annotated[bool, typer.Option("--resume", help="Keep what an earlier run in --out has measured.")] = False,
    figures: Annotated[bool, typer.Option(help="Write PNG and SVG files too.")] = True,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure the paper's experiments, judge its claims by stated rules, and write a report."""
    for needed in ("pandas", "plotly", "pyarrow"):
        if find_spec(needed) is None:
            fail(f"reproduce needs {needed}; pip install 'projfree[reproduce]'.")
    from projfree.experiments import EXPERIMENTS, machine
    from projfree.experiments.report import build
    from projfree.experiments.runner import run
    from projfree.experiments.store import Store

    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if unknown := [name for name in names or [] if name not in known]:
        fail(f"there is no experiment {unknown[0]!r}; there are {', '.join(known)}.")
    chosen = [known[name] for name in known if not names or name in names]
    refuse_results(to, resume=resume, force=force)
    mode = "full" if full else "quick"
    facts = {"mode": mode, **machine.facts()}
    store = (Store.resumed if resume else Store)(to, facts)
    begun, show = time.perf_counter(), _Show(json or quiet)
    try:
        with show:
            failures = run(chosen, "full" if full else "quick", store, show.progress)
            show.note("report")
            command = " ".join(["projfree reproduce", *(names or []), f"--{mode}", "--out", str(to)])
            found = build(chosen, to, command, show.note, figures=figures)
    except KeyboardInterrupt:
        where = str(store.path)
        typer.echo(f"Interrupted; what was measured is in {where!r}. Go on with:\n  {resume_command()}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    for failure in failures:
        err().print(f"[bold red]failed:[/] {failure}")
    if json or not quiet:
        _report(found, to, time.perf_counter() - begun, json)
    raise typer.Exit(SHORT if failures else DONE)


def refuse_results(folder: Path, *, resume: bool, force: bool) -> None:
    """Raise where a folder holds something that would be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {str(folder)!r} is a file; choose a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not resume and not force:
        raise ValueError(
            f"--out {str(folder)!r} exists; choose another folder, go on with --resume, or replace its results with "
            "--force."
        )


class _Show:
    """A bar over the tasks with an upper bound on the time left; plain lines in a pipe."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.live, self.last = quiet, sys.stderr.isatty() and not quiet, ""
        self._bar: Any = None

    def __enter__(self) -> _Show:
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
        left = f"at most {max(1, round(at.left / 60))} min left" if at.left > 90 else f"at most {at.left:.0f} s left"
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


def _report(found: Any, folder: Path, seconds: float, json: bool) -> None:
    from projfree.experiments.report.findings import SYMBOLS
    from projfree.experiments.report.markdown import one_line

    if json:
        claims = [
            {
                "experiment": one.experiment.name,
                "claim": one.claim.text,
                "paper": one.claim.paper,
                "ours": one.finding.ours,
                "verdict": one.finding.verdict.value,
                "reason": one.finding.reason,
            }
            for one in found
        ]
        show_json({"seconds": seconds, "report": str(folder / "report.html"), "claims": claims})
        return
    from rich.table import Table
    from rich.text import Text

    styles = {"✓": "green", "◐": "yellow", "✗": "red", "∅": "magenta", "–": "dim"}
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
    console.print(f"\n{len(found)} claims: {one_line(found)}")
    console.print(
        f"[bold]{folder / 'report.html'}[/]  [dim](also summary.md, figures/, results.parquet; {seconds:.0f} s)[/]"
    )
