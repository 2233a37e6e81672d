"""What a round on a cluster of Dask costs, beside the pass over the same rows in memory.

    python benchmarks/dask_rounds.py [--rows 500000 5000000 20000000] [--parts overhead workers rounds] [--commit]

Logistic tangents over 90 float32 features that are generated where they are used: in memory in a process of its own,
and on 1 and 2 worker processes with one thread each; one set of processes is resident at a time. `overhead` is a round
over partitions of a few rows with 2 workers. `workers` are such rounds with more workers; the processor time of the
process of client and scheduler says what each further worker costs them. `weak` is the time of one worker with half of
the rows over that of two with all of them; `machine` the same for two processes that do nothing but read their arrays.

With `--commit` the results replace those of the same parts and rows in `results/dask.json`; others stay, so that
sizes can be measured one at a time. Each has the load of the machine when it began.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings

import numpy as np
from common import console
from dask_cluster import FEATURES, block, on_workers, workers
from record import commit, committed, machine, versions
from rich.table import Table

from projfree import Logistic, Objective, as_data


def median_time(work, repeat):
    times = []
    for _ in range(repeat + 2):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return float(np.median(times[2:]))


def tangent_at_random(data):
    """A function that evaluates a tangent at a point that nothing is known about."""
    f, rng = Objective(Logistic(), data), np.random.default_rng(0)
    return lambda: f.evaluate(f.point(0.01 * rng.standard_normal(f.shape)))


def tangents(data, repeat):
    return median_time(tangent_at_random(data), repeat)


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


def on_cluster(count, rows, repeat):
    with workers(count):
        return tangents(on_workers(rows), repeat)


def size(rows, repeat):
    one = {
        "rows": rows,
        "load": os.getloadavg()[0],
        "memory": processes("memory", rows, repeat),
        "one_worker": on_cluster(1, rows, repeat),
        "half_on_one": on_cluster(1, rows // 2, repeat),
        "two_workers": on_cluster(2, rows, repeat),
    }
    alone = processes("reading", rows // 2, repeat)
    one["machine"] = alone / processes("reading", rows // 2, repeat, count=2)
    one["weak"] = one["half_on_one"] / one["two_workers"]
    one["weak_of_machine"] = one["weak"] / one["machine"]
    return one


def overheads(repeat):
    """Rounds over partitions of 100 rows with 2 workers."""
    with workers(2):
        return [
            {"partitions": k, "load": os.getloadavg()[0], "seconds": tangents(on_workers(100 * k, k, 20), 3 * repeat)}
            for k in (2, 16, 64)
        ]


def by_workers(repeat):
    """Rounds over a partition of 100 rows for each worker, and the processor time of client and scheduler."""
    found = []
    for count in (1, 2, 4):
        with workers(count):
            work = tangent_at_random(on_workers(100 * count, count, 20))
            seconds = median_time(work, repeat)
            begun = time.process_time()
            for _ in range(5 * repeat):
                work()
            found.append({"workers": count, "seconds": seconds, "busy": (time.process_time() - begun) / (5 * repeat)})
    return found


def measured(parts, rows, repeat):
    found = {"machine": machine() | versions("dask", "distributed")}
    if "overhead" in parts:
        found["overhead"] = overheads(repeat)
    if "workers" in parts:
        found["workers"] = by_workers(repeat)
    if "rounds" in parts:
        found["sizes"] = [size(count, repeat if count < 10_000_000 else max(3, repeat // 3)) for count in rows]
    return found


def merged(found):
    """The results that the repository holds, with those that were measured in their place."""
    before = committed("dask")
    sizes = {one["rows"]: one for one in [*before.get("sizes", []), *found.get("sizes", [])]}
    return before | found | {"sizes": [sizes[rows] for rows in sorted(sizes)]}


def show(found):
    out = console()
    table = Table("rows", "memory", "1 worker", "2 workers", "weak", "machine", "load", title="seconds")
    for one in found.get("sizes", []):
        names = ("memory", "one_worker", "two_workers", "weak", "machine", "load")
        table.add_row(f"{one['rows']:,}", *(f"{one[name]:.3f}" for name in names))
    out.print(table)
    for name in ("overhead", "workers"):
        for one in found.get(name, []):
            out.print(name, {key: round(value, 5) for key, value in one.items()})


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, nargs="+", default=[500_000, 5_000_000, 20_000_000])
    options.add_argument("--repeat", type=int, default=15)
    options.add_argument("--parts", nargs="+", default=["overhead", "workers", "rounds"])
    options.add_argument("--commit", action="store_true")
    options.add_argument("--alone", choices=ALONE, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    if chosen.alone:
        sys.stdout.write(json.dumps(ALONE[chosen.alone](chosen.rows[0], chosen.repeat)))
        return
    found = measured(chosen.parts, chosen.rows, chosen.repeat)
    show(found)
    if chosen.commit:
        console().print(f"written to {commit('dask', merged(found))}")


if __name__ == "__main__":
    main()
