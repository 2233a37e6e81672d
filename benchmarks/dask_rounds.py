"""What a round on a cluster of Dask costs, beside the pass over the same rows in memory.

    python benchmarks/dask_rounds.py [--rows 500000 5000000 20000000] [--parts overhead rounds fit] [--commit]

Logistic tangents over 90 float32 features that are generated where they are used: in memory in a process of its own,
and on 1 and 2 worker processes with one thread each; one set of processes is resident at a time. `overhead` is a round
over 64 partitions of a few rows with 2 workers. `weak` is the time of one worker with half of the rows over that of two
with all of them; `machine` the same for two processes that do nothing but read their arrays. With dask-ml installed, a
fit to a certified 1e-6 is compared with its solvers at the suboptimality that they reach.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from common import console
from record import commit, machine, versions
from rich.table import Table

from projfree import ConstrainedClassifier, Logistic, LpBall, Objective, as_data, minimize

FEATURES, PARTITIONS = 90, 16


def no_other_sparse():
    """Dask looks for the package `sparse`, and must not find the benchmark of that name."""
    before = list(sys.path)
    sys.path = [folder for folder in before if Path(folder or ".").resolve() != Path(__file__).parent.resolve()]
    try:
        importlib.import_module("sparse")
    except ImportError:
        sys.modules["sparse"] = None
    sys.path = before


no_other_sparse()


def block(rows, seed, features=FEATURES):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features), dtype=np.float32)
    u = X[:, :10].sum(axis=1) * 0.3 + rng.standard_normal(rows, dtype=np.float32)
    return X, np.where(u > 0, 1.0, -1.0)


def median_time(work, repeat):
    times = []
    for _ in range(repeat + 2):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return float(np.median(times[2:]))


def tangents(data, repeat):
    """The time of a tangent at points that nothing is known about."""
    f, rng = Objective(Logistic(), data), np.random.default_rng(0)
    f.evaluate(f.point(np.zeros(f.shape)))
    return median_time(lambda: f.evaluate(f.point(0.01 * rng.standard_normal(f.shape))), repeat)


def in_memory(rows, repeat):
    X, y = block(rows, 0)
    return {"seconds": tangents(as_data(X, y, threads=1), repeat)}


def reading(rows, repeat):
    """The bandwidth of this process alone: a product that reads every number once."""
    X, w = block(rows, 0)[0], np.ones(FEATURES, dtype=np.float32)
    return {"seconds": median_time(lambda: X @ w, repeat)}


ALONE = {"memory": in_memory, "reading": reading}


def processes(kind, rows, repeat, count=1):
    """Several processes of this script at the same time; the slowest one counts."""
    ask = [sys.executable, __file__, "--alone", kind, "--rows", str(rows), "--repeat", str(repeat)]
    running = [subprocess.Popen(ask, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return max(json.loads(one.communicate()[0])["seconds"] for one in running)


@contextmanager
def workers(count):
    from distributed import Client, LocalCluster

    settings = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(memory_limit=0, **settings) as cluster, Client(cluster) as client:
        yield client


def on_workers(rows, partitions=PARTITIONS, features=FEATURES):
    from dask import delayed

    size = rows // partitions
    made = [delayed(block, nout=2)(size, seed, features) for seed in range(partitions)]
    return as_data([X for X, _ in made], [y for _, y in made])


def round_times(rows, repeat):
    found = {}
    for count in (1, 2):
        with workers(count):
            found[f"{count} workers"] = tangents(on_workers(rows), repeat)
            if count == 1:
                found["half on 1"] = tangents(on_workers(rows // 2), repeat)
    return found


def overheads(repeat):
    with workers(2):
        return {str(count): tangents(on_workers(100 * count, count, 20), 3 * repeat) for count in (2, 16, 64)}


def against_dask_ml(rows):
    """Seconds to the suboptimality that dask-ml reaches, for the same penalised problem as a ball."""
    import dask.array as da
    from dask_ml.linear_model import LogisticRegression

    out = {}
    with workers(2):
        parts = [block(rows // PARTITIONS, seed) for seed in range(PARTITIONS)]
        X = da.concatenate([da.from_array(X.astype(np.float64)) for X, _ in parts]).persist()
        y = da.concatenate([da.from_array((y > 0).astype(np.int64)) for _, y in parts]).persist()
        begun = time.perf_counter()
        ours = ConstrainedClassifier(radius=1.0, standardize=False, fit_intercept=False).fit(X, y)
        out["projfree"] = {"seconds": time.perf_counter() - begun, "relative_gap": ours.result_.relative_gap}
        penalty = 2.0 * rows * ours.multiplier_ / (2.0 * ours.radius_)
        f = Objective(Logistic(), as_data(X, da.where(y > 0, 1.0, -1.0)))
        for solver in ("admm", "lbfgs"):
            begun = time.perf_counter()
            settings = {"C": 1.0 / penalty, "fit_intercept": False, "penalty": "l2", "tol": 1e-6, "max_iter": 200}
            theirs = LogisticRegression(solver=solver, **settings).fit(X, y)
            took = time.perf_counter() - begun
            radius = float(np.linalg.norm(theirs.coef_))
            best = minimize(f, LpBall(2, radius=radius), tol=1e-9)
            gap = float(f.value(f.point(np.ravel(theirs.coef_))) - best.bound) / best.value
            out[solver] = {"seconds": took, "norm": radius, "suboptimality_over_its_own_ball": gap}
    return out


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, nargs="+", default=[500_000, 5_000_000, 20_000_000])
    options.add_argument("--repeat", type=int, default=15)
    options.add_argument("--parts", nargs="+", default=["overhead", "rounds", "fit"])
    options.add_argument("--commit", action="store_true")
    options.add_argument("--alone", choices=ALONE, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    if chosen.alone:
        sys.stdout.write(json.dumps(ALONE[chosen.alone](chosen.rows[0], chosen.repeat)))
        return
    packages, load = versions("dask", "distributed", "dask-ml"), os.getloadavg()
    found = {"machine": machine() | packages, "load_at_the_start": load, "sizes": []}
    found["overhead"] = overheads(chosen.repeat) if "overhead" in chosen.parts else None
    table = Table("rows", "memory", "1 worker", "2 workers", "round / memory", "weak", "machine", title="seconds")
    for rows in chosen.rows if "rounds" in chosen.parts else ():
        one = {"rows": rows, "memory": processes("memory", rows, chosen.repeat), **round_times(rows, chosen.repeat)}
        half = processes("reading", rows // 2, chosen.repeat)
        one["machine"] = half / processes("reading", rows // 2, chosen.repeat, count=2)
        one["weak"] = one["half on 1"] / one["2 workers"]
        found["sizes"].append(one)
        numbers = (one["memory"], one["1 workers"], one["2 workers"], one["1 workers"] / one["memory"])
        table.add_row(f"{rows:,}", *(f"{x:.3f}" for x in (*numbers, one["weak"], one["machine"])))
    show = console()
    show.print(table)
    show.print("overhead of a round with 2 workers, seconds by partitions:", found["overhead"])
    try:
        found["dask_ml"] = against_dask_ml(min(chosen.rows)) if "fit" in chosen.parts else None
    except ImportError:
        found["dask_ml"] = "not installed"
    show.print(found["dask_ml"])
    if chosen.commit:
        show.print(f"written to {commit('dask', found)}")


if __name__ == "__main__":
    main()
