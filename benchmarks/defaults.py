"""Default models against scikit-learn's defaults and against the best radius of a fine grid, on data of many kinds.

    python benchmarks/defaults.py [--only NAME ...] [--splits 5] [--grid 61] [--limit 20] [--commit]

Scores are R2 or accuracy on held-out rows, the means of random splits (stratified for classes). The grid goes from a
hundred-thousandth of the norm of the fit without a ball to that norm and is the same for all splits; it depends on no
choice of ours. The best radius is the one of the grid with the best mean score on the held-out rows themselves, which
no method can know: the difference to it is what is lost by choosing from the training rows alone. The cost is the
processor time of a default fit over that of a fit with the same radius, summed over the splits; fits end after
``--limit`` seconds, and the table marks rows where one did.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import console
from defaults_data import Case, cases
from record import commit, machine
from rich.table import Table
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from threadpoolctl import threadpool_limits

from projfree import ConstrainedClassifier, ConstrainedRegressor

#: Grids go from this part of the norm of the fit without a ball to that norm.
REACH = 1e-5
#: The penalty of the fit without a ball for classes, which has no finite norm where they can be separated.
WEAK = 1e4
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


def unbounded(case: Case, norm: dict[str, Any]) -> float:
    """The norm of the fit without a ball to all rows, on the columns as a default model scales them."""
    kind = ConstrainedClassifier if case.classifies else ConstrainedRegressor
    model = kind(**norm, max_iter=20, tol=0.1).fit(case.X, case.y)
    X = case.X.toarray() if hasattr(case.X, "toarray") else case.X
    X = StandardScaler(with_std=model.standardize_).fit_transform(X)
    if case.classifies:
        W = LogisticRegression(C=WEAK, max_iter=10_000).fit(X, case.y).coef_.T
    else:
        W = np.linalg.lstsq(X, case.y - case.y.mean(axis=0), rcond=None)[0]
    return float(model.ball_.norm(W.reshape(model.result_.w.shape)))


def measured(case: Case, norm: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """Mean scores and the cost for one norm."""
    kind, split = (
        (ConstrainedClassifier, StratifiedShuffleSplit) if case.classifies else (ConstrainedRegressor, ShuffleSplit)
    )
    ours, theirs, grids, radii, seconds, cut = [], [], [], [], np.zeros(2), False
    top = unbounded(case, norm)
    grid = np.geomspace(REACH * top, top, given.grid)
    for rows, held in split(given.splits, test_size=0.3, random_state=0).split(np.zeros(len(case.y)), case.y):
        X, y, Xt, yt = case.X[rows], case.y[rows], case.X[held], case.y[held]
        model, spent = timed(kind(**norm, time_limit=given.limit), X, y)
        alone, least = timed(kind(**norm, radius=model.radius_, time_limit=given.limit), X, y)
        cut = cut or "TIME_LIMIT" in {fit.result_.status.name for fit in (model, alone)}
        seconds += spent, least
        ours.append(model.score(Xt, yt))
        theirs.append(peer(case).fit(X, y).score(Xt, yt))
        radii.append(model.radius_)
        warm = kind(**norm, tol=TOL, warm_start=True, time_limit=given.limit)
        grids.append([warm.set_params(radius=float(r)).fit(X, y).score(Xt, yt) for r in grid])
    mean = np.mean(grids, axis=0)
    return {
        "data": case.name,
        "kind": case.kind,
        "norm": norm,
        "ours": float(np.mean(ours)),
        "best": float(max(mean.max(), np.mean(ours))),
        "best radius": float(grid[mean.argmax()]),
        "scikit-learn": float(np.mean(theirs)),
        "radius": float(np.exp(np.mean(np.log(radii)))),
        "cost": float(seconds[0] / seconds[1]),
        "fit seconds": float(seconds[1] / given.splits),
        "cut at the limit": bool(cut),
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
    table = Table("data", "kind", "norm", "ours", "best", "lost", "scikit-learn", "radius", "best radius", "cost")
    for row in rows:
        norm = " ".join(str(v) if k == "norm" else f"{k}={v:g}" for k, v in row["norm"].items())
        scores = [f"{row[k]:.3f}" for k in ("ours", "best")]
        sized = [f"{row[k]:.3g}" for k in ("radius", "best radius")]
        lost, cost = row["best"] - row["ours"], f"{row['cost']:.2f}" + ("*" if row["cut at the limit"] else "")
        table.add_row(
            row["data"], row["kind"], norm, *scores, f"{lost:.3f}", f"{row['scikit-learn']:.3f}", *sized, cost
        )
    out = console()
    out.print(table)
    lost, cost = np.array([(row["best"] - row["ours"], row["cost"]) for row in rows]).T
    out.print(f"lost to the best radius: median {np.median(lost):.4f}, largest {lost.max():.4f}")
    out.print(f"cost: median {np.median(cost):.2f}, largest {cost.max():.2f} (* a fit ended at the time limit)")
    for row in sizes:
        out.print(f"{row['rows']:,} x {row['features']}, {row['model']}, p={row['p']:g}: {row['cost']:.2f} times a fit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--grid", type=int, default=61)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--commit", action="store_true")
    given = parser.parse_args()
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases():
            if given.only and case.name not in given.only:
                continue
            for norm in case.norms:
                rows.append(measured(case, norm, given))
                print(rows[-1], flush=True)
        sizes = [] if given.only else costs()
    show(rows, sizes)
    if given.commit:
        commit("defaults", {"machine": machine(), "settings": vars(given), "scores": rows, "costs": sizes})


if __name__ == "__main__":
    main()
