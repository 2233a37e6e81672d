"""The estimators against scikit-learn, in one run: searches of a classifier, and outliers in songs.

    python benchmarks/estimators.py [--only speed robust] [--commit]

`speed` compares 20 radii x 5 folds on Adult with 20 penalties x 5 folds of `LogisticRegressionCV`, at the suboptimality
that the other one reaches. Neither scales the features, which would be other problems. Times are those of the
processor, with one thread. `robust` is the error in years, clean and with a tenth of the training years set to gross
errors; there all scale. Searches of least squares are in `search.py`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from common import console, with_one_thread
from record import destinations, keep, machine, versions
from rich.table import Table
from sklearn.linear_model import HuberRegressor, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from projfree import (
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    Logistic,
    LpBall,
    Objective,
    as_data,
    minimize,
)
from projfree.datasets import load_adult, load_year_sample

SOLVERS = ("newton-cholesky", "lbfgs", "newton-cg")
Rows = list[dict[str, Any]]


def timed(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    begun = time.process_time()
    model.fit(X, y)
    return time.process_time() - begun


def speed() -> Rows:
    """Searches of a classifier on Adult."""
    adult = load_adult()
    X, y = adult.X, adult.y
    folds = list(StratifiedKFold(5).split(X, y))
    grid = {"Cs": np.geomspace(1e-5, 1e2, 20), "l1_ratios": (0,), "use_legacy_attributes": False}
    settings = {**grid, "cv": folds, "tol": 1e-4, "max_iter": 1000, "scoring": "accuracy"}
    models = {solver: LogisticRegressionCV(**settings, solver=solver) for solver in SOLVERS}
    seconds = {solver: timed(model, X, y) for solver, model in models.items()}
    fastest = min(seconds, key=seconds.__getitem__)
    coefs = np.reshape(models[fastest].coefs_paths_, (5, 20, -1))[:, :, : X.shape[1]]
    rows = folds[0][0]
    worst = max(_excess(X[rows], y[rows], coefs[0, j]) for j in (0, 10, 19))
    radii = np.linalg.norm(coefs, axis=2).mean(axis=0)  # the same problems
    table: Rows = [
        {"model": f"LogisticRegressionCV({name})", "CPU s": s, "largest gap": worst if name == fastest else None}
        for name, s in seconds.items()
    ]
    for p, tol in ((2.0, worst), (2.0, 1e-6), (1.5, worst), (1.5, 1e-6)):
        given = {"radii": radii if p == 2.0 else 20, "standardize": False}
        search = ConstrainedClassifierCV(p=p, cv=folds, tol=tol, **given)
        took, name = timed(search, X, y), f"ConstrainedClassifierCV(p={p:g}, tol={tol:.0e})"
        table.append({"model": name, "CPU s": took, "largest gap": float(search.result_.relative_gap)})
    for row in table:
        row["over the fastest peer"] = row["CPU s"] / seconds[fastest]
    return table


def _excess(X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """By how much the loss of ``w`` (with its best intercept) can exceed the minimum over the ball through it."""
    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    best = minimize(f, LpBall(2, float(np.linalg.norm(w))), tol=1e-9)
    return float((f(f.point(w)) - best.bound) / best.bound)


def robust() -> Rows:
    """Mean absolute errors in years on held-out songs."""
    songs = load_year_sample()
    X, y = songs.X[:5000], songs.y[:5000]
    rng, spoiled = np.random.default_rng(0), y.copy()
    rows = rng.choice(5000, size=500, replace=False)
    spoiled[rows] = rng.uniform(0, 1000, size=500)
    models = {
        f"ConstrainedRegressor({loss!r})": ConstrainedRegressor(loss, p=2, radius=10.0, tol=1e-6, standardize=True)
        for loss in ("squared", "huber", "biweight")
    }
    models["HuberRegressor, scaled"] = make_pipeline(StandardScaler(), HuberRegressor(max_iter=1000))
    models["RidgeCV, scaled"] = make_pipeline(StandardScaler(), RidgeCV())
    table: Rows = []
    for name, model in models.items():
        errors = [
            float(np.mean(np.abs(model.fit(X, target).predict(songs.X[5000:]) - songs.y[5000:])))
            for target in (y, spoiled)
        ]
        table.append({"model": name, "clean, years": errors[0], "with outliers, years": errors[1]})
    return table


PARTS = {"speed": speed, "robust": robust}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="*", default=list(PARTS), choices=PARTS)
    destinations(options)
    chosen = options.parse_args()
    with_one_thread()
    payload: dict[str, Any] = {"machine": machine(), "versions": versions("scikit-learn")}
    for name in chosen.only:
        payload[name] = PARTS[name]()
        table = Table(*payload[name][0], title=name)
        for row in payload[name]:
            table.add_row(*(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()))
        console().print(table)
    keep("estimators", payload, chosen)


if __name__ == "__main__":
    main()
