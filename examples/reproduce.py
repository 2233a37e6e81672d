"""Three of the paper's problems, solved and certified in a few seconds, offline on packaged data.

The paper is "Revisiting Projection-Free Optimization for Strongly Convex Constraint Sets" (AAAI 2019): Primal
Averaging on an l_2 regression, an l_2 classification and a matrix completion over a Schatten ball.
"""

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from projfree import (
    CorrectivePrimalAveraging,
    Entries,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    OpenLoop,
    PrimalAveraging,
    SchattenBall,
    Squared,
    as_data,
    minimize,
)
from projfree.datasets import load_adult, load_year_sample

SOLVERS = {
    "Frank-Wolfe 2/(t+1)": FrankWolfe(OpenLoop(2)),
    "Primal Averaging (PA)": PrimalAveraging(),
    "corrective PA": CorrectivePrimalAveraging(),
}


def regression():
    data = load_year_sample()
    f = Objective(Squared(), as_data(data.X, data.y), fit_intercept=True)
    return "least squares, YearPredictionMSD sample 7,000 x 90, l_2", f, LpBall(2, radius=4.0)


def classification():
    data = load_adult()
    f = Objective(Logistic(), as_data(data.X, data.y), fit_intercept=True)
    return "logistic, Adult 48,842 x 108, l_2", f, LpBall(2, radius=2.0)


def completion(shape=(150, 200), rank=4, observed=0.3, seed=0):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1])) / np.sqrt(rank)
    rows, cols = np.nonzero(rng.random(shape) < observed)
    y = M[rows, cols] + 0.1 * rng.standard_normal(len(rows))
    f = Objective(Squared(), as_data(Entries(rows, cols, shape), y))
    ball = SchattenBall(1.5, radius=0.5 * SchattenBall(1.5, radius=1.0).norm(M))
    return f"completion, generated rank {rank}, {shape[0]} x {shape[1]}, Schatten-1.5", f, ball


def solved(f, ball, solver, tol, most):
    """One row: what the run proved, and whether a check from the data alone agrees."""
    result = minimize(f, ball, solver, tol=tol, max_iter=most)
    check = result.certificate.verify(objective=f)
    return (
        f"{result.value:.6g}",
        f"{result.bound:.6g}",
        f"{result.relative_gap:.1e}",
        f"{result.n_passes:.0f}",
        f"{result.seconds:.2f}",
        "ok" if check.ok else "FAILED",
    )


def main(tol=1e-3, most=300):
    console = Console()
    console.print(f"Each run ends at a certified relative gap of {tol:g}, or after {most} iterations.")
    for problem in (regression, classification, completion):
        title, f, ball = problem()
        table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, collapse_padding=True)
        table.add_column("solver", no_wrap=True, min_width=21)
        for name in ("value", "lower bound", "gap", "passes", "s", "check"):
            table.add_column(name, justify="right", no_wrap=True)
        for name, solver in track(SOLVERS.items(), description=f"{title} ...", transient=True, console=console):
            table.add_row(name, *solved(f, ball, solver, tol, most))
        console.print(table)
    console.print("The minimum lies between the lower bound and the value; the check recomputed both from the data.")


if __name__ == "__main__":
    main()
