"""`projfree explain`: the plan for a problem, without running it."""

from __future__ import annotations

import numpy as np

from projfree.cli import options
from projfree.cli.fit import make_estimator
from projfree.cli.output import Report, command
from projfree.cli.tables import read_samples

EPILOG = "Example:\n\nprojfree explain train.csv --target y --loss logistic --p 1.5 --radius 10"


@command
def explain(
    data: options.Data,
    target: options.Target,
    columns: options.Columns,
    linear: options.Linear,
    printing: options.Printing,
) -> Report:
    """Show which solver would be used for this data and why; nothing is run."""
    size, exponents = linear.size(), linear.exponents()
    rows = read_samples(data, target, columns, linear.loss)
    every = np.arange(len(rows.y))
    encoder = rows.encoder(every)
    plan = make_estimator(linear, rows, encoder, size or {"cv": 2}, exponents).explain(*rows.subset(every, encoder))
    record = {"problem": plan.problem, "solver": repr(plan.solver), "why": plan.why}
    note = "\n  the fit will choose the radius by cross-validation; the plan does not depend on it"
    return Report(record, plan.explain() + ("" if size else note))
