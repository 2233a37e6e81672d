"""`python -m reproduction`: the paper's experiments, measured, judged and reported."""

from __future__ import annotations

import shlex
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from projfree.cli.options import Writing
from projfree.cli.output import DONE, SHORT, Report, fail
from projfree.cli.output import command as as_command
from reproduction import EXPERIMENTS, machine
from reproduction.folder import held, kept, refuse_results
from reproduction.output import Show, err, show_findings
from reproduction.report import build
from reproduction.runner import key_of, planned, run
from reproduction.store import FILE, Store, kept_facts

EPILOG = (
    "Examples:\n\npython -m reproduction --quick                    # everything, within five minutes\n\n"
    "python -m reproduction rates variants             # measure these anew and merge them into the folder\n\n"
    "python -m reproduction --full --part 1/4 --out full   # then 2/4, 3/4 and 4/4: each within 30 minutes\n\n"
    "python -m reproduction --quick --resume           # go on where an interrupted run was\n\n"
    "python -m reproduction --report-only --out full   # judge what was measured by today's rules\n\n"
    "Experiments: rates, iteration-time, variants, gradient-descent, stochastic, stochastic-rate, projection-share, "
    "quasi-convex, non-convex, theory, perturbation, beyond."
)


@as_command
def reproduce(
    printing: Writing,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments; all by default. Named ones are merged into --out.", show_default=False),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The real sizes (an hour or two), or small ones (minutes).")
    ] = False,
    to: Annotated[Path, typer.Option("--out", help="The folder of results.")] = Path("reproduction-report"),
    part: Annotated[
        str, typer.Option(help="Measure one part of several, such as 1/4, and merge it into --out.")
    ] = "1/1",
    resume: Annotated[bool, typer.Option("--resume", help="Keep what an earlier run in --out has measured.")] = False,
    again: Annotated[
        bool,
        typer.Option("--report-only", help="Measure nothing: judge the table in --out anew, and write its report."),
    ] = False,
    figures: Annotated[bool, typer.Option(help="Write PNG and SVG files too.")] = True,
) -> Report:
    """Measure the paper's experiments, judge its claims by stated rules, and write a report."""
    force, json, quiet = printing.force, printing.json, printing.quiet
    check_packages(figures, measuring=not again)
    begun, show = time.perf_counter(), Show(json or quiet)
    if again:
        if names or part != "1/1" or resume or force:
            fail("--report-only measures nothing; leave out the experiments, --part, --resume and --force.")
        with kept(to / FILE, given_command()), show:
            found = judge_again(to, figures, show)
        if json or not quiet:
            show_findings(found, to, time.perf_counter() - begun, json)
        raise typer.Exit(DONE)
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if unknown := [name for name in names or [] if name not in known]:
        fail(f"there is no experiment {unknown[0]!r}; there are {', '.join(known)}.")
    mode: Any = "full" if full else "quick"
    which, facts = part_of(part), {"mode": mode, **machine.facts()}
    merging = resume or bool(names) or which != (1, 1)
    refuse_results(to, merging=merging, force=force)
    anew = [] if resume or which != (1, 1) else names or []
    with held(to):
        store = Store.resumed(to, facts, anew) if merging else Store(to, facts)
        store.order = [key_of(one) for one in planned(EXPERIMENTS, mode)]
        there = {row["experiment"] for row in store.rows}
        read = {name for wanted in names or [] for name in known[wanted].reads if name not in there}
        chosen = [known[name] for name in known if not names or name in names or name in read]
        with kept(store.path, given_command("--resume")), show:
            failures = run(chosen, mode, store, show.progress, which)
            show.note("report")
            found = build(EXPERIMENTS, to, command(mode, to), show.note, figures=figures)
    for failure in failures:
        err().print(f"[bold red]failed:[/] {failure}")
    if json or not quiet:
        show_findings(found, to, time.perf_counter() - begun, json)
    raise typer.Exit(SHORT if failures else DONE)


def command(mode: str, folder: Path) -> str:
    """What repeats a run."""
    return f"python -m reproduction --{mode} --out {shlex.quote(str(folder))}"


def given_command(*more: str) -> str:
    """The command that was given, with ``more`` words at its end."""
    return shlex.join(["python", "-m", "reproduction", *(word for word in sys.argv[1:] if word not in more), *more])


def judge_again(folder: Path, figures: bool, show: Show) -> Any:
    """Judge the table of a folder by today's rules and write its report, from the table alone."""
    if not (folder / FILE).is_file():
        fail(f"--report-only needs a table, and {str(folder)!r} holds no {FILE}; measure first, or give another --out.")
    show.note("report")
    return build(EXPERIMENTS, folder, command(kept_facts(folder / FILE)["mode"], folder), show.note, figures=figures)


def check_packages(figures: bool, *, measuring: bool = True) -> None:
    """Tell what is missing before anything is measured: an error where nothing works without it, else a line."""
    for needed in ("pandas", "plotly", "pyarrow", *(("matplotlib",) if figures else ())):
        if find_spec(needed) is None:
            other = " or leave the files out with --no-figures;" if needed == "matplotlib" else ""
            fail(f"the reproduction needs {needed};{other} pip install -e '.[reproduce]'.")
    if measuring and find_spec("cvxpy") is None:
        err().print(
            "cvxpy is not installed: claims on general-purpose projections will be not decided; "
            "pip install -e '.[reproduce]' to measure them."
        )


def part_of(text: str) -> tuple[int, int]:
    """The part that ``k/n`` names."""
    k, slash, n = text.partition("/")
    if not (slash and k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise ValueError(f"--part must be k/n with 1 <= k <= n, such as 1/4, got {text!r}.")
    return int(k), int(n)
