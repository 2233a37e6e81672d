"""`projfree data`: which data sets there are, where they are, and how to get them."""

from __future__ import annotations

from functools import partial
from importlib import resources
from typing import Annotated, Any

import typer

from projfree.cli import options
from projfree.cli.output import Report, command
from projfree.datasets import load_movielens, load_school, load_year
from projfree.datasets.sources import SOURCES, cached, given

app = typer.Typer(no_args_is_help=True, help="List, get and locate data sets.")
PACKAGED = {"adult": "adult.npz", "year-sample": "year_sample.npz"}
LOADERS: dict[str, Any] = {
    "movielens-100k": partial(load_movielens, "100k"),
    "movielens-1m": partial(load_movielens, "1m"),
    "year": partial(load_year, standardize=False),
    "school": load_school,
}
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
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(ABOUT)}.")
    if name in PACKAGED:
        return str(resources.files("projfree.datasets") / "files" / PACKAGED[name])
    try:
        found = given(SOURCES[name]) or cached(SOURCES[name])
    except ImportError:  # without pooch there is no cache
        return None
    return str(found) if found.is_file() else None


@app.command("list", epilog="Example:\n\nprojfree data list")
@command
def list_(printing: options.Printing) -> Report:
    """List the data sets, and where each one is."""
    places = {name: "packaged" if name in PACKAGED else _place(name) or "not here" for name in ABOUT}
    lines = [f"{typer.style(name.ljust(16), bold=True)}{what:72}{places[name]}" for name, what in ABOUT.items()]
    return Report({name: {"what": what, "where": places[name]} for name, what in ABOUT.items()}, "\n".join(lines))


@app.command("get", epilog="Example:\n\nprojfree data get movielens-100k")
@command
def get(name: Name, printing: options.Printing) -> Report:
    """Download a data set into the cache unless it is here, check it, and print where it is."""
    if _place(name) is None:
        LOADERS[name]()
    place = str(_place(name))
    return Report({"path": place}, place)
