"""What a round on a cluster of Dask costs, beside the pass over the same rows in memory.

    python benchmarks/dask_rounds.py [--rows 500000 5000000 20000000] [--parts overhead rounds] [--commit]

Logistic tangents over 90 float32 features that are generated where they are used: in memory in a process of its own,
and on 1 and 2 worker processes with one thread each; one set of processes is resident at a time. `overhead` is a round
over partitions of a few rows with 2 workers. `weak` is the time of one worker with half of the rows over that
of two with all of them; `machine` the same for two processes that do nothing but read their arrays.

With `--commit` each result replaces that of the same part and rows in `results/dask.json`; others stay, so that sizes
and `--phases` of them can be measured one at a time. Each has the load of the machine and the priority (`nice`) that
it ran with.
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


def times_of(work, repeat):
    """The times of some calls, after two that do not count."""
    times = []
    for _ in range(repeat + 2):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return times[2:]


def median_time(work, repeat):
    return float(np.median(times_of(work, repeat)))


def tangent_at_random(data):
    """A function that evaluates a tangent at a point that nothing is known about."""
    f, rng = Objective(Logistic(), data), np.random.default_rng(0)
    return lambda: f.evaluate(f.point(0.01 * rng.standard_normal(f.shape)))


def tangents(data, repeat):
    return median_time(tangent_at_random(data), repeat)


def in_memory(rows, repeat):
    X, y = block(rows, 0)
    return {"seconds": median_time(tangent_at_random(as_data(X, y, threads=1)), repeat)}


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


PHASES = {
    "memory": lambda rows, repeat: processes("memory", rows, repeat),
    "one_worker": lambda rows, repeat: on_cluster(1, rows, repeat),
    "half_on_one": lambda rows, repeat: on_cluster(1, rows // 2, repeat),
    "two_workers": lambda rows, repeat: on_cluster(2, rows, repeat),
    "read_alone": lambda rows, repeat: processes("reading", rows // 2, repeat),
    "read_together": lambda rows, repeat: processes("reading", rows // 2, repeat, count=2),
}


def with_ratios(one):
    """The times of a size with what follows from them."""
    if one.keys() >= PHASES.keys():
        one["weak"] = one["half_on_one"] / one["two_workers"]
        one["machine"] = one["read_alone"] / one["read_together"]
        one["weak_of_machine"] = one["weak"] / one["machine"]
    return one


def overheads(repeat):
    """Rounds over partitions of 100 rows with 2 workers: the median, and the fastest tenth, the least disturbed."""
    found = []
    with workers(2):
        for k in (2, 16, 64):
            times = times_of(tangent_at_random(on_workers(100 * k, k, 20)), 6 * repeat)
            median, fast = np.quantile(times, [0.5, 0.1]).tolist()
            found.append({**now(), "partitions": k, "seconds": median, "fastest": fast})
    return found


def now():
    """What else the machine does, and the priority of this process."""
    return {"load": os.getloadavg()[0], "nice": os.getpriority(os.PRIO_PROCESS, 0)}


def measured(chosen):
    """The results, part by part, because each may take minutes."""
    if "overhead" in chosen.parts:
        yield {"overhead": overheads(chosen.repeat)}
    for rows in chosen.rows if "rounds" in chosen.parts else ():
        repeat = chosen.repeat if rows < 10_000_000 else max(3, chosen.repeat // 3)
        for phase in chosen.phases:
            yield {"sizes": [{**now(), "rows": rows, phase: PHASES[phase](rows, repeat)}]}


def merged(before, found):
    """Results with those that were measured now in their place."""
    sizes = {one["rows"]: one for name in ("sizes", "unfinished") for one in before.get(name, [])}
    for one in found.get("sizes", []):
        sizes[one["rows"]] = with_ratios(sizes.get(one["rows"], {}) | one)
    by_rows = [sizes[rows] for rows in sorted(sizes)]
    ended, begun = ([one for one in by_rows if ("weak" in one) == whole] for whole in (True, False))
    return before | found | {"sizes": ended, "unfinished": begun}


def show(found):
    out = console()
    table = Table("rows", "memory", "1 worker", "2 workers", "weak", "machine", "load", title="seconds")
    for one in found.get("sizes", []):
        names = ("memory", "one_worker", "two_workers", "weak", "machine", "load")
        table.add_row(f"{one['rows']:,}", *(f"{one.get(name, np.nan):.3f}" for name in names))
    out.print(table)
    for one in found.get("overhead", []):
        out.print("overhead", {key: round(value, 5) for key, value in one.items()})


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, nargs="+", default=[500_000, 5_000_000, 20_000_000])
    options.add_argument("--repeat", type=int, default=15)
    options.add_argument("--parts", nargs="+", default=["overhead", "rounds"])
    options.add_argument("--phases", nargs="+", default=list(PHASES), choices=PHASES)
    options.add_argument("--commit", action="store_true")
    options.add_argument("--alone", choices=ALONE, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    if chosen.alone:
        sys.stdout.write(json.dumps(ALONE[chosen.alone](chosen.rows[0], chosen.repeat)))
        return
    found = committed("dask") if chosen.commit else {}
    for part in measured(chosen):
        found = merged(found, part | {"machine": machine() | versions("dask", "distributed")})
        if chosen.commit:
            commit("dask", found)
    show(found)


if __name__ == "__main__":
    main()
