"""Default models against scikit-learn's defaults and against the best radius of a fine grid, on data of many kinds.

    python benchmarks/defaults.py [--only NAME ...] [--splits 5] [--grid 13] [--commit]

Scores are R2 or accuracy on held-out rows, the means of random splits (stratified for classes). The best radius is the
one of the grid with the best mean score on the held-out rows themselves, which no method can know: the difference to it
is what is lost by choosing from the training rows alone. The cost is the processor time of a default fit over that of
a fit with the same radius.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import commit, console, machine
from defaults_data import Case, cases
from rich.table import Table
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from threadpoolctl import threadpool_limits

from projfree import ConstrainedClassifier, ConstrainedRegressor

#: Grids go from the chosen radius divided by this to it times this.
REACH = 20.0
#: Fits of the grid end at this gap, which no score notices.
TOL = 1e-3
#: Sizes at which the cost is measured, rows by features.
SIZES = ((1_000, 20), (20_000, 50), (20_000, 500))


def timed(model: Any, X: Any, y: np.ndarray) -> tuple[Any, float]:
    begun = time.process_time()
    return model.fit(X, y), time.process_time() - begun


def peer(case: Case) -> Any:
    """What scikit-learn's documentation would begin with, on scaled columns."""
    scaler = MaxAbsScaler() if hasattr(case.X, "tocsr") else StandardScaler()
    return make_pipeline(scaler, LogisticRegression(max_iter=10_000) if case.classifies else RidgeCV())


def measured(case: Case, norm: dict[str, Any], splits: int, size: int) -> dict[str, Any]:
    """Mean scores and the cost for one norm."""
    kind, split = (
        (ConstrainedClassifier, StratifiedShuffleSplit) if case.classifies else (ConstrainedRegressor, ShuffleSplit)
    )
    ours, theirs, grids, radii, seconds = [], [], [], [], np.zeros(2)
    factors = np.geomspace(1.0 / REACH, REACH, size)
    for rows, held in split(splits, test_size=0.3, random_state=0).split(np.zeros(len(case.y)), case.y):
        X, y, Xt, yt = case.X[rows], case.y[rows], case.X[held], case.y[held]
        model, spent = timed(kind(**norm), X, y)
        _, alone = timed(kind(**norm, radius=model.radius_), X, y)
        seconds += spent, alone
        ours.append(model.score(Xt, yt))
        theirs.append(peer(case).fit(X, y).score(Xt, yt))
        radii.append(model.radius_)
        fits = [kind(**norm, radius=model.radius_ * factor, tol=TOL).fit(X, y) for factor in factors]
        grids.append([fit.score(Xt, yt) for fit in fits])
    best = np.mean(grids, axis=0)
    return {
        "data": case.name,
        "kind": case.kind,
        "norm": norm,
        "ours": float(np.mean(ours)),
        "best": float(max(best.max(), np.mean(ours))),
        "best factor": float(factors[best.argmax()]),
        "scikit-learn": float(np.mean(theirs)),
        "radius": float(np.mean(radii)),
        "cost": float(seconds[0] / seconds[1]),
        "fit seconds": float(seconds[1] / splits),
    }


def costs(repeat: int = 5) -> list[dict[str, Any]]:
    """The smallest times of interleaved fits, with and without the choice of the radius."""
    rng, found = np.random.default_rng(0), []
    for n, d in SIZES:
        X = rng.standard_normal((n, d))
        u = X @ rng.standard_normal(d)
        y = u + 0.5 * u.std() * rng.standard_normal(n)
        for kind, target in ((ConstrainedRegressor, y), (ConstrainedClassifier, (y > 0).astype(int))):
            for p in (1.0, 1.5, 2.0):
                radius = kind(p=p).fit(X, target).radius_
                pairs = [
                    (timed(kind(p=p), X, target)[1], timed(kind(p=p, radius=radius), X, target)[1])
                    for _ in range(repeat if n * d < 5_000_000 else 1)
                ]
                spent, alone = np.min(pairs, axis=0)
                found.append({"rows": n, "features": d, "model": kind.__name__, "p": p, "cost": float(spent / alone)})
    return found


def show(rows: list[dict[str, Any]], sizes: list[dict[str, Any]]) -> None:
    """The tables."""
    table = Table("data", "norm", "ours", "best radius", "lost", "scikit-learn", "cost")
    for row in rows:
        norm = " ".join(f"{k}={v}" for k, v in row["norm"].items())
        scores = (f"{row[k]:.4f}" for k in ("ours", "best"))
        lost = row["best"] - row["ours"]
        table.add_row(row["data"], norm, *scores, f"{lost:.4f}", f"{row['scikit-learn']:.4f}", f"{row['cost']:.2f}")
    out = console()
    out.print(table)
    lost = np.array([row["best"] - row["ours"] for row in rows])
    out.print(f"lost to the best radius: median {np.median(lost):.4f}, largest {lost.max():.4f}")
    for row in sizes:
        out.print(f"{row['rows']:,} x {row['features']}, {row['model']}, p={row['p']}: {row['cost']:.2f} times a fit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--grid", type=int, default=13)
    parser.add_argument("--commit", action="store_true")
    given = parser.parse_args()
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases():
            if given.only and case.name not in given.only:
                continue
            for norm in case.norms:
                rows.append(measured(case, norm, given.splits, given.grid))
                print(rows[-1], flush=True)
        sizes = [] if given.only else costs()
    show(rows, sizes)
    if given.commit:
        commit("defaults", {"machine": machine(), "settings": vars(given), "scores": rows, "costs": sizes})


if __name__ == "__main__":
    main()
