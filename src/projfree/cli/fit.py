"""`projfree fit`: a linear model over a ball, from a table to a folder."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from projfree.cli import models
from projfree.cli.models import model_of, radius_of, rows_of
from projfree.cli.output import DONE, INTERRUPTED, SHORT, Json, err, guarded, show_fields, show_json
from projfree.cli.watch import Bar, Keeper, checkpoint_of, resume_command

EPILOG = (
    "Examples:\n\n"
    "projfree fit train.csv --target y --p 1.5 --radius 10 --out model\n\n"
    "projfree fit people.parquet --target income --loss logistic --radius auto --out model --json\n\n"
    "Ctrl-C saves a checkpoint beside --out and prints the command that goes on."
)


@guarded
def fit(
    data: models.Data,
    target: models.Target,
    out: Annotated[Path, typer.Option(help="The folder of the model.", show_default=False)],
    loss: models.LossName = "squared",
    norm: models.Norm = "lp",
    p: models.Exponent = 2.0,
    radius: models.Radius = "auto",
    tol: models.Tol = 1e-6,
    max_iter: Annotated[int, typer.Option(help="The largest number of iterations.")] = 10_000,
    time_limit: Annotated[float | None, typer.Option(help="Seconds.", show_default=False)] = None,
    hold_out: Annotated[float, typer.Option(help="The part of the rows kept for the score; 0 for none.")] = 0.2,
    standardize: models.Standardize = False,
    intercept: models.Intercept = True,
    drop: models.Drop = None,
    seed: Annotated[int, typer.Option(help="Of the rows held out.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of an interrupted fit.")] = False,
    json: Json = False,
) -> None:
    """Fit a linear model whose coefficients lie in a ball; say how far from optimal it can be, and how it scores."""
    if not 0 <= hold_out < 1:
        raise ValueError(f"--hold-out must be at least 0 and less than 1, got {hold_out:g}.")
    settings: dict[str, Any] = {"norm": norm, "p": p, "radius": radius_of(radius), "tol": tol, "max_iter": max_iter}
    settings |= {"time_limit": time_limit, "standardize": standardize, "fit_intercept": intercept, "random_state": seed}
    rows = rows_of(data, target, loss, drop)
    train, test = _split(len(rows.y), hold_out, seed)
    model, kept = model_of(loss, **settings), checkpoint_of(out)
    keeper = Keeper()
    model.set_params(callbacks=(Bar(f"fit {data.name}", quiet=json), keeper))
    if resume:
        if not kept.exists():
            raise FileNotFoundError(f"there is no checkpoint at {str(kept)!r}; leave out --resume to begin anew.")
        model.set_params(checkpoint=str(kept))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status is reported below
        try:
            model.fit(part_of(rows.X, train), rows.y[train])
        except KeyboardInterrupt:
            _interrupted(keeper, kept)
    result = model.result_
    model.save(out)
    shutil.rmtree(kept, ignore_errors=True)
    score = float(model.score(part_of(rows.X, test), rows.y[test])) if len(test) else None
    _report(model, result, score, out, rows, len(train), len(test), json)
    raise typer.Exit(DONE if result.status.converged else SHORT)


def part_of(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a frame or an array."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _split(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(n)
    held = round(share * n) if n > 4 else 0
    return np.sort(order[held:]), np.sort(order[:held])


def _interrupted(keeper: Keeper, folder: Path) -> None:
    if keeper.save(folder):
        typer.echo(f"Interrupted; the state is in {str(folder)!r}. Go on with:\n  {resume_command()}", err=True)
    else:
        err().print("Interrupted before the first iteration; nothing was written.")
    raise typer.Exit(INTERRUPTED)


def _report(
    model: Any, result: Any, score: float | None, out: Path, rows: Any, n_train: int, n_test: int, json: bool
) -> None:
    kind = "accuracy" if hasattr(model, "classes_") else "R²"
    record = {
        "status": result.status.name.lower(),
        "value": result.value,
        "bound": result.bound,
        "relative_gap": result.relative_gap,
        "iterations": result.n_iter,
        "passes": result.n_passes,
        "seconds": result.seconds,
        "radius": model.radius_,
        "solver": repr(result.solver),
        "rows": n_train,
        "held_out_rows": n_test,
        "score": score,
        "score_kind": "accuracy" if kind == "accuracy" else "r2",
        "model": str(out),
    }
    if json:
        show_json(record)
        return
    gap = f"{result.gap:.3g}  (relative {result.relative_gap:.2g})"
    fields = {
        "value": f"{result.value:.8g}",
        **({"lower bound": f"{result.bound:.8g}", "certified gap": gap} if result.bound is not None else {}),
        **({"Frank-Wolfe gap": f"{gap}; the loss is not convex, so there is no bound"} if result.bound is None else {}),
        "radius": f"{model.radius_:.6g}" if model.radius_ is not None else "-",
        "work": f"{result.n_iter} iterations, {result.n_passes:.4g} passes, {result.seconds:.3g} s",
        "solver": repr(result.solver),
        "rows": f"{n_train:,} to fit, {n_test:,} held out, {model.n_features_in_:,} features",
        **({f"held-out {kind}": f"{score:.4f}"} if score is not None else {}),
        "model": str(out),
    }
    style = "bold green" if result.status.converged else "bold yellow"
    show_fields(str(result.status), fields, style)
