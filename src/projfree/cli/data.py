"""`projfree data`: which data sets there are, where they are, and how to get them."""

from __future__ import annotations

from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from projfree.cli import options
from projfree.cli.output import Report, check_place, command, write_csv
from projfree.datasets import load_movielens, load_school, load_year, load_year_sample
from projfree.datasets.adult import COLUMNS, NUMERIC
from projfree.datasets.sources import SOURCES, cached, given, packaged

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


def _table(name: str) -> Any:
    """A packaged data set as a table, the target last."""
    import pandas as pd

    if name == "year-sample":
        songs = load_year_sample()
        return pd.DataFrame(songs.X, columns=list(songs.feature_names)).assign(year=songs.y)
    arrays = packaged("adult.npz")
    columns = {one: arrays[one] if one in NUMERIC else arrays[f"levels {one}"][arrays[one]] for one in COLUMNS}
    return pd.DataFrame(columns).assign(income=np.where(arrays["label"], ">50K", "<=50K"))


@app.command("get", epilog="Examples:\n\nprojfree data get movielens-100k\n\nprojfree data get adult --out adult.csv")
@command
def get(
    name: Name,
    printing: options.Writing,
    out: Annotated[
        Path | None, typer.Option(help="A CSV file to write a packaged data set to.", rich_help_panel="Output")
    ] = None,
) -> Report:
    """Download a data set into the cache unless it is here, check it, and print where it is."""
    if out is not None:
        if name not in PACKAGED:
            raise ValueError(f"--out is for packaged data sets, {', '.join(PACKAGED)}, got {name!r}; leave it out.")
        check_place(out, [], printing.force)
        count = write_csv([_table(name)], out, [], printing.force)
        return Report({"rows": count, "out": str(out)}, f"{count:,} rows written to {out}", out)
    if _place(name) is None:
        LOADERS[name]()
    place = str(_place(name))
    return Report({"path": place}, place)
