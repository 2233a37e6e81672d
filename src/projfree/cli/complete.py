"""`projfree complete`: ratings in, a model and recommendations out."""

from __future__ import annotations

import csv
import math
import shlex
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from projfree import persist
from projfree.checks import Array, shown
from projfree.cli import options
from projfree.cli.destinations import new_file_at, new_model_at, save_model, written
from projfree.cli.errors import sentence
from projfree.cli.features import read_features
from projfree.cli.fit import split
from projfree.cli.output import (
    DONE,
    INTERRUPTED,
    SHORT,
    Debug,
    Force,
    Json,
    Quiet,
    guarded,
    note,
    reporting,
    show_fields,
    show_json,
)
from projfree.cli.recommend import write_lists
from projfree.cli.tables import Reading, numbers, read_table
from projfree.cli.watch import bar
from projfree.estimators.frame_columns import row_of
from projfree.estimators.saving import KIND
from projfree.run.checkpoint import KIND as CHECKPOINT

#: Items of a list of recommendations that is scored, unless another number is asked for.
LIST = 10
SCORES = ("rmse", "mae", "precision", "recall", "coverage", "k")
EPILOG = (
    "Examples:\n\nprojfree complete ratings.csv --out model --recommend 10\n\n"
    "projfree complete ratings.parquet --columns who,what,stars --p 1.2 --radius 50 --out model\n\n"
    "projfree complete ratings.csv --user-features people.csv --out model\n\n"
    "projfree complete ratings.csv --checkpoint sweeps --out model   # after Ctrl-C, the same command goes on"
)


