"""`projfree complete`: ratings in, a model and recommendations out."""

from __future__ import annotations

import csv
import math
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from projfree import persist
from projfree.checks import shown
from projfree.cli import options
from projfree.cli.checkpoints import Place, checkpoint_at, resume_command
from projfree.cli.destinations import new_file_at, new_model_at, refuse_inputs, safe_cell, written
from projfree.cli.output import INTERRUPTED, Debug, Force, Json, Quiet, guarded, note, show_fields, show_json
from projfree.cli.tables import Reading, numbers, read_table
from projfree.cli.watch import bar
from projfree.estimators.frame_columns import row_of
from projfree.estimators.saving import KIND
from projfree.run.callbacks import closed
from projfree.run.checkpoint import KIND as CHECKPOINT

EPILOG = (
    "Examples:\n\nprojfree complete ratings.csv --out model --recommend 10\n\n"
    "projfree complete ratings.parquet --columns who,what,stars --p 1.2 --radius 50 --out model\n\n"
    "Ctrl-C leaves a checkpoint next to --out and prints the command that goes on."
)


@guarded
def complete(
    data: options.Data,
    out: options.ModelFolder,
    columns: Annotated[str, typer.Option(help="The columns of users, items and ratings.")] = "user,item,rating",
    p: Annotated[float, typer.Option("--p", help="The exponent of the Schatten norm, from 1 to below 2.")] = 1.0,
    radius: Annotated[str, typer.Option(help="The radius, or auto: chosen on held-out ratings.")] = "auto",
    rank: Annotated[int, typer.Option(help="Components of the factors.")] = 40,
    tol: Annotated[
        float | None, typer.Option(help="A relative gap to certify; by default it is only computed.")
    ] = None,
    hold_out: Annotated[float, typer.Option(help="The part of the ratings kept for the score; 0 for none.")] = 0.1,
    recommend: Annotated[int, typer.Option(help="Items to recommend to each user; 0 for none.")] = 0,
    sep: options.Sep = None,
    header: options.Header = None,
    seed: Annotated[int, typer.Option(help="Of the ratings held out and the first factors.")] = 0,
    resume: options.Resume = False,
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
    size = options.radius_of(radius)
    file = out.with_name(out.name + ".recommendations.csv") if recommend else None
    kept = _checked_places(data, out, file, resume=resume, force=force)
    settings = {"p": p, "radius": None if isinstance(size, str) else size, "rank": rank, "tol": tol}
    model = _model({**settings, "random_state": seed, "checkpoint": str(kept.path)})
    users, items, values = _ratings(data, columns, Reading(sep, header), quiet or json)
    order = np.random.default_rng(seed).permutation(len(values))
    held, fitted = order[: round(hold_out * len(values))], np.sort(order[round(hold_out * len(values)) :])
    if not kept.there:
        kept.forget()
    watchers = () if quiet or json else (bar(f"complete {data.name}"),)
    _fit(model, [(users[k], items[k], values[k]) for k in fitted], kept, watchers)
    rmse = float(model.rmse([(users[k], items[k], values[k]) for k in held])) if len(held) else None
    if file is not None:
        _recommendations(model, file, recommend, force)
    new_model_at(out, [data], force, KIND)  # another process may have been faster
    model.save(out)
    kept.forget()
    if json or not quiet:
        _report(model, rmse, len(fitted), len(held), out, file, json)


def _model(settings: dict[str, Any]) -> Any:
    from projfree.estimators.completion import MatrixCompletion

    model = MatrixCompletion(**settings)
    model._checked()
    return model


def _checked_places(data: Path, out: Path, file: Path | None, *, resume: bool, force: bool) -> Place:
    new_model_at(out, [data], force, KIND)
    if file is not None:
        new_file_at(file, [data], force)
    kept = checkpoint_at(out, CHECKPOINT, resume=resume, force=force)
    refuse_inputs(kept.path, [data])
    return kept


def _fit(model: Any, ratings: list[Any], kept: Place, watchers: tuple[Any, ...]) -> None:
    model.set_params(callbacks=watchers)
    try:
        with closed(watchers), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the gap is reported
            model.fit(ratings)
    except KeyboardInterrupt:
        there = persist.exists(kept.path)
        text = f"Interrupted; go on with:\n  {resume_command()}" if there else "Interrupted; nothing was written."
        typer.echo(text, err=True)
        raise typer.Exit(INTERRUPTED) from None
    model.set_params(callbacks=(), checkpoint=None)


def _ratings(path: Path, columns: str, reading: Reading, quiet: bool) -> tuple[list[Any], list[Any], list[float]]:
    names = [name.strip() for name in columns.split(",")]
    if len(names) != 3:
        raise ValueError(f"--columns must name three columns, users, items and ratings, got {shown(columns)}.")
    table = read_table(path, reading)
    if table.remark:
        note(table.remark, quiet)
    user, item, rating = (table.column(name, "--columns") for name in names)
    for name in (user, item):
        if table.frame[name].isna().any():
            row = row_of(table.frame[name], int(np.flatnonzero(table.frame[name].isna().to_numpy())[0]))
            raise ValueError(f"column {name!r} of {str(path)!r} is missing in row {row}; leave the row out.")
    return table.frame[user].tolist(), table.frame[item].tolist(), numbers(table.frame[rating]).tolist()


def _recommendations(model: Any, path: Path, most: int, force: bool) -> None:
    """A file next to the model: user, place, item, predicted rating."""
    with written(path, force) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["user", "place", "item", "rating"])
        for user in model.user_ids_.tolist():
            items, scores = model.recommend(user, most)
            for place, (item, score) in enumerate(zip(items.tolist(), scores.tolist(), strict=True), 1):
                writer.writerow([safe_cell(user), place, safe_cell(item), f"{score:.4f}"])


def _report(model: Any, rmse: float | None, kept: int, held: int, out: Path, file: Path | None, json: bool) -> None:
    gap = float(model.relative_gap_)
    if json:
        record = {"value": model.value_, "bound": model.bound_, "relative_gap": gap, "radius": model.radius_}
        record |= {"sweeps": model.n_iter_, "ratings": kept, "held_out_ratings": held, "rmse": rmse, "model": str(out)}
        show_json({**record, "recommendations": None if file is None else str(file)})
        return
    fields = {
        "ratings": f"{kept:,} to fit, {held:,} held out, {len(model.user_ids_):,} x {len(model.item_ids_):,}",
        "radius": f"{model.radius_:.6g}",
        "value": f"{model.value_:.6g}",
        "lower bound": f"{model.bound_:.6g}" if math.isfinite(model.bound_) else "not computed",
        "certified gap": f"{gap:.2g} relative" if math.isfinite(gap) else "not computed",
        **({"held-out RMSE": f"{rmse:.4f}"} if rmse is not None else {}),
        "model": str(out),
        **({"recommended": str(file)} if file is not None else {}),
    }
    show_fields(f"completed after {model.n_iter_} sweeps", fields, "bold green")
