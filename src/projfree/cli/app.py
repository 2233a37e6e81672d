"""The root of the command line: `projfree --version` and `projfree --help`."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

app = typer.Typer(name="projfree", no_args_is_help=True, add_completion=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"projfree {version('projfree')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    show: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Projection-free optimization over norm balls, with a certificate for every convex answer."""


def main() -> None:
    """Run the command line."""
    app()
