"""`projfree explain`: the plan for a problem, without running it."""

from __future__ import annotations

import numpy as np
import typer

from projfree.cli.asked import Asked, asking
from projfree.cli.file_rows import FileRows
from projfree.cli.models import model_of
from projfree.cli.output import Debug, Json, guarded, note, show_json
from projfree.solvers.choose import Plan

EPILOG = "Example:\n\nprojfree explain train.csv --target y --loss logistic --p 1.5 --radius 10"


@guarded
@asking
def explain(asked: Asked, json: Json = False, debug: Debug = False) -> None:
    """Say which solver would be used for this data and why; nothing is run."""
    settings, rows = asked.settings(), asked.rows()
    for remark in rows.remarks:
        note(remark, json)
    every = np.arange(rows.n)
    rows = rows.fitted_on(every) if isinstance(rows, FileRows) else rows
    given = (rows.part(every), rows.y) if isinstance(rows, FileRows) else (rows.data(every)[0],)
    made: Plan = model_of(settings, rows, asked.data).explain(*given)
    if not json:
        typer.echo(made.explain())
        if asked.radius is None:
            typer.echo("  the fit will choose the radius by cross-validation; the plan does not depend on it")
        return
    show_json({"problem": made.problem, "solver": repr(made.solver), "why": made.why})
