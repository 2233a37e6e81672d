"""`projfree data`: which data sets there are, where they lie, and how to get them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from projfree.cli.output import Json, err, fail, guarded, out, show_json
from projfree.datasets.download import HOMES, cache_folder, fetch
from projfree.datasets.lookup import present

app = typer.Typer(no_args_is_help=True, help="List, get and locate data sets.")
PACKAGED = {
    "adult": "48,842 x 14, UCI Adult, CC BY 4.0",
    "year-sample": "7,000 x 90, rows of UCI YearPredictionMSD, CC BY 4.0",
}
OTHERS = {
    "movielens-100k": "100,000 ratings, 943 x 1,682, GroupLens licence: no redistribution",
    "movielens-1m": "1,000,209 ratings, 6,040 x 3,706, GroupLens licence: no redistribution",
    "year": "515,345 x 90, UCI YearPredictionMSD, CC BY 4.0",
    "school": "15,362 x 28, 139 tasks; no home to download from",
}
Name = Annotated[str, typer.Argument(help="A name from `projfree data list`.", show_default=False)]


def _known(name: str) -> None:
    if name not in PACKAGED and name not in OTHERS:
        fail(f"there is no data set {name!r}; there are {', '.join([*PACKAGED, *OTHERS])}.")


def _packaged_path(name: str) -> Path:
    import projfree.datasets as datasets

    file = {"adult": "adult.npz", "year-sample": "year_sample.npz"}[name]
    return Path(str(datasets.__file__)).parent / "files" / file


def _where(name: str) -> str:
    if name in PACKAGED:
        return "packaged"
    return str(found) if (found := present(HOMES[name])) else "not here"


@app.command("list", epilog="Example:\n\nprojfree data list")
@guarded
def list_(json: Json = False) -> None:
    """List the data sets, and where each one is."""
    everything = {**PACKAGED, **OTHERS}
    if json:
        show_json({name: {"what": what, "where": _where(name)} for name, what in everything.items()})
        return
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("name", "what", "where"):
        table.add_column(heading, overflow="fold")
    for name, what in everything.items():
        table.add_row(name, what, _where(name))
    console = out()
    if not console.is_terminal:
        console.width = 200
    console.print(table)
    console.print(f"[dim]Looked for below PROJFREE_DATA, then in {cache_folder()}.[/]")


@app.command("path", epilog="Example:\n\nprojfree data path movielens-100k")
@guarded
def path(name: Name) -> None:
    """Print where a data set lies."""
    _known(name)
    found = _packaged_path(name) if name in PACKAGED else present(HOMES[name])
    if found is None:
        fail(f"{name} is not here; `projfree data get {name}` gets it, or put it below the folder PROJFREE_DATA names.")
    typer.echo(str(found))


@app.command("get", epilog="Example:\n\nprojfree data get movielens-100k")
@guarded
def get(name: Name) -> None:
    """Download a data set from its home into the cache, and check it."""
    _known(name)
    if name in PACKAGED or (found := present(HOMES[name])) is not None:
        typer.echo(f"{name} is here already: {_packaged_path(name) if name in PACKAGED else found}")
        return
    home = HOMES[name]
    if not home.url:
        fail(f"{name} has no home to download from; get {home.page}, and put it below the folder PROJFREE_DATA names.")
    bar = _Download(name)
    try:
        got = fetch(home, bar)
    except OSError as error:
        fail(
            f"{home.url} cannot be reached ({type(error).__name__}); go online and try again, or get {home.names[0]} "
            f"from {home.page} and put it below the folder PROJFREE_DATA names."
        )
    finally:
        bar.close()
    _load(name)  # checks shape and first rows
    typer.echo(str(got))


def _load(name: str) -> None:
    from projfree.datasets import load_movielens, load_year

    if name == "year":
        load_year(standardize=False)
    elif name == "movielens-100k":
        load_movielens("100k")
    elif name == "movielens-1m":
        load_movielens("1m")


class _Download:
    """A progress bar in the form that pooch wants."""

    def __init__(self, name: str) -> None:
        self.total, self.name = 0, name
        self._bar: Any = None

    def update(self, amount: int) -> None:
        """So many bytes more."""
        if self._bar is None and sys.stderr.isatty():
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=err(), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self.name, total=self.total or None)
        if self._bar is not None:
            self._bar.update(self._task, advance=amount)

    def reset(self) -> None:
        """Nothing to do: pooch resets before it fills the bar."""

    def close(self) -> None:
        """Give the terminal back."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
