"""`projfree recommend`: recommend items to known users, or to new users with some ratings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from typer import Option

from projfree.cli import options
from projfree.cli.complete import read_ratings
from projfree.cli.output import Report, check_output, command, write_csv
from projfree.cli.predict import load_model

EPILOG = (
    "Examples:\n\nprojfree recommend model --n 10 --out recommendations.csv\n\n"
    "projfree recommend model --ratings new.csv --out recommendations.csv   # new users, without another fit"
)
#: Number of users that are processed at a time.
BLOCK = 4096


@command
def recommend(
    model: options.Model,
    out: Annotated[Path, Option(help="A CSV file to write.", rich_help_panel="Output")],
    layout: options.Layout,
    printing: options.Writing,
    n: Annotated[int, Option("--n", help="Items to recommend to each user.", min=1)] = 10,
    ratings: Annotated[
        Path | None,
        Option(help="A table of ratings of new users, with the columns of the fit: lists for them alone."),
    ] = None,
) -> Report:
    """Recommend items that they have not rated to all users of a completed matrix, or to new users."""
    inputs = [model] if ratings is None else [model, ratings]
    check_output(out, inputs, printing.force)
    fitted = load_model(model)
    if not hasattr(fitted, "recommend"):
        raise ValueError(f"{str(model)!r} holds no model of ratings; projfree complete writes one.")
    if ratings is None:
        users, lists = len(fitted.user_ids_), _known_users(fitted, n)
    else:
        columns = read_ratings(ratings, [str(name) for name in fitted.columns], layout, fitted)[0]
        users, lists = len(np.unique(columns[0])), _new_users(fitted, columns, n)
    count = write_csv(lists, out, inputs, printing.force)
    record = {"users": users, "recommendations": count, "out": str(out)}
    return Report(record, f"{count:,} recommendations written to {out}", out)


def _known_users(model: Any, n: int) -> Iterator[Any]:
    """Yield recommendations for the users of the fit, in blocks of users."""
    for start in range(0, len(model.user_ids_), BLOCK):
        users = model.user_ids_[start : start + BLOCK]
        yield _to_frame(users, *model.recommend(users, n))


def _new_users(model: Any, columns: tuple[Any, ...], n: int) -> Iterator[Any]:
    """Yield recommendations for each user in a table of ratings."""
    users, items, values = columns
    for user in dict.fromkeys(users.tolist()):
        own = users == user
        recommended, scores = model.fold_in((items[own], values[own]), n=n)
        yield _to_frame(np.array([user]), recommended[None], scores[None])


def _to_frame(users: Any, items: Any, scores: Any) -> Any:
    """Return a data frame with user, place, item and predicted rating, without the padding of short lists."""
    place = np.broadcast_to(np.arange(1, items.shape[1] + 1), items.shape)
    user = np.repeat(users, items.shape[1])
    frame = pd.DataFrame({"user": user, "place": place.ravel(), "item": items.ravel(), "rating": scores.ravel()})
    return frame.dropna(subset=["rating"]).round({"rating": 4})
