"""The command line application: `projfree --version`, `projfree --help` and the subcommands."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from projfree.cli import complete, data, explain, fit, predict, recommend

EPILOG = (
    "Exit codes: 0 done; 1 done, but a tolerance was not reached; 2 bad input, nothing written; "
    "3 a fault of projfree, nothing written; 130 interrupted."
)
app = typer.Typer(
    name="projfree",
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog=EPILOG,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    """Print the version and exit, for ``--version``."""
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


for module in (fit, predict, complete, recommend, explain):
    name = module.__name__.rpartition(".")[2]
    app.command(name, epilog=module.EPILOG)(getattr(module, name))
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; characters that the terminal cannot show are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app()