@guarded
def complete(
    data: options.Data,
    out: options.ModelFolder,
    columns: Annotated[
        str, typer.Option(help="The columns of users, items and ratings.", rich_help_panel=options.TABLE)
    ] = "user,item,rating",
    p: Annotated[
        float,
        typer.Option(
            "--p", help="The exponent of the Schatten norm, from 1 to below 2.", rich_help_panel=options.MODEL
        ),
    ] = 1.0,
    radius: Annotated[
        str, typer.Option(help="The radius, or auto: chosen on held-out ratings.", rich_help_panel=options.MODEL)
    ] = "auto",
    rank: Annotated[int, typer.Option(help="Components of the factors.", rich_help_panel=options.MODEL)] = 40,
    user_features: Annotated[
        Path | None,
        typer.Option(
            help="A table about users: the column of --columns, or the first one, has their ids.",
            rich_help_panel=options.TABLE,
        ),
    ] = None,
    item_features: Annotated[
        Path | None,
        typer.Option(help="A table about items, in the same way.", rich_help_panel=options.TABLE),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(help="A relative gap to certify; by default it is only computed.", rich_help_panel=options.RUN),
    ] = None,
    hold_out: Annotated[
        float,
        typer.Option(help="The part of the ratings kept for the score; 0 for none.", rich_help_panel=options.RUN),
    ] = 0.1,
    recommend: Annotated[
        int, typer.Option(help="Items to recommend to each user; 0 for none.", rich_help_panel=options.OUTPUT)
    ] = 0,
    sep: options.Sep = None,
    header: options.Header = None,
    time_limit: options.TimeLimit = None,
    seed: Annotated[
        int, typer.Option(help="Of the ratings held out and the first factors.", rich_help_panel=options.RUN)
    ] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="A folder that the sweeps are saved to; the same command goes on from it.",
            show_default=False,
            rich_help_panel=options.RUN,
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Complete a matrix of ratings over a Schatten ball; score it on ratings it has not seen."""
    options.refuse_share("--hold-out", hold_out)
    options.refuse_below("--rank", rank, 1)
    options.refuse_below("--recommend", recommend, 0)
    options.refuse_below("--seed", seed, 0)
    options.refuse_below("--tol", tol, 0.0)
    options.refuse_below("--time-limit", time_limit, 0.0, strictly=True)
    size, names = None if radius == "auto" else options.radius_of(radius), _names(columns)
    file = out.with_name(out.name + ".recommendations.csv") if recommend else None
    inputs = [path for path in (data, user_features, item_features, checkpoint) if path is not None]
    new_model_at(out, inputs, force, KIND)
    if file is not None:
        new_file_at(file, inputs, force)
    if checkpoint is not None:
        persist.check(checkpoint, kind=CHECKPOINT)
    settings: dict[str, Any] = {"p": p, "radius": size, "rank": rank, "tol": tol}
    settings |= {"time_limit": time_limit, "random_state": seed, "checkpoint": checkpoint}
    model = _model(settings)
    ratings, there = _ratings(data, names, Reading(sep, header), quiet or json)
    of_users, of_items = (
        read_features(path, name, Reading(sep, header), text=labels.dtype.kind not in "iufb")
        for path, name, labels in zip((user_features, item_features), there, ratings, strict=False)
    )
    model.set_params(user_features=of_users, item_features=of_items)
    fitted, held = split(len(ratings[2]), hold_out, seed)
    watchers = () if quiet or json else (bar(f"complete {data.name}"),)
    try:
        _fit(model.set_params(columns=there), _part(ratings, fitted), watchers, quiet or json)
    except KeyboardInterrupt:
        if checkpoint is None or not persist.exists(checkpoint):
            raise
        typer.echo(f"Interrupted; the same command goes on from {str(checkpoint)!r}.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    score = model.report(_part(ratings, held), k=recommend or LIST) if len(held) else None
    save_model(model, out, inputs, force)
    if file is not None:
        _write_recommendations(model, file, recommend, force, out)
    if json or not quiet:
        with reporting(out):
            _report(model, score, len(fitted), len(held), out, file, json)
    raise typer.Exit(DONE if tol is None or model.relative_gap_ <= tol else SHORT)


def _part(ratings: tuple[Array, ...], at: Array) -> tuple[Array, ...]:
    """Some of the ratings."""
    return tuple(column[at] for column in ratings)


def _model(settings: dict[str, Any]) -> Any:
    from projfree.estimators.completion import MatrixCompletion

    model = MatrixCompletion(**settings)
    model._checked()
    return model


def _fit(model: Any, ratings: tuple[Array, ...], watchers: tuple[Any, ...], quiet: bool) -> None:
    from sklearn.exceptions import ConvergenceWarning

    model.set_params(callbacks=watchers)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is reported
        model.fit(ratings)
    for text in dict.fromkeys(sentence(warning.message) for warning in said if isinstance(warning.message, Warning)):
        note(text, quiet)
    model.set_params(callbacks=(), checkpoint=None)


def _names(columns: str) -> list[str]:
    names = [name.strip() for name in columns.split(",")]
    if len(names) != 3:
        raise ValueError(f"--columns must name three columns, users, items and ratings, got {shown(columns)}.")
    return names


def _ratings(path: Path, names: list[str], reading: Reading, quiet: bool) -> tuple[tuple[Array, ...], tuple[str, ...]]:
    """Users, items and ratings of a file, and the names that their columns have there."""
    table = read_table(path, reading, ids=names[:2])
    if table.remark:
        note(table.remark, quiet)
    user, item, rating = there = tuple(table.column(name, "--columns") for name in names)
    for name in (user, item):
        if table.frame[name].isna().any():
            row = row_of(table.frame[name], int(np.flatnonzero(table.frame[name].isna().to_numpy())[0]))
            raise ValueError(f"column {name!r} of {str(path)!r} is missing in row {row}; leave the row out.")
    columns = table.frame[user].to_numpy(), table.frame[item].to_numpy(), numbers(table.frame[rating])
    return _part(columns, _last_of_each(table.frame, [user, item], quiet)), there


def _last_of_each(frame: Any, pair: list[str], quiet: bool) -> Array:
    """The rows whose pair no later row has, since the later rating counts; else held-out pairs would be fitted too."""
    earlier = frame.duplicated(pair, keep="last").to_numpy()
    if earlier.any():
        rows = "1 earlier row is" if earlier.sum() == 1 else f"{earlier.sum():,} earlier rows are"
        note(f"Of pairs that are rated several times the last rating counts; {rows} left out.", quiet)
    return np.flatnonzero(~earlier)


def _write_recommendations(model: Any, path: Path, most: int, force: bool, out: Path) -> None:
    """A file next to the model: user, place, item, predicted rating."""
    again = shlex.join(["projfree", "recommend", str(out), "--n", str(most), "--out", str(path)])
    saved = f"The model is in {str(out)!r}; `{again}` recommends from it."
    try:
        with written(path, force) as file:
            write_lists(model, csv.writer(file, lineterminator="\n"), most)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted; no recommendations were written. {saved}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        error.add_note(saved)
        raise


def _report(model: Any, score: Any, kept: int, held: int, out: Path, file: Path | None, json: bool) -> None:
    gap = float(model.relative_gap_)
    if json:
        record = {"value": model.value_, "bound": model.bound_, "relative_gap": gap, "radius": model.radius_}
        record |= {"sweeps": model.n_iter_, "ratings": kept, "held_out_ratings": held, "model": str(out)}
        record |= {name: getattr(score, name, None) for name in SCORES}
        show_json({**record, "recommendations": None if file is None else str(file)})
        return
    coarse = ", a coarse bound; --tol proves more" if model.coarse_ else ""
    fields = {
        "ratings": f"{kept:,} to fit, {held:,} held out, {len(model.user_ids_):,} x {len(model.item_ids_):,}",
        "radius": f"{model.radius_:.6g}",
        "value": f"{model.value_:.6g}",
        "lower bound": f"{model.bound_:.6g}" if math.isfinite(model.bound_) else "not computed",
        "certified gap": f"{gap:.2g} relative{coarse}" if math.isfinite(gap) else "not computed",
        **({} if score is None else _scores(score)),
        "model": str(out),
        **({"recommended": str(file)} if file is not None else {}),
    }
    show_fields(f"completed after {model.n_iter_} sweeps", fields, "bold green")


def _scores(score: Any) -> dict[str, str]:
    """How well the ratings that were held out are predicted and recommended."""
    lists = f"precision {score.precision:.3f}, recall {score.recall:.3f}, {score.coverage:.0%} of all items"
    return {
        "held-out RMSE": f"{score.rmse:.4f}, mean absolute error {score.mae:.4f}",
        **({f"lists of {score.k}": lists} if score.n_users else {}),
    }
