"""`projfree fit`: a linear model over a ball, from a table to a folder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import typer

from projfree.checks import Array
from projfree.cli import options
from projfree.cli.asked import Asked, asking
from projfree.cli.destinations import new_model_at, save_model
from projfree.cli.file_rows import FileRows
from projfree.cli.fit_report import report
from projfree.cli.models import AnyRows, fit_rows, held_out_score, model_of, with_encoder
from projfree.cli.output import DONE, SHORT, Debug, Force, Json, Quiet, Verbose, guarded, note, reporting
from projfree.cli.watch import bar, logged
from projfree.estimators.saving import KIND
from projfree.run.callbacks import IterationLines

EPILOG = (
    "Examples:\n\n"
    "projfree fit train.csv --target y --p 1.5 --radius 10 --out model\n\n"
    "projfree fit people.parquet --target income --cv 5 --out model --json\n\n"
    "projfree fit adult.data.gz --target -1 --out model   # text columns, '?', no header"
)


@guarded
@asking
def fit(
    asked: Asked,
    out: options.ModelFolder,
    cv: options.Folds = None,
    max_iter: options.MaxIter = 10_000,
    time_limit: options.TimeLimit = None,
    hold_out: options.HoldOut = 0.2,
    seed: options.Seed = 0,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Fit a linear model whose coefficients lie in a ball; say how far from optimal it can be, and how it scores."""
    options.refuse_share("--hold-out", hold_out)
    options.refuse_below("--max-iter", max_iter, 1)
    options.refuse_below("--time-limit", time_limit, 0.0, strictly=True)
    options.refuse_below("--seed", seed, 0)
    settings, data = asked.settings(cv, max_iter=max_iter, time_limit=time_limit, random_state=seed), asked.data
    new_model_at(out, [data], force, KIND)
    rows = asked.rows()
    for remark in rows.remarks:
        note(remark, quiet or json)
    train, test = split(rows.n, hold_out, seed)
    rows = rows.fitted_on(train) if isinstance(rows, FileRows) else rows
    model = model_of(settings, rows, data)
    if settings.cv:  # a search shows its folds itself
        model.set_params(verbose=2 if verbose else 0 if quiet or json else 1)
    else:
        model.set_params(callbacks=_watchers(data, verbose, quiet or json))
    model = _fitted(model, rows, train, verbose)
    score = held_out_score(model, rows, test)
    save_model(with_encoder(model, rows), out, [], force)
    with reporting(out):
        report(model, score, out, rows.loss, len(train), len(test), json=json, quiet=quiet)
    raise typer.Exit(DONE if model.result_.status.converged else SHORT)


def split(n: int, share: float, seed: int) -> tuple[Array, Array]:
    """Rows to fit and rows to score, each in order."""
    order = np.random.default_rng(seed).permutation(n)
    held = round(share * n) if n > 4 else 0
    return np.sort(order[held:]), np.sort(order[:held])


def _watchers(data: Path, verbose: bool, silent: bool) -> tuple[Any, ...]:
    if verbose:
        return (IterationLines(),)
    return () if silent else (bar(f"fit {data.name}"),)


def _fitted(model: Any, rows: AnyRows, train: Array, verbose: bool) -> Any:
    with warnings.catch_warnings(), logged(verbose):
        warnings.simplefilter("ignore")  # the status is reported
        return fit_rows(model, rows, train)
