"""`projfree data`: which data sets there are, where they are, and how to get them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import resources
from typing import Annotated, Any

import typer

from projfree.cli import options
from projfree.cli.output import fail, guarded, show_json
from projfree.datasets import load_movielens, load_year
from projfree.datasets.sources import SOURCES, VARIABLE, cached, download, given

app = typer.Typer(no_args_is_help=True, help="List, get and locate data sets.")
PACKAGED = {"adult": "adult.npz", "year-sample": "year_sample.npz"}
ABOUT = {
    "adult": "48,842 x 14, UCI Adult, CC BY 4.0",
    "year-sample": "7,000 x 90, rows of UCI YearPredictionMSD, CC BY 4.0",
    "movielens-100k": "100,000 ratings, 943 x 1,682, GroupLens licence: no redistribution",
    "movielens-1m": "1,000,209 ratings, 6,040 x 3,706, GroupLens licence: no redistribution",
    "year": "515,345 x 90, UCI YearPredictionMSD, CC BY 4.0",
    "school": "15,362 x 28, 139 tasks; not to be downloaded",
}
Name = Annotated[str, typer.Argument(help="A name from `projfree data list`.", show_default=False)]


def _place(name: str) -> str | None:
    """Where a data set is, None if it is not here."""
    if name not in ABOUT:
        fail(f"there is no data set {name!r}; there are {', '.join(ABOUT)}.")
    if name in PACKAGED:
        return str(resources.files("projfree.datasets") / "files" / PACKAGED[name])
    try:
        found = given(SOURCES[name]) or cached(SOURCES[name])
    except ImportError:  # without pooch there is no cache
        return None
    return str(found) if found.is_file() else None


@app.command("list", epilog="Example:\n\nprojfree data list")
@guarded
def list_(json: options.Json = False) -> None:
    """List the data sets, and where each one is."""
    places = {name: "packaged" if name in PACKAGED else _place(name) or "not here" for name in ABOUT}
    if json:
        show_json({name: {"what": what, "where": places[name]} for name, what in ABOUT.items()})
        return
    for name, what in ABOUT.items():
        typer.echo(f"{typer.style(name.ljust(16), bold=True)}{what:72}{places[name]}")


@app.command("path", epilog="Example:\n\nprojfree data path movielens-100k")
@guarded
def path(name: Name) -> None:
    """Print where a data set is."""
    place = _place(name)
    if place is None:
        fail(f"{name} is not here; `projfree data get {name}` gets it, or put it below the folder {VARIABLE} names.")
    typer.echo(place)


@app.command("get", epilog="Example:\n\nprojfree data get movielens-100k")
@guarded
def get(name: Name) -> None:
    """Download a data set into the cache, and check it."""
    place = _place(name)
    if place is not None:
        typer.echo(f"{name} is here already: {place}")
        return
    source = SOURCES[name]
    by_hand = f"get {source.names[0]} from {source.page} and put it below the folder {VARIABLE} names"
    if not source.url:
        fail(f"{name} cannot be downloaded; {by_hand}.")
    try:
        with _Download(name) as progress:
            got = download(source, progress)
    except OSError as error:
        fail(f"{source.url} cannot be reached ({type(error).__name__}); go online and try again, or {by_hand}.")
    if name == "year":
        load_year(standardize=False)
    else:
        load_movielens(name.removeprefix("movielens-"))  # type: ignore[arg-type]  # `Name` admits no others
    typer.echo(str(got))


class _Download(AbstractContextManager["_Download"]):
    """A progress bar in the form that pooch wants."""

    def __init__(self, name: str) -> None:
        self.total, self.name = 0, name
        self._bar: Any = None

    def update(self, amount: int) -> None:
        """Count more bytes."""
        if self._bar is None:
            self._bar = typer.progressbar(length=self.total, label=self.name, file=typer.get_text_stream("stderr"))
        self._bar.update(amount)

    def reset(self) -> None:
        """Nothing to do: pooch resets before it fills the bar."""

    def close(self) -> None:
        """Give the terminal back."""

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.render_finish()
