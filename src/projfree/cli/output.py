"""How commands speak: sentences on the error stream, results on the output stream, JSON for machines."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

#: The exit codes, as documented in the help.
DONE, SHORT, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def out() -> Console:
    """The output stream: styled on a terminal, plain and unwrapped in a pipe."""
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    return console


def err() -> Console:
    """The error stream, for progress and sentences."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def fail(sentence: str) -> NoReturn:
    """Say what is wrong in one sentence and exit with 2."""
    err().print(f"[bold red]Error:[/] {_escaped(_one_line(sentence))}")
    raise typer.Exit(BAD_INPUT)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the errors that bad input makes into one sentence and the exit code 2."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, TypeError, KeyError, OSError, ImportError) as error:
            text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
            fail(text or type(error).__name__)

    return wrapped


def show_json(record: dict[str, Any]) -> None:
    """Print a record as JSON; numbers that are not finite become null."""
    typer.echo(json.dumps(_plain(record), indent=2, ensure_ascii=False))


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


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
