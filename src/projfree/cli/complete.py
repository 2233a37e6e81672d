"""`projfree complete`: ratings in, a model and recommendations out."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from projfree import persist
from projfree.checks import Array, shown
from projfree.cli import options
from projfree.cli.fit import split
from projfree.cli.output import (
    DONE,
    INTERRUPTED,
    SHORT,
    check_place,
    guarded,
    note,
    reporting,
    save_model,
    show_fields,
    show_json,
    text_file,
)
from projfree.cli.recommend import known_lists, write_lists
from projfree.cli.tables import as_ids, column_of, floats, is_text, read_table, row_of
from projfree.deadline import countdown
from projfree.estimators.encoding import table_encoder, text_columns
from projfree.run import Checkpoint, ProgressBar
from projfree.run.checkpoint import KIND as CHECKPOINT

EPILOG = (
    "Examples:\n\nprojfree complete ratings.csv --out model --recommend 10\n\n"
    "projfree complete ratings.parquet --columns who,what,stars --p 1.2 --radius 50 --out model\n\n"
    "projfree complete ratings.csv --user-features people.csv --out model\n\n"
    "projfree complete ratings.csv --checkpoint sweeps --out model   # after Ctrl-C, the same command goes on"
)
#: Items of a list of recommendations that is scored, unless --recommend says otherwise.
LIST = 10


@guarded
def complete(
    data: options.Data,
    out: options.ModelFolder,
    columns: Annotated[
        str, options.option("The columns of users, items and ratings.", panel=options.TABLE)
    ] = "user,item,rating",
    p: Annotated[float, options.option("The exponent of the Schatten norm, from 1 to below 2.", "--p")] = 1.0,
    radius: Annotated[float | None, options.option("The radius; by default it is chosen on held-out ratings.")] = None,
    rank: Annotated[int, options.option("Components of the factors.", min=1)] = 40,
    user_features: Annotated[
        Path | None,
        options.option(
            "A table about users: the column of --columns, or the first one, has their ids.", panel=options.TABLE
        ),
    ] = None,
    item_features: Annotated[
        Path | None, options.option("A table about items, in the same way.", panel=options.TABLE)
    ] = None,
    tol: Annotated[
        float | None,
        options.option("A relative gap to certify; by default it is only computed.", panel=options.RUN, min=0.0),
    ] = None,
    hold_out: options.HoldOut = 0.1,
    recommend: Annotated[
        int, options.option("Items to recommend to each user; 0 for none.", panel=options.OUTPUT, min=0)
    ] = 0,
    sep: options.Sep = None,
    header: options.Header = None,
    time_limit: options.TimeLimit = None,
    seed: options.Seed = 0,
    checkpoint: Annotated[
        Path | None,
        options.option("A folder that the sweeps are saved to; the same command goes on from it.", panel=options.RUN),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Complete a matrix of ratings over a Schatten ball; score it on ratings it has not seen."""
    from projfree.estimators import MatrixCompletion

    silent = quiet or json
    names = columns.split(",")
    if len(names) != 3:
        raise ValueError(f"--columns must name three columns, users, items and ratings, got {shown(columns)}.")
    file = out.with_name(out.name + ".recommendations.csv") if recommend else None
    inputs = [path for path in (data, user_features, item_features, checkpoint) if path is not None]
    check_place(out, inputs, force, "model")
    if file is not None:
        check_place(file, inputs, force)
    if checkpoint is not None:
        persist.check(checkpoint, kind=CHECKPOINT)
    ratings, names, remarks = read_ratings(data, names, sep, header)
    for remark in remarks:
        note(remark, silent)
    features = {
        "user_features": _features(user_features, names[0], sep, header, ratings[0]),
        "item_features": _features(item_features, names[1], sep, header, ratings[1]),
    }
    watchers: tuple[Any, ...] = () if silent else (ProgressBar(label=f"complete {data.name}", transient=True),)
    watchers += () if checkpoint is None else (Checkpoint(checkpoint, every=1),)
    left = countdown(time_limit)
    model = MatrixCompletion(
        p,
        radius,
        rank=rank,
        time_limit=time_limit,
        random_state=seed,
        columns=tuple(names),
        callbacks=watchers,
        **features,
    )
    fitted, held = split(len(ratings[2]), hold_out, seed)
    try:
        _fit(model, tuple(column[fitted] for column in ratings), tol, left, silent)
    except KeyboardInterrupt:
        if checkpoint is None or not persist.exists(checkpoint):
            raise
        typer.echo(f"Interrupted; the same command goes on from {str(checkpoint)!r}.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    score = model.report(tuple(column[held] for column in ratings), k=recommend or LIST) if len(held) else None
    save_model(model, out, inputs, force)
    if file is not None:
        _recommend(model, file, recommend, inputs, force, out)
    record = _record(model, score, len(fitted), len(held), out, file)
    with reporting(out):
        if json:
            show_json(record)
        elif not quiet:
            show_fields(f"completed after {model.n_iter_} sweeps", _fields(record))
            for text in model.notes():
                note(text, silent)
    raise typer.Exit(DONE if tol is None or model.relative_gap_ <= tol else SHORT)


def read_ratings(
    path: Path, names: list[str], sep: str | None, header: bool | None
) -> tuple[tuple[Array, ...], list[str], list[str]]:
    """Users, items and ratings of a file, the names of their columns there, and remarks on them."""
    frame, remark = read_table(path, sep, header, names[:2])
    user, item, rating = (column_of(list(frame.columns), name, "--columns", path) for name in names)
    for name in (user, item):
        if frame[name].isna().any():
            row = row_of(frame[name], frame[name].isna())
            raise ValueError(f"column {name!r} of {str(path)!r} is missing in row {row}; leave the row out.")
        if is_text(frame[name]) or frame[name].dtype.kind not in "iufb":
            frame[name] = as_ids(frame[name])
    # The later rating counts; otherwise a pair could be held out and fitted at once.
    earlier = frame.duplicated([user, item], keep="last").to_numpy()
    left_out = (
        f"Of pairs that are rated several times the last rating counts; {earlier.sum():,} earlier rows are left out."
    )
    latest = frame[~earlier]
    ratings = latest[user].to_numpy(), latest[item].to_numpy(), floats(latest[rating]).to_numpy()
    return ratings, [user, item, rating], [text for text in (remark, left_out if earlier.any() else "") if text]


def _features(path: Path | None, ids: str, sep: str | None, header: bool | None, like: Array) -> Any:
    """Ids, of the kind of those of the ratings, and features of a file; text is encoded, missing numbers stay."""
    if path is None:
        return None
    frame, _ = read_table(path, sep, header, [ids, "0"])
    column = frame.pop(ids if ids in frame else frame.columns[0])
    if not len(frame.columns):
        raise ValueError(
            f"{str(path)!r} must have a column of ids and others with features, got {column.name!r} alone."
        )
    text = [name for name in frame if is_text(frame[name])]
    numbers = {name: floats(frame[name], finite=False) for name in frame if name not in text}
    for name, values in numbers.items():
        if np.isinf(values).any():
            raise ValueError(
                f"column {name!r} of {str(path)!r} is infinite in row {row_of(values, np.isinf(values))}; leave it "
                "empty if it is not known, or leave the column out."
            )
    table = text_columns(frame[text]).assign(**numbers)
    encoded = table_encoder(list(numbers), dict.fromkeys(text)).fit_transform(table)
    return (column if like.dtype.kind not in "iufb" else as_ids(column)).to_numpy(), encoded


def _fit(model: Any, ratings: tuple[Array, ...], tol: float | None, left: Any, silent: bool) -> None:
    """Fit; warnings become remarks, except that on the gap, which is reported."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(ratings)
        if tol is not None:
            model.certify_to(tol, time_limit=left())
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        note(text, silent)
    model.set_params(callbacks=())


def _recommend(model: Any, file: Path, n: int, inputs: list[Path], force: bool, out: Path) -> None:
    """Write recommendations beside the model; without them the model is still there."""
    again = shlex.join(["projfree", "recommend", str(out), "--n", str(n), "--out", str(file)])
    saved = f"The model is in {str(out)!r}; `{again}` recommends from it."
    try:
        with text_file(file, inputs, force) as stream:
            write_lists(known_lists(model, n), stream)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted; no recommendations were written. {saved}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        error.add_note(saved)
        raise


def _record(model: Any, score: Any, kept: int, held: int, out: Path, file: Path | None) -> dict[str, Any]:
    names = ("rmse", "mae", "precision", "recall", "popular_precision", "popular_recall", "coverage", "k")
    return {
        "value": model.value_,
        "bound": model.bound_,
        "relative_gap": float(model.relative_gap_),
        "radius": model.radius_,
        "sweeps": model.n_iter_,
        "ratings": kept,
        "held_out_ratings": held,
        "users": len(model.user_ids_),
        "items": len(model.item_ids_),
        **{name: getattr(score, name, None) for name in names},
        "model": str(out),
        "recommendations": None if file is None else str(file),
    }


def _fields(record: dict[str, Any]) -> dict[str, str | None]:
    """The record as text."""
    gap, rmse, kept, held = (record[name] for name in ("relative_gap", "rmse", "ratings", "held_out_ratings"))
    lists = "precision {precision:.3f}, recall {recall:.3f}, {coverage:.0%} of all items; by popularity "
    lists += "{popular_precision:.3f}, {popular_recall:.3f}"
    return {
        "ratings": f"{kept:,} to fit, {held:,} held out, {record['users']:,} x {record['items']:,}",
        "radius": f"{record['radius']:.6g}",
        "value": f"{record['value']:.6g}",
        "lower bound": f"{record['bound']:.6g}",
        "certified gap": f"{gap:.2g} relative" + ("; --tol 0.1 works on it" if gap > 0.1 else ""),
        "held-out RMSE": None if rmse is None else f"{rmse:.4f}, mean absolute error {record['mae']:.4f}",
        f"lists of {record['k']}": None if rmse is None or np.isnan(record["precision"]) else lists.format(**record),
        "model": record["model"],
        "recommended": record["recommendations"],
    }
