"""How commands speak: sentences on the error stream, results on the output stream, JSON for machines."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from projfree.cli.errors import is_bad_input, sentence

#: The exit codes, as documented in the help.
DONE, SHORT, BAD_INPUT, FAULT, INTERRUPTED = 0, 1, 2, 3, 130

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.", rich_help_panel="Output")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel="Output")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="A line for each iteration, and what is compiled.", rich_help_panel="Output"),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel="Output")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace what an earlier run wrote to --out.", rich_help_panel="Output")
]


def open_streams() -> None:
    """Let output to a stream that was closed (``>&-``) go nowhere, and no file take its number."""
    for name in ("stdin", "stdout", "stderr"):  # in the order of their numbers
        if getattr(sys, name) is None:
            stream = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115 - it stays open
            setattr(sys, name, stream)


def use_plain_signs() -> None:
    """Let no sign that a terminal lacks end a command: it is shown as an escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def writable(text: str, plain: str) -> str:
    """``text``, or ``plain`` where the output stream cannot show it."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return plain
    return text


def out() -> Console:
    """The output stream: styled on a terminal, plain and unwrapped in a pipe."""
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    return console


def err() -> Console:
    """The error stream, for progress and sentences."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def note(text: str, quiet: bool = False) -> None:
    """A sentence that a user should see, on the error stream."""
    if not quiet:
        err().print(f"[dim]Note:[/] {_escaped(text)}")


def fail(text: str) -> NoReturn:
    """Say what is wrong in one sentence and exit with 2."""
    err().print(f"[bold red]Error:[/] {_escaped(' '.join(text.split()))}")
    raise typer.Exit(BAD_INPUT)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the errors that bad input makes into one sentence and the exit code 2, and name faults as such."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            err().print("Interrupted; nothing was written.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if kwargs.get("debug"):
                typer.echo(traceback.format_exc(), err=True, nl=False)
            if is_bad_input(error):
                fail(" ".join([sentence(error), *getattr(error, "__notes__", ())]))
            _fault(error, bool(kwargs.get("debug")))

    return wrapped


def _fault(error: Exception, debug: bool) -> NoReturn:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    way = "please report it with the traceback above" if debug else "run it again with --debug and report the traceback"
    left = "; ".join(getattr(error, "__notes__", ())) or "nothing was written"  # a command notes what it has kept
    err().print(f"[bold red]Fault of projfree:[/] {_escaped(f'{text}; {left}; {way}')}.")
    raise typer.Exit(FAULT)


@contextlib.contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Print about what was written; where that fails, it was written all the same, and the exit code is 1."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        kept = f"{str(path)!r} was written, but the report could not be printed ({error.strerror})"
        err().print(f"[bold red]Error:[/] {_escaped(kept)}.")
        raise typer.Exit(SHORT) from error


def show_json(record: dict[str, Any]) -> None:
    """Print a record as JSON; numbers that are not finite become null."""
    typer.echo(json.dumps(_plain(record), indent=2, ensure_ascii=writable("²", "") == ""))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_fields(title: str, fields: dict[str, str], style: str = "bold") -> None:
    """A title and aligned lines."""
    console, width = out(), max(map(len, fields))
    console.print(f"[{style}]{_escaped(title)}[/]")
    for name, text in fields.items():
        console.print(f"  [dim]{name:<{width}}[/]  {_escaped(text)}")


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
