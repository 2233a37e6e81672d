"""The root of the command line: `projfree --version`, `projfree --help` and the commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from projfree.cli import complete, data, explain, fit, listing, predict, recommend
from projfree.cli.output import fail, open_streams, use_plain_signs

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


app.command("fit", epilog=fit.EPILOG)(fit.fit)
app.command("predict", epilog=predict.EPILOG)(predict.predict)
app.command("complete", epilog=complete.EPILOG)(complete.complete)
app.command("recommend", epilog=recommend.EPILOG)(recommend.recommend)
app.command("explain", epilog=explain.EPILOG)(explain.explain)
app.add_typer(data.app, name="data")
app.command("list", epilog=listing.EPILOG)(listing.listing)


@app.command("reproduce", hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def _reproduce() -> None:
    """The reproduction of the paper is in the repository; clone it and run `make reproduce`."""
    fail("the reproduction of the paper is not installed; clone the repository and run `make reproduce`.")


def main() -> None:
    """Run the command line."""
    open_streams()
    use_plain_signs()
    app()
