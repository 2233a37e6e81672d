"""`projfree explain`: the plan for a problem, without running it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import typer

from projfree.cli import options
from projfree.cli.clusters import ClusterRows, cluster_at, cluster_rows
from projfree.cli.fit import read_rows, settings_of
from projfree.cli.models import AnyRows, Settings, model_of
from projfree.cli.output import Debug, Json, guarded, note, show_json
from projfree.cli.rows import Rows
from projfree.cli.tables import Reading
from projfree.solvers.plan import Plan

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
    cluster: options.Cluster = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Say which solver would be used for this data, why, and what it is expected to cost; nothing is run."""
    level = options.level_of(quantile, loss.value)
    settings = settings_of(norm.value, p, q, radius, tol, standardize, intercept, feature_groups, more=level)
    on = contextlib.ExitStack()
    if cluster is not None:
        rows: AnyRows = cluster_rows(on.enter_context(cluster_at(cluster)), data, target, loss.value, drop)
    else:
        rows = read_rows(data, target, loss.value, drop, Reading(sep, header), impute, one_hot)
    for remark in rows.remarks:
        note(remark, json)
    with on:
        made = _explained(settings, rows, data)
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


def _explained(settings: Settings, rows: AnyRows, path: Path) -> Plan:
    """The plan for the rows."""
    if isinstance(rows, ClusterRows):
        explained: Plan = model_of(settings, rows, path).explain(rows.whole)
        return explained
    every = np.arange(rows.n)
    rows = rows.fitted_on(every) if isinstance(rows, Rows) else rows
    model = model_of(settings, rows, path)
    given = (rows.part(every), rows.y) if isinstance(rows, Rows) else (rows.data(every)[0],)
    made: Plan = model.explain(*given)
    return made
