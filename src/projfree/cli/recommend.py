"""`projfree recommend`: what a saved model recommends to each user, or to new ones with some ratings."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from projfree.cli import options
from projfree.cli.output import check_place, guarded, note, reporting, safe_cell, show_json, text_file
from projfree.cli.predict import loaded

EPILOG = (
    "Examples:\n\nprojfree recommend model --n 10 --out recommendations.csv\n\n"
    "projfree recommend model --ratings new.csv --out recommendations.csv   # new users, without another fit"
)
#: Users whose lists are held at once.
BLOCK = 4096


@guarded
def recommend(
    model: options.Model,
    out: options.NewFile,
    n: Annotated[int, options.option("Items to recommend to each user.", "--n", min=1)] = 10,
    ratings: Annotated[
        Path | None,
        options.option("A table of ratings of new users, with the columns of the fit: lists for them alone."),
    ] = None,
    sep: options.Sep = None,
    header: options.Header = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Recommend items that they have not rated to all users of a completed matrix, or to new users."""
    inputs = [model] if ratings is None else [model, ratings]
    check_place(out, inputs, force)
    fitted = loaded(model)
    if not hasattr(fitted, "recommend"):
        raise ValueError(f"{str(model)!r} holds no model of ratings; projfree complete writes one.")
    lists = known_lists(fitted, n) if ratings is None else _new_lists(fitted, ratings, n, sep, header, quiet or json)
    with text_file(out, inputs, force) as file:
        users, count = write_lists(lists, file)
    with reporting(out):
        if json:
            show_json({"users": users, "recommendations": count, "out": str(out)})
        elif not quiet:
            typer.echo(f"{count:,} recommendations written to {out}")


def known_lists(model: Any, n: int) -> Iterator[tuple[Any, Any, Any]]:
    """Each user of the fit, the items, and the predictions."""
    for start in range(0, len(model.user_ids_), BLOCK):
        users = model.user_ids_[start : start + BLOCK]
        yield from zip(users.tolist(), *model.recommend(users, n), strict=True)


def _new_lists(
    model: Any, path: Path, n: int, sep: str | None, header: bool | None, quiet: bool
) -> Iterator[tuple[Any, Any, Any]]:
    """The same for the users of a table of ratings."""
    from projfree.cli.complete import read_ratings

    (users, items, values), _, remarks = read_ratings(path, [str(name) for name in model.columns], sep, header)
    for remark in remarks:
        note(remark, quiet)
    for user in dict.fromkeys(users.tolist()):
        own = users == user
        yield user, *model.fold_in((items[own], values[own]), n=n)


def write_lists(lists: Iterator[tuple[Any, Any, Any]], file: Any) -> tuple[int, int]:
    """Write user, place, item and predicted rating of each recommendation; count users and recommendations."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["user", "place", "item", "rating"])
    users = count = 0
    for user, items, scores in lists:
        users += 1
        for place, (item, score) in enumerate(zip(items.tolist(), scores.tolist(), strict=True), 1):
            if not math.isnan(score):
                writer.writerow([safe_cell(user), place, safe_cell(item), f"{score:.4f}"])
                count += 1
    return users, count
