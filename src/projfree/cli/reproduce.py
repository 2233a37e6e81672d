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
    "Examples:\n\nprojfree reproduce --quick                    # everything, within five minutes\n\n"
    "projfree reproduce rates variants             # measure these anew and merge them into the folder\n\n"
    "projfree reproduce --full --part 1/4 --out full   # then 2/4, 3/4 and 4/4: each within 30 minutes\n\n"
    "projfree reproduce --quick --resume           # go on where an interrupted run was\n\n"
    "Experiments: rates, iteration-time, variants, gradient-descent, stochastic, stochastic-rate, projection-share, "
    "quasi-convex, non-convex, theory, perturbation, beyond."
)


@guarded
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments; all by default. Named ones are merged into --out.", show_default=False),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The real sizes (two hours), or small ones (minutes).")
    ] = False,
    to: Annotated[Path, typer.Option("--out", help="The folder of results.")] = Path("reproduction"),
    part: Annotated[
        str, typer.Option(help="Measure one part of several, such as 1/4, and merge it into --out.")
    ] = "1/1",
    resume: Annotated[bool, typer.Option("--resume", help="Keep what an earlier run in --out has measured.")] = False,
    figures: Annotated[bool, typer.Option(help="Write PNG and SVG files too.")] = True,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure the paper's experiments, judge its claims by stated rules, and write a report."""
    check_packages(figures)
    from projfree.experiments import EXPERIMENTS, machine
    from projfree.experiments.report import build
    from projfree.experiments.runner import key_of, planned, run
    from projfree.experiments.store import Store

    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if unknown := [name for name in names or [] if name not in known]:
        fail(f"there is no experiment {unknown[0]!r}; there are {', '.join(known)}.")
    mode: Any = "full" if full else "quick"
    which, facts = part_of(part), {"mode": mode, **machine.facts()}
    merging = resume or bool(names) or which != (1, 1)
    refuse_results(to, merging=merging, force=force)
    anew = [] if resume or which != (1, 1) else names or []
    store = Store.resumed(to, facts, anew) if merging else Store(to, facts)
    store.order = [key_of(one) for one in planned(EXPERIMENTS, mode)]
    held = {row["experiment"] for row in store.rows}
    read = {name for wanted in names or [] for name in known[wanted].reads if name not in held}
    chosen = [known[name] for name in known if not names or name in names or name in read]
    begun, show = time.perf_counter(), _Show(json or quiet)
    try:
        with show:
            failures = run(chosen, mode, store, show.progress, which)
            show.note("report")
            found = build(EXPERIMENTS, to, f"projfree reproduce --{mode} --out {to}", show.note, figures=figures)
    except KeyboardInterrupt:
        where = str(store.path)
        typer.echo(f"Interrupted; what was measured is in {where!r}. Go on with:\n  {resume_command()}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    for failure in failures:
        err().print(f"[bold red]failed:[/] {failure}")
    if json or not quiet:
        _report(found, to, time.perf_counter() - begun, json)
    raise typer.Exit(SHORT if failures else DONE)


def check_packages(figures: bool) -> None:
    """Tell what is missing before anything is measured: an error where nothing works without it, else a line."""
    for needed in ("pandas", "plotly", "pyarrow", *(("matplotlib",) if figures else ())):
        if find_spec(needed) is None:
            other = " or leave the files out with --no-figures;" if needed == "matplotlib" else ""
            fail(f"reproduce needs {needed};{other} pip install 'projfree[reproduce]'.")
    if find_spec("cvxpy") is None:
        err().print(
            "cvxpy is not installed: claims on general-purpose projections will be not decided; "
            "pip install 'projfree[reproduce]' to measure them."
        )


def part_of(text: str) -> tuple[int, int]:
    """The part that ``k/n`` names."""
    k, slash, n = text.partition("/")
    if not (slash and k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise ValueError(f"--part must be k/n with 1 <= k <= n, such as 1/4, got {text!r}.")
    return int(k), int(n)


def refuse_results(folder: Path, *, merging: bool, force: bool) -> None:
    """Raise where a folder holds something that would be overwritten."""
    from projfree.experiments.store import FILE, kept_facts

    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {str(folder)!r} is a file; choose a folder.")
    table = folder / FILE
    if merging and table.exists():
        return  # the table says itself whether it can be gone on with
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise ValueError(
            f"--out {str(folder)!r} exists; choose another folder, go on with --resume, or replace its results with "
            "--force."
        )
    if table.exists() and kept_facts(table).get("mode") != "quick":
        raise ValueError(
            f"--force replaces quick results only, and those in {str(folder)!r} are of a full run; choose another "
            "folder, or remove it yourself."
        )


class _Show:
    """A bar over the tasks with about the time left on an idle machine; plain lines in a pipe."""

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


def _report(found: Any, folder: Path, seconds: float, json: bool) -> None:
    from projfree.experiments import Origin
    from projfree.experiments.report.findings import SYMBOLS, of_origin
    from projfree.experiments.report.markdown import one_line

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
        show_json({"seconds": seconds, "report": str(folder / "report.html"), "claims": claims})
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
