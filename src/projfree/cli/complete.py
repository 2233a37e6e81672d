"""`projfree complete`: complete a matrix of ratings, and save the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from projfree import persist
from projfree.checks import Array, shown
from projfree.cli import options
from projfree.cli.fit import split_rows
from projfree.cli.output import (
    DONE,
    NOT_CONVERGED,
    Report,
    check_output,
    command,
    format_error,
    format_fields,
    notify,
    save_model,
)
from projfree.cli.tables import first_row, read_table, resolve_column, to_features, to_floats, to_ids
from projfree.deadline import countdown
from projfree.estimators.encoding import table_encoder
from projfree.run import Checkpoint, ProgressBar
from projfree.run.checkpoint import KIND as CHECKPOINT

EPILOG = (
    "Examples:\n\nprojfree complete ratings.csv --out model\n\n"
    "projfree complete ratings.parquet --columns who,what,stars --p 1.2 --radius 50 --out model\n\n"
    "projfree complete ratings.csv --user-features people.csv --out model\n\n"
    "projfree complete ratings.csv --checkpoint sweeps --out model   # after Ctrl-C, the same command goes on"
)


@dataclass(frozen=True)
class Ratings(options.Layout):
    """Options for the table of ratings and the tables of features."""

    columns: str = options.option("user,item,rating", "The columns of users, items and ratings.")
    user_features: Path | None = options.option(
        None, "A table about users: the column of --columns, or the first one, has their ids."
    )
    item_features: Path | None = options.option(None, "A table about items, in the same way.")


@dataclass(frozen=True)
class Run(options.Run):
    """Options for the run of a completion, which can be resumed from a checkpoint."""

    hold_out: float = options.option(
        0.1, "The share of the ratings that the score is about; 0 for no score.", min=0.0, max=0.9
    )
    tol: float | None = options.option(None, "A relative gap to certify; by default it is only computed.", min=0.0)
    checkpoint: Path | None = options.option(
        None, "A folder that the sweeps are saved to; the same command goes on from it."
    )


@command
def complete(
    data: options.Data,
    out: options.ModelFolder,
    table: Ratings,
    run: Run,
    printing: options.Writing,
    p: Annotated[float, Option("--p", help="The exponent of the Schatten norm, from 1 to below 2.")] = 1.0,
    radius: Annotated[float | None, Option(help="The radius; by default it is chosen on held-out ratings.")] = None,
    rank: Annotated[int, Option(help="Components of the factors.", min=1)] = 40,
    loss: Annotated[str, Option(help="squared, huber, or logistic for ratings of two values.")] = "squared",
    implicit: Annotated[
        float | None, Option(help="The weight of which items were rated, 0 for none; by default it is chosen.")
    ] = None,
) -> Report:
    """Complete a matrix of ratings over a Schatten ball; score it on ratings it has not seen."""
    from projfree.estimators import MatrixCompletion

    inputs = [path for path in (data, table.user_features, table.item_features, run.checkpoint) if path is not None]
    check_output(out, inputs, printing.force, "model")
    if run.checkpoint is not None:
        persist.check(run.checkpoint, kind=CHECKPOINT)
    ratings, names = read_ratings(data, table.columns.split(","), table)
    bar = () if printing.silent else (ProgressBar(label=f"complete {data.name}", transient=True),)
    left = countdown(run.time_limit)
    model = MatrixCompletion(
        p,
        radius,
        rank=rank,
        loss=loss,
        implicit="auto" if implicit is None else implicit,
        time_limit=run.time_limit,
        random_state=run.seed,
        columns=tuple(names),
        callbacks=bar if run.checkpoint is None else (*bar, Checkpoint(run.checkpoint, every=1)),
        user_features=_read_features(table.user_features, names[0], table, ratings[0]),
        item_features=_read_features(table.item_features, names[1], table, ratings[1]),
    )
    train, test = split_rows(len(ratings[2]), run.hold_out, run.seed)
    score = None
    try:
        model.set_params(certify=not len(test)).fit(tuple(column[train] for column in ratings))
        if len(test):  # the model that is saved knows all ratings
            held = tuple(column[test] for column in ratings)
            score = model.report(held)
            model.set_params(certify=True, time_limit=left()).partial_fit(held)
        if run.tol is not None:
            model.certify_to(run.tol, time_limit=left())
    except KeyboardInterrupt as error:
        if run.checkpoint is not None and persist.exists(run.checkpoint):
            error.add_note(f"the same command goes on from {str(run.checkpoint)!r}.")
        raise
    model.set_params(callbacks=(), time_limit=run.time_limit)
    save_model(model, out, inputs, printing.force)
    for note in model.notes():
        notify(
            format_error(note.replace("`certify_to(0.01)`", "--tol 0.01"), {"implicit": "--implicit", "loss": "--loss"})
        )
    record = _record(model, score, len(test), out)
    text = format_fields(f"completed after {model.n_iter_} sweeps", record)
    return Report(record, text, out, DONE if run.tol is None or model.relative_gap_ <= run.tol else NOT_CONVERGED)


def read_ratings(
    path: Path, names: list[str], layout: options.Layout, model: Any = None
) -> tuple[tuple[Array, ...], list[str]]:
    """Read users, items and ratings from a file.

    Returns the three columns, without earlier ratings of the same pair, and the names of the first two. Item ids get
    the type of those of ``model``.
    """
    if len(names) != 3:
        raise ValueError(f"--columns must name three columns, users, items and ratings, got {shown(','.join(names))}.")
    frame = read_table(path, layout, names[:2])
    user, item, rating = (resolve_column(list(frame.columns), name, "--columns", path) for name in names)
    for name in (user, item):
        if frame[name].isna().any():
            row = first_row(frame[name], frame[name].isna())
            raise ValueError(f"column {name!r} of {str(path)!r} is missing in row {row}; leave the row out.")
        frame[name] = to_ids(frame[name], like=model.item_ids_ if model is not None and name == item else None)
    # Keep the last rating of a pair, so that no pair is both in the training and in the test part.
    earlier = frame.duplicated([user, item], keep="last").to_numpy()
    if earlier.any():
        notify(
            "Of pairs that are rated several times the last rating counts; "
            f"{earlier.sum():,} earlier rows are left out."
        )
    latest = frame[~earlier]
    return (latest[user].to_numpy(), latest[item].to_numpy(), to_floats(latest[rating]).to_numpy()), [
        user,
        item,
        rating,
    ]


def _read_features(path: Path | None, ids: str, layout: options.Layout, like: Array) -> Any:
    """Read ids and features from a file; text is one-hot encoded, and missing numbers are kept.

    The ids are converted to the type of ``like``, the ids in the ratings.
    """
    if path is None:
        return None
    frame = read_table(path, layout, [ids, "0"])
    column = frame.pop(ids if ids in frame else frame.columns[0])
    if not len(frame.columns):
        raise ValueError(
            f"{str(path)!r} must have a column of ids and others with features, got {column.name!r} alone."
        )
    text = [name for name in frame if to_floats(frame[name], missing=True, or_text=True) is None]
    encoder = table_encoder([name for name in frame if name not in text], dict.fromkeys(text))
    return to_ids(column, like=like).to_numpy(), encoder.fit_transform(to_features(frame, text, impute=True))


def _record(model: Any, score: Any, held: int, out: Path) -> dict[str, Any]:
    """Collect the values that ``--json`` prints."""
    names = ("rmse", "mae", "precision", "recall", "popular_precision", "popular_recall", "coverage", "k")
    return {
        "value": model.value_,
        "bound": model.bound_,
        "relative_gap": float(model.relative_gap_),
        "radius": model.radius_,
        "sweeps": model.n_iter_,
        "ratings": len(model.ratings_),
        "held_out_ratings": held,
        "users": len(model.user_ids_),
        "items": len(model.item_ids_),
        **{name: getattr(score, name, None) for name in names},
        "model": str(out),
    }
