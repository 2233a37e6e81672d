"""The rate of Primal Averaging on other strongly convex sets: l_p, group and Schatten balls (Theorem 1)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from projfree import GroupBall, LpBall, Objective, SchattenBall, Squared, as_data, paper
from reproduction.base import Array, Claim, Experiment, Figure, Mode, Row, Task
from reproduction.drawing import label_axes, log_scales, panels, plot_errors, plot_reference
from reproduction.measure import curve_rows, slope_rows
from reproduction.problems import certified_minimum, year
from reproduction.rules import MINUS_TWO, bounded, select

RHOS, MOST = (0.3, 0.9), 1_000
WINDOWS = ((10, 100), (30, 300), (100, 1000))
SETS: dict[str, Any] = {
    "l₁.₅": (LpBall(1.5, 1.0), lambda r: paper.lp_oracle(1.5, r)),
    "l₁.₁": (LpBall(1.1, 1.0), lambda r: paper.lp_oracle(1.1, r)),
    "group (2, 1.5)": (GroupBall(2, 1.5, 1.0), lambda r: paper.group_oracle(2, 1.5, r)),
    "group (1.5, 1.5)": (GroupBall(1.5, 1.5, 1.0), lambda r: paper.group_oracle(1.5, 1.5, r)),
    "Schatten-1.5": (SchattenBall(1.5, 1.0), lambda r: paper.schatten_oracle(1.5, r)),
}


def rate(mode: Mode, name: str, rho: float) -> Task:
    """Return the task of PA on least squares with one or several outputs, through the Gram matrix."""

    def run() -> Iterator[Row]:
        table = year("quick")
        one = name.startswith("l")
        X = table.X - table.X.mean(axis=0)
        y = table.y - table.y.mean()
        if not one:
            # The last four columns are predicted beside the year, so that the parameter is a matrix.
            X, Y = X[:, :-4], np.column_stack([y / y.std(), X[:, -4:]])
            y = Y - Y.mean(axis=0)
        H, b = 2.0 * (X.T @ X) / len(y), 2.0 * (X.T @ y) / len(y)
        unit, oracle = SETS[name]
        ball = unit.resized(rho * unit.norm(np.linalg.solve(H, b)))
        best = certified_minimum(Objective(Squared(), as_data(X, y), fit_intercept=False), ball, 1e-13)
        at_best = H @ best.w - b

        def error(w: Array) -> float:
            e = w - best.w
            return float(0.5 * np.sum(e * (H @ e)) + np.sum(e * at_best))

        start = np.zeros(b.shape)
        iterates = paper.primal_averaging(lambda w: H @ w - b, oracle(ball.radius), start, paper.Averaged())
        errors = np.array([error(w) for w in islice(iterates, MOST)])
        t = np.arange(1, MOST + 1)
        place = {**table.place, "set": name, "rho": rho, "radius": ball.radius, "method": "PA"}
        yield {**place, "measure": "gap of the minimum", "value": best.gap}
        yield from curve_rows("error", t, errors, **place)
        yield from slope_rows(t, errors, WINDOWS, max(100 * best.gap, 1e-12 * best.value), **place)

    return Task(f"{name} rho={rho:g}", run)


def tasks(mode: Mode) -> list[Task]:
    """Return the tasks: each set at two radii, on the packaged sample in both modes."""
    return [rate(mode, name, rho) for name in SETS for rho in RHOS]


def draw(table: Any) -> Any:
    """Plot the errors on all sets, one panel per radius."""
    figure, axes = panels(2, 3.6, 5.0)
    for axis, rho in zip(axes, RHOS, strict=True):
        rows = select(table, rho=rho)
        plot_errors(axis, rows, "set")
        plot_reference(axis, select(rows, set="l₁.₁"), {"-2": -2.0})
        log_scales(axis)
        label_axes(axis, f"least squares, ρ = {rho:g}", "iteration t", "f(w) - f*")
    return figure


EXPERIMENT = Experiment(
    name="curved_sets",
    title="Rate of Primal Averaging on other strongly convex sets",
    method=(
        "Least squares on the packaged rows of YearPredictionMSD, with five outputs where the parameter is a matrix; "
        "1,000 iterations from zero, f* certified, errors without cancellation. The radius is ρ times the norm of the "
        "unconstrained minimiser."
    ),
    tasks=tasks,
    claims=(
        Claim("rate", "Theorem 1, Section 3.1", "PA falls like 1/t² on l_p, group and Schatten-p balls", "≤ -2",
              "holds if the slope on [100, 1000] is -1.9 or steeper for every set and radius",
              bounded("slope", {"set": "", "rho": "ρ = "}, MINUS_TWO, window="[100, 1000]"), False,
              "curved-sets"),
    ),
    figures=(Figure("curved-sets", 0, "PA on other strongly convex sets.", draw),),
)  # fmt: skip
