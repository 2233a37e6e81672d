"""`projfree recommend`: what a saved model recommends to each user."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from projfree.cli import options
from projfree.cli.destinations import new_file_at, safe_cell, written
from projfree.cli.output import Debug, Force, Json, Quiet, guarded, out, reporting, show_json
from projfree.cli.predict import loaded

EPILOG = "Example:\n\nprojfree recommend model --n 10 --out recommendations.csv"
#: Users whose lists are held at once.
BLOCK = 4096


@guarded
def recommend(
    model: Annotated[Path, typer.Argument(help="The folder that complete wrote.", show_default=False)],
    to: Annotated[Path, typer.Option("--out", help="A CSV file to write.", show_default=False)],
    n: Annotated[int, typer.Option("--n", help="Items to recommend to each user.")] = 10,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Recommend items that they have not rated to all users of a completed matrix."""
    options.refuse_below("--n", n, 1)
    new_file_at(to, [model], force)
    fitted = loaded(model)
    if not hasattr(fitted, "recommend"):
        raise ValueError(
            f"{str(model)!r} holds a model that recommends nothing; projfree complete writes one that does."
        )
    with written(to, force) as file:
        count = write_lists(fitted, csv.writer(file, lineterminator="\n"), n)
    with reporting(to):
        if json:
            show_json({"users": len(fitted.user_ids_), "recommendations": count, "out": str(to)})
        elif not quiet:
            out().print(f"{count:,} recommendations written to {to}", markup=False)


def write_lists(model: Any, writer: Any, most: int) -> int:
    """Write user, place, item and predicted rating of each recommendation; how many there are."""
    writer.writerow(["user", "place", "item", "rating"])
    count = 0
    for start in range(0, len(model.user_ids_), BLOCK):
        users = model.user_ids_[start : start + BLOCK]
        for user, items, scores in zip(users.tolist(), *model.recommend(users, most), strict=True):
            for place, (item, score) in enumerate(zip(items.tolist(), scores.tolist(), strict=True), 1):
                if not math.isnan(score):
                    writer.writerow([safe_cell(user), place, safe_cell(item), f"{score:.4f}"])
                    count += 1
    return count
