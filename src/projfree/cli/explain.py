"""`projfree explain`: the plan for a problem, without running it."""

from __future__ import annotations

import numpy as np
import typer

from projfree.cli import options
from projfree.cli.fit import read_rows, settings_of
from projfree.cli.models import model_of
from projfree.cli.output import Debug, Json, guarded, note, show_json
from projfree.cli.rows import Rows
from projfree.cli.tables import Reading

EPILOG = "Example:\n\nprojfree explain train.csv --target y --loss logistic --p 1.5 --radius 10"


@guarded
def explain(
    data: options.Data,
    target: options.Target,
    loss: options.LossName = options.LossChoice.auto,
    quantile: options.Level = None,
    norm: options.Norm = options.NormChoice.lp,
    p: options.Exponent = None,
    q: options.AcrossGroups = None,
    feature_groups: options.FeatureGroups = None,
    radius: options.Radius = "auto",
    tol: options.Tol = 1e-6,
    standardize: options.Standardize = None,
    intercept: options.Intercept = True,
    drop: options.Drop = None,
    impute: options.Impute = None,
    one_hot: options.OneHot = "auto",
    sep: options.Sep = None,
    header: options.Header = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Say which solver would be used for this data, why, and what it is expected to cost; nothing is run."""
    level = options.level_of(quantile, loss.value)
    settings = settings_of(norm.value, p, q, radius, tol, standardize, intercept, feature_groups, more=level)
    rows = read_rows(data, target, loss.value, drop, Reading(sep, header), impute, one_hot)
    for remark in rows.remarks:
        note(remark, json)
    every = np.arange(rows.n)
    rows = rows.fitted_on(every) if isinstance(rows, Rows) else rows
    model = model_of(settings, rows, data)
    made = model.explain(rows.part(every), rows.y) if isinstance(rows, Rows) else model.explain(rows.data(every)[0])
    if not json:
        typer.echo(made.explain())
        if radius == "auto":
            typer.echo("  the fit will choose the radius; the plan does not depend on it")
        return
    choices = [
        {"solver": repr(c.solver), "reads": c.reads, "work": c.work, "memory": c.memory, "why": c.why}
        for c in made.choices
    ]
    show_json({"problem": made.problem, "choices": choices})
