"""`projfree complete`: ratings in, a model and recommendations out."""

from __future__ import annotations

import csv
import math
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from projfree.checks import shown
from projfree.cli import models
from projfree.cli.models import radius_of
from projfree.cli.output import INTERRUPTED, Json, guarded, show_fields, show_json
from projfree.cli.tables import numbers, read_table
from projfree.cli.watch import Bar, checkpoint_of, resume_command

EPILOG = (
    "Examples:\n\nprojfree complete ratings.csv --out model --recommend 10\n\n"
    "projfree complete ratings.parquet --columns who,what,stars --p 1.2 --radius 50 --out model\n\n"
    "Ctrl-C leaves a checkpoint beside --out and prints the command that goes on."
)


@guarded
def complete(
    data: models.Data,
    out: Annotated[Path, typer.Option(help="The folder of the model.", show_default=False)],
    columns: Annotated[str, typer.Option(help="The columns of users, items and ratings.")] = "user,item,rating",
    p: models.Exponent = 1.0,
    radius: Annotated[str, typer.Option(help="The radius, or auto: chosen on held-out ratings.")] = "auto",
    rank: Annotated[int, typer.Option(help="Components of the factors.")] = 40,
    tol: Annotated[
        float | None, typer.Option(help="A relative gap to certify; by default it is only computed.")
    ] = None,
    hold_out: Annotated[float, typer.Option(help="The part of the ratings kept for the score; 0 for none.")] = 0.1,
    recommend: Annotated[int, typer.Option(help="Items to recommend to each user; 0 for none.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the ratings held out and the first factors.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of an interrupted run.")] = False,
    json: Json = False,
) -> None:
    """Complete a matrix of ratings over a Schatten ball; score it on ratings it has not seen."""
    from projfree.estimators.completion import MatrixCompletion

    if not 0 <= hold_out < 1:
        raise ValueError(f"--hold-out must be at least 0 and less than 1, got {hold_out:g}.")
    users, items, values = _ratings(data, columns)
    order = np.random.default_rng(seed).permutation(len(values))
    held, kept = order[: round(hold_out * len(values))], np.sort(order[round(hold_out * len(values)) :])
    size, folder = radius_of(radius), checkpoint_of(out)
    if resume and not folder.exists():
        raise FileNotFoundError(f"there is no checkpoint at {str(folder)!r}; leave out --resume to begin anew.")
    bar = Bar(f"complete {data.name}", quiet=json)
    model = MatrixCompletion(
        p=p,
        radius=None if isinstance(size, str) else size,
        rank=rank,
        tol=tol,
        random_state=seed,
        callbacks=(bar,),
        checkpoint=str(folder),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the gap is reported below
            model.fit([(users[k], items[k], values[k]) for k in kept])
    except KeyboardInterrupt:
        bar.close()
        there = folder.exists()
        text = f"Interrupted; go on with:\n  {resume_command()}" if there else "Interrupted; nothing was written."
        typer.echo(text, err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bar.close()
    model.set_params(callbacks=(), checkpoint=None)
    model.save(out)
    _forget(folder)
    rmse = float(model.rmse([(users[k], items[k], values[k]) for k in held])) if len(held) else None
    file = _recommendations(model, out, recommend) if recommend else None
    _report(model, rmse, len(kept), len(held), out, file, json)


def _ratings(path: Path, columns: str) -> tuple[list[Any], list[Any], list[float]]:
    table, names = read_table(path), [name.strip() for name in columns.split(",")]
    if len(names) != 3:
        raise ValueError(f"--columns must name three columns, users, items and ratings, got {shown(columns)}.")
    user, item, rating = (table.column(name, "--columns") for name in names)
    for name in (user, item):
        if table.frame[name].isna().any():
            row = int(np.flatnonzero(table.frame[name].isna().to_numpy())[0]) + 1
            raise ValueError(f"column {name!r} of {str(path)!r} is missing in row {row}; leave the row out.")
    values = numbers(table.frame[rating], f"column {rating!r} of {str(path)!r}")
    return table.frame[user].tolist(), table.frame[item].tolist(), values.tolist()


def _forget(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _recommendations(model: Any, out: Path, most: int) -> Path:
    """``recommendations.csv`` beside the model: user, place, item, predicted rating."""
    path = out.with_name(out.name + ".recommendations.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "place", "item", "rating"])
        for user in model.user_ids_:
            items, scores = model.recommend(user, most)
            writer.writerows(
                (user, k, item, f"{s:.4f}") for k, (item, s) in enumerate(zip(items, scores, strict=True), 1)
            )
    return path


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
