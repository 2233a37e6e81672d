"""`projfree data`: list the data sets, find them on disk, and download them."""

from __future__ import annotations

from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from projfree.cli import options
from projfree.cli.output import Report, check_output, command, write_csv
from projfree.datasets import load_movielens, load_school, load_year, load_year_sample
from projfree.datasets.adult import COLUMNS, NUMERIC
from projfree.datasets.sources import SOURCES, cache_path, find_local, load_packaged

app = typer.Typer(no_args_is_help=True, help="List, get and locate data sets.")
#: Data sets by name: a description, and the name of a packaged file or a loader.
DATA_SETS: dict[str, tuple[str, Any]] = {
    "adult": ("48,842 x 14, UCI Adult, CC BY 4.0", "adult.npz"),
    "year-sample": ("7,000 x 90, rows of UCI YearPredictionMSD, CC BY 4.0", "year_sample.npz"),
    "movielens-100k": ("100,000 ratings, 943 x 1,682; not to be passed on", partial(load_movielens, "100k")),
    "movielens-1m": ("1,000,209 ratings, 6,040 x 3,706; not to be passed on", partial(load_movielens, "1m")),
    "year": ("515,345 x 90, UCI YearPredictionMSD, CC BY 4.0", partial(load_year, standardize=False)),
    "school": ("15,362 x 28, 139 tasks; not to be downloaded", load_school),
}
PACKAGED = [name for name, (_, source) in DATA_SETS.items() if isinstance(source, str)]
Name = Annotated[str, typer.Argument(help="A name from `projfree data list`.", show_default=False)]


def _find_file(name: str) -> str | None:
    """Return the path of a data set, None if it has not been downloaded."""
    if name not in DATA_SETS:
        raise ValueError(f"there is no data set {name!r}; there are {', '.join(DATA_SETS)}.")
    if name in PACKAGED:
        return str(resources.files("projfree.datasets") / "files" / DATA_SETS[name][1])
    try:
        path = find_local(SOURCES[name]) or cache_path(SOURCES[name])
    except ImportError:  # without pooch there is no cache
        return None
    return str(path) if path.is_file() else None


@app.command("list", epilog="Example:\n\nprojfree data list")
@command
def list_(printing: options.Printing) -> Report:
    """List the data sets, and where each one is."""
    record = {
        name: {"what": what, "where": "packaged" if name in PACKAGED else _find_file(name) or "not here"}
        for name, (what, _) in DATA_SETS.items()
    }
    lines = [f"{typer.style(name.ljust(16), bold=True)}{one['what']:64}{one['where']}" for name, one in record.items()]
    return Report(record, "\n".join(lines))


def _packaged_frame(name: str) -> Any:
    """Return a packaged data set as a data frame, with the target in the last column."""
    import pandas as pd

    if name == "year-sample":
        songs = load_year_sample()
        return pd.DataFrame(songs.X, columns=list(songs.feature_names)).assign(year=songs.y)
    arrays = load_packaged("adult.npz")
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
        check_output(out, [], printing.force)
        count = write_csv([_packaged_frame(name)], out, [], printing.force)
        return Report({"rows": count, "out": str(out)}, f"{count:,} rows written to {out}", out)
    if _find_file(name) is None:
        DATA_SETS[name][1]()
    place = str(_find_file(name))
    return Report({"path": place}, place)
