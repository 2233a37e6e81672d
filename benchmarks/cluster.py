"""A cost model of a fit on a Dask cluster, its constants measured on two workers, and a fit that checks it.

    python benchmarks/cluster.py [--rows 4000000] [--commit]

    seconds = rounds x (latency + bytes / bandwidth + rows / (workers x rate))

A round sends the parameter to every worker and brings a gradient back from each: 16 d bytes a worker through the
network of the client. `latency` is the median time of a round over a few short rows, `bandwidth` that of one over a few
rows of many columns; `rate` is that of the rounds of Primal Averaging over many rows, each of which forms the
predictions of two points. The check is a run over half as many rows; its rounds are its passes.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from record import destinations, keep, machine, versions

from projfree import Logistic, LpBall, Objective, PrimalAveraging, as_data, minimize

FEATURES, PARTITIONS, WORKERS = 90, 16, 2
#: What the model is asked about: workers, rows, columns, rounds.
ASKED = ((100, 10**9, 100, 100), (1_000, 10**11, 100, 100), (1_000, 10**11, 10_000, 100))


def hide_own_sparse() -> None:
    """Dask looks for the package `sparse`, and must not find the benchmark of that name."""
    before = list(sys.path)
    sys.path = [folder for folder in before if Path(folder or ".").resolve() != Path(__file__).parent.resolve()]
    try:
        importlib.import_module("sparse")
    except ImportError:
        sys.modules["sparse"] = None
    sys.path = before


hide_own_sparse()


def block(rows, seed, features):
    """Features with variance one, and labels."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, features), dtype=np.float32) - 0.5) * np.sqrt(np.float32(12.0))
    return X, np.where(X[:, :10].sum(axis=1) + rng.standard_normal(rows) > 0, 1.0, -1.0)


def on_workers(rows, features, partitions=PARTITIONS):
    """Rows that are generated where they are used."""
    from dask import delayed

    made = [delayed(block, nout=2)(rows // partitions, seed, features) for seed in range(partitions)]
    return as_data([X for X, _ in made], [y for _, y in made])


@contextmanager
def cluster():
    """Worker processes with one thread each."""
    from distributed import Client, LocalCluster

    settings = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(memory_limit=0, **settings) as local, Client(local) as client:
        yield client


def round_seconds(rows, features, repeat, partitions=PARTITIONS):
    """The median time of one tangent at a point that nothing is known about."""
    f, rng, times = Objective(Logistic(), on_workers(rows, features, partitions)), np.random.default_rng(0), []
    for _ in range(repeat + 2):
        point, begun = f.point(0.01 * rng.standard_normal(f.shape)), time.perf_counter()
        f.evaluate(point)
        times.append(time.perf_counter() - begun)
    return float(np.median(times[2:]))  # the first two make the partitions


def run_seconds(rows, iterations):
    """The time of Primal Averaging, and the number of its rounds."""
    f = Objective(Logistic(), on_workers(rows, FEATURES))
    f.evaluate(f.point(np.zeros(FEATURES)))  # makes the partitions
    begun = time.perf_counter()
    run = minimize(f, LpBall(1.5, radius=1.0), PrimalAveraging(), tol=0.0, max_iter=iterations)
    return time.perf_counter() - begun, round(run.n_passes)


def payload(features, workers):
    """Bytes of a round through the network of the client."""
    return 16 * features * workers


def predicted(constants, workers, rows, features, rounds):
    """The seconds of a run by the model."""
    one = constants["latency"] + payload(features, workers) / constants["bandwidth"]
    return rounds * (one + rows * features / FEATURES / (workers * constants["rate"]))


def measure(rows, repeat):
    """The constants, a run beside what the model says of it, and larger runs by the model alone."""
    wide = 500_000
    with cluster():
        latency = round_seconds(100 * PARTITIONS, 20, repeat)
        many = round_seconds(2 * WORKERS, wide, repeat, partitions=WORKERS)
        bandwidth = payload(wide, WORKERS) / max(many - latency, 1e-9)
        seconds, rounds = run_seconds(rows, repeat)
        rate = rows / (WORKERS * max(seconds / rounds - latency, 1e-9))
        constants = {"latency": latency, "bandwidth": bandwidth, "rate": rate}
        seconds, rounds = run_seconds(rows // 2, 50)
    model = predicted(constants, WORKERS, rows // 2, FEATURES, rounds)
    check = {"workers": WORKERS, "rows": rows // 2, "columns": FEATURES, "rounds": rounds}
    names = ("workers", "rows", "columns", "rounds")
    return {
        "constants": constants,
        "check": [{**check, "measured, s": seconds, "by the model, s": model, "ratio": seconds / model}],
        "asked": [{**dict(zip(names, case, strict=True)), "seconds": predicted(constants, *case)} for case in ASKED],
    }


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=4_000_000)
    options.add_argument("--repeat", type=int, default=15)
    destinations(options)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    found = measure(chosen.rows, chosen.repeat)
    print(found)
    keep("cluster", {"machine": machine() | versions("dask", "distributed"), **found}, chosen)


if __name__ == "__main__":
    main()
