"""`projfree explain`: the plan for a problem, without running it."""

from __future__ import annotations

import typer

from projfree.cli import models
from projfree.cli.models import model_of, radius_of, rows_of
from projfree.cli.output import Json, guarded, show_json
from projfree.solvers import plan

EPILOG = "Example:\n\nprojfree explain train.csv --target y --loss logistic --p 1.5 --radius 10"


@guarded
def explain(
    data: models.Data,
    target: models.Target,
    loss: models.LossName = "squared",
    norm: models.Norm = "lp",
    p: models.Exponent = 2.0,
    radius: models.Radius = "auto",
    tol: models.Tol = 1e-6,
    standardize: models.Standardize = False,
    intercept: models.Intercept = True,
    drop: models.Drop = None,
    json: Json = False,
) -> None:
    """Say which solver would be used for this data, why, and what it is expected to cost; nothing is run."""
    rows = rows_of(data, target, loss, drop)
    settings = {"norm": norm, "p": p, "radius": radius_of(radius), "tol": tol, "standardize": standardize}
    model = model_of(loss, **settings, fit_intercept=intercept)
    prepared = model._prepared(model._table(rows.X, rows.y, None))
    made = plan(prepared.problem.objective, prepared.ball, tol)
    if not json:
        typer.echo(made.explain())
        return
    choices = [
        {"solver": repr(c.solver), "reads": c.reads, "work": c.work, "memory": c.memory, "why": c.why}
        for c in made.choices
    ]
    show_json({"problem": made.problem, "choices": choices})
