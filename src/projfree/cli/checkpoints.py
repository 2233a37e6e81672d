"""The checkpoint beside a model: what Ctrl-C leaves, what --resume goes on from, and what may be removed."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import typer

from projfree import persist
from projfree.cli.output import INTERRUPTED


@dataclass(frozen=True)
class CheckpointPlace:
    """The place of a checkpoint, and whether there is a state to go on from."""

    path: Path
    kind: str
    there: bool

    def forget(self) -> None:
        """Remove the checkpoint, and nothing that is not one."""
        persist.remove(self.path, kind=self.kind)


def checkpoint_at(out: Path, kind: str, *, resume: bool, force: bool) -> CheckpointPlace:
    """The checkpoint beside ``out``, or a sentence on why it cannot be used; nothing is changed.

    A first checkpoint that was killed has no state: --resume then begins anew.
    """
    path = out.with_name(out.name + ".checkpoint")
    finished = _finished(path, kind)
    if resume and not finished and not persist.unfinished(path):
        raise FileNotFoundError(f"there is no checkpoint at {str(path)!r}; leave out --resume to begin anew.")
    if finished and not resume and not force:
        raise ValueError(
            f"{str(path)!r} holds an interrupted run; go on with --resume, or begin anew and lose it with --force."
        )
    return CheckpointPlace(path, kind, finished and resume)


def _finished(path: Path, kind: str) -> bool:
    """Whether a state lies there; raises where something else does."""
    if not os.path.lexists(path):
        return False
    try:
        if path.is_symlink():
            raise ValueError(f"{str(path)!r} is a link.")
        persist.check(path, kind=kind)
    except ValueError as error:
        raise ValueError(
            f"{str(path)!r}, where an interrupted run is kept, holds something else; choose another --out."
        ) from error
    return persist.exists(path)


@contextmanager
def keeping(place: CheckpointPlace) -> Iterator[None]:
    """A run that writes checkpoints as it goes: Ctrl-C leaves the last one, an error none that was not there before."""
    with interruptible(place):
        try:
            yield
        except Exception:
            if not place.there:
                with suppress(OSError):
                    place.forget()
            raise


@contextmanager
def keeping_the_fit(place: CheckpointPlace) -> Iterator[None]:
    """What is done with a finished fit: where that fails, the last checkpoint stays, and the error tells of it."""
    with interruptible(place):
        try:
            yield
        except Exception as error:
            if persist.exists(place.path):
                error.add_note(f"The fit is kept; go on with `{resume_command()}`.")
            raise
    with suppress(OSError):
        place.forget()


@contextmanager
def interruptible(place: CheckpointPlace) -> Iterator[None]:
    """Ctrl-C leaves the last checkpoint and the command that goes on from it."""
    try:
        yield
    except KeyboardInterrupt:
        there = persist.exists(place.path)
        text = f"Interrupted; go on with:\n  {resume_command()}" if there else "Interrupted; nothing was written."
        typer.echo(text, err=True)
        raise typer.Exit(INTERRUPTED) from None


def resume_command() -> str:
    """The command that was given, with --resume."""
    return shlex.join(["projfree", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"])
