"""The folder of results: what may be written there, by one run at a time, and what an error leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from projfree.cli.output import INTERRUPTED, check_parent
from reproduction.report.marks import MARKS
from reproduction.store import FILE, kept_facts


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a folder for one run: two that write the same table would lose each other's results."""
    check_parent(folder / FILE)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _locked(folder):
            yield
    except BlockingIOError:
        raise ValueError(
            f"another run is writing to --out {str(folder)!r}; wait until it has ended, or choose another folder."
        ) from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, or raise BlockingIOError; the system drops the lock of a process that dies."""
    if os.name != "posix":
        yield
        return
    import fcntl  # not on every system

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def kept(table: Path, go_on: str) -> Iterator[None]:
    """Say what stays of a run that was interrupted, cannot write its results, or fails; ``go_on`` is the way on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Interrupted; {what_stays(table)}. Go on with:\n  {go_on}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        raise OSError(
            f"writing to {str(table.parent)!r} failed ({error.strerror or error}); {what_stays(table)}; see to it, "
            f"then go on with: {go_on}"
        ) from error
    except Exception as error:
        error.add_note(what_stays(table))
        raise


def what_stays(table: Path) -> str:
    """What an interruption leaves, in words."""
    return f"what was measured is in {str(table)!r}" if table.exists() else "no measurement was complete"


def refuse_results(folder: Path, *, merging: bool, force: bool) -> None:
    """Raise where a folder holds something that would be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {str(folder)!r} is a file; choose a folder.")
    table = folder / FILE
    if merging and table.exists():
        return  # the table says itself whether it can be gone on with
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise ValueError(f"--out {str(folder)!r} {_there(table)}.")
    if table.exists() and kept_facts(table).get("mode") != "quick":
        raise ValueError(
            f"--force replaces quick results only, and those in {str(folder)!r} are of a full run; choose another "
            "folder, or remove it yourself."
        )
    if not table.exists():
        _refuse_files_of_others(folder)


def _refuse_files_of_others(folder: Path) -> None:
    """Raise where a file with the name of ours does not carry our mark; beside a table of ours all of them are ours."""
    for name, mark in MARKS.items():
        path = folder / name
        if path.exists() and mark not in path.read_text(encoding="utf-8", errors="replace")[:2000]:
            raise ValueError(
                f"--force replaces what the reproduction wrote, and {str(path)!r} was written by something else; "
                "choose another folder, or remove it yourself."
            )


def _there(table: Path) -> str:
    """What is wrong with a folder that is not empty, and the ways out."""
    if table.exists():
        return "exists; choose another folder, go on with --resume, or replace its results with --force"
    return "holds files but no results.parquet; choose another folder, or write into it with --force"
