"""`projfree explain`: the plan for a problem, without running it."""

from __future__ import annotations

import numpy as np
import typer

from projfree.cli import options
from projfree.cli.fit import estimator, exponents_of, given_size, groups_of
from projfree.cli.output import guarded, note, show_json
from projfree.cli.tables import read_rows

EPILOG = "Example:\n\nprojfree explain train.csv --target y --loss logistic --p 1.5 --radius 10"


@guarded
def explain(
    data: options.Data,
    target: options.Target,
    loss: options.LossName = "auto",
    quantile: options.Level = None,
    norm: options.Norm = "lp",
    p: options.Exponent = None,
    q: options.AcrossGroups = None,
    feature_groups: options.FeatureGroups = None,
    radius: options.Radius = None,
    C: options.InverseStrength = None,
    alpha: options.Alpha = None,
    standardize: options.Standardize = None,
    intercept: options.Intercept = True,
    drop: options.Drop = None,
    impute: options.Impute = None,
    one_hot: options.OneHot = "auto",
    sep: options.Sep = None,
    header: options.Header = None,
    tol: options.Tol = 1e-6,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show which solver would be used for this data and why; nothing is run."""
    size, exponents = given_size(radius, C, alpha), exponents_of(p)
    rows = read_rows(data, target, loss=loss, drop=drop or (), sep=sep, header=header, impute=impute, one_hot=one_hot)
    for remark in rows.remarks:
        note(remark, json)
    every = np.arange(len(rows))
    encoder = rows.encoder(every)
    settings = {"norm": norm, "q": q, "standardize": standardize, "fit_intercept": intercept}
    settings |= {"quantile": quantile, "tol": tol}
    groups = groups_of(feature_groups, rows, encoder, data)
    model = estimator(rows.loss, size, exponents, None if size else 2, groups, settings)
    plan = model.explain(*rows.part(every, encoder))
    if json:
        show_json({"problem": plan.problem, "solver": repr(plan.solver), "why": plan.why})
        return
    typer.echo(plan.explain())
    if not size:
        typer.echo("  the fit will choose the radius by cross-validation; the plan does not depend on it")
