"""A fit on a cluster against dask-ml, at equal suboptimality.

    python benchmarks/dask_peers.py [--rows 500000] [--commit]

Logistic regression over an l_2 ball to a certified relative gap of 1e-6, on 2 worker processes with one thread. Its
multiplier says which penalty has the same minimum; `dask_ml.linear_model.LogisticRegression` solves that problem, on
columns as they are, with more and more iterations, until its suboptimality, relative to the minimum of the penalised
loss, is 1e-6 too. The time of that run alone counts, the median of three where it is short, as it is for our fit; how
many iterations L-BFGS needs is found in memory, and so is the minimum, by Newton's method. Solvers of dask-ml have run
on a few rows before, and our fit once on all of them, because passes over large tables are compiled. Features are
independent, or correlated: then the eigenvalues of their covariance fall from 1 to 1e-4. Needs dask-ml, which is no
dependency of anything here.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial

import numpy as np
from common import console
from dask_cluster import FEATURES, PARTITIONS, block, delayed_blocks, workers
from record import commit, committed, machine, versions

from projfree import ConstrainedClassifier

LEVEL = 1e-6
#: The radius for each kind of features.
KINDS = {"independent": 1.0, "correlated": 10.0}
#: Iterations of ADMM that are tried one after the other, and the seconds after which no more are.
MOST_SECONDS = 60.0
#: Fits that take less are made three times.
SHORT_SECONDS = 10.0
ADMM = (5, 10, 20, 40, 80)


def penalised(X, y, penalty):
    """The mean loss plus half the penalty times the squared norm, as a function, and its minimum."""

    def value(w):
        return float(np.logaddexp(0.0, -y * (X @ w)).mean() + 0.5 * penalty * w @ w)

    w = np.zeros(X.shape[1])
    for _ in range(12):
        p = 1.0 / (1.0 + np.exp(y * (X @ w)))
        gradient = penalty * w - X.T @ (y * p) / len(y)
        H = (X.T * (p * (1.0 - p))) @ X / len(y) + penalty * np.eye(len(w))
        w = w - np.linalg.solve(H, gradient)
    return value, value(w)


def enough(value, X, y, penalty, least):
    """Iterations after which L-BFGS is as good as asked for, found here: a peer should do no more."""
    from scipy.optimize import fmin_l_bfgs_b

    def both(w):
        p = 1.0 / (1.0 + np.exp(y * (X @ w)))
        return len(y) * value(w), len(y) * penalty * w - X.T @ (y * p)

    seen = []
    fmin_l_bfgs_b(both, np.zeros(X.shape[1]), pgtol=1e-14, callback=lambda w: seen.append(value(w) / least - 1.0))
    return next((k + 1 for k, excess in enumerate(seen) if excess <= LEVEL), len(seen))


def mixing(kind):
    """What independent features are multiplied by."""
    if kind == "independent":
        return np.eye(FEATURES)
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((FEATURES, FEATURES)))[0]
    return np.asarray(rotation * np.geomspace(1.0, 1e-2, FEATURES) @ rotation.T)


def collections(rows, kind):
    """Features as doubles and labels, persisted on the workers."""
    import dask.array as da
    from distributed import wait

    size = rows // PARTITIONS
    parts, targets = delayed_blocks(rows)
    X = da.concatenate([da.from_delayed(one, (size, FEATURES), dtype=np.float32) for one in parts])
    X = X.map_blocks(np.matmul, mixing(kind), dtype=np.float64)
    y = da.concatenate([da.from_delayed(one, (size,), dtype=np.float64) for one in targets])
    X, y = X.persist(), (y > 0).astype(np.int64).persist()
    wait([X, y])
    return X, y


def timed(fit):
    """The coefficients of a fit, the time that it takes, and the model."""
    times = []
    while len(times) < 3 and sum(times) <= len(times) * SHORT_SECONDS:
        begun = time.perf_counter()
        model = fit()
        times.append(time.perf_counter() - begun)
    return np.ravel(model.coef_), float(np.median(times)), model


def ours(X, y, kind):
    return ConstrainedClassifier(radius=KINDS[kind], standardize=False, fit_intercept=False, tol=LEVEL).fit(X, y)


def theirs(X, y, solver, penalty, iterations):
    from dask_ml.linear_model import LogisticRegression

    # By default dask-glm divides columns by their deviations, and penalises the coefficients of these: another problem.
    exact = {"abstol": 1e-14, "reltol": 1e-14} if solver == "admm" else {"tol": 1e-14}
    exact["normalize"] = False
    settings = {"C": 1.0 / (penalty * X.shape[0]), "fit_intercept": False, "penalty": "l2", "max_iter": iterations}
    return LogisticRegression(solver=solver, solver_kwargs=exact, **settings).fit(X, y)


def compared(rows, kind, solvers):
    """Fits of one kind of features, ours first."""
    with workers(2):
        few, (X, y) = collections(100 * PARTITIONS, kind), collections(rows, kind)
        ours(X, y, kind)
        coef, seconds, model = timed(lambda: ours(X, y, kind))
        penalty = model.multiplier_ / model.radius_
        parts = [block(rows // PARTITIONS, seed) for seed in range(PARTITIONS)]
        local = np.concatenate([part for part, _ in parts]) @ mixing(kind)
        signs = np.concatenate([part for _, part in parts])
        value, least = penalised(local, signs, penalty)
        first = enough(value, local, signs, penalty, least)
        trials = {"lbfgs": (first, first + 1, first + 3, 2 * first), "admm": ADMM}

        def about(solver, iterations, took, coef):
            one = {"rows": rows, "features": kind, "solver": solver, "iterations": iterations, "seconds": took}
            return one | {"times": took / seconds, "suboptimality": value(coef) / least - 1.0}

        yield about("projfree", model.n_iter_, seconds, coef) | {"certified": model.result_.relative_gap}
        for solver in solvers:
            theirs(*few, solver, penalty, 2)
            for iterations in trials[solver]:
                coef, took, _ = timed(partial(theirs, X, y, solver, penalty, iterations))
                one = about(f"dask-ml {solver}", iterations, took, coef) | {"certified": None}
                yield one
                if one["suboptimality"] <= LEVEL or took > MOST_SECONDS:
                    break


def merged(fits, one):
    """The fits, with one in the place of that of the same solver."""
    found = {(fit["features"], fit["solver"]): fit for fit in fits}
    return list((found | {(one["features"], one["solver"]): one}).values())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--kinds", nargs="+", default=list(KINDS))
    options.add_argument("--solvers", nargs="+", default=["lbfgs", "admm"])
    options.add_argument("--commit", action="store_true")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    out, packages = console(), versions("dask", "distributed", "dask-ml", "dask-glm")
    if packages["dask-ml"] == "not installed":
        out.print("dask-ml is not installed; nothing to compare with.")
        return
    fits = committed("dask_peers").get("fits", []) if chosen.commit else []
    for one in (one for kind in chosen.kinds for one in compared(chosen.rows, kind, chosen.solvers)):
        out.print(one)
        fits = merged(fits, one | {"load": os.getloadavg()[0]})
        if chosen.commit:
            commit("dask_peers", {"machine": machine() | packages, "fits": fits})


if __name__ == "__main__":
    main()
