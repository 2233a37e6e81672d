"""How far a pass over the data is from the machine's memory: ratios to one read of X, in one run.

    python benchmarks/passes.py [--rows 515345] [--repeat 15] [--out-of-core] [--commit]

"Read" is the fastest of three two-thread kernels over the same array. Everything is interleaved and repeated; the
figure is the median of a thing over the median of the read. Run it on an idle machine: a run that reads at less than
80 % of the best speed on record in the scratch folder calls itself void. With `--out-of-core`, files of 4 GB are
written to a temporary folder and removed afterwards.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import console
from numba import njit
from record import destinations, keep, machine
from rich.table import Table

from projfree import (
    BiWeight,
    Huber,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    Softmax,
    Squared,
    SquaredSigmoid,
    as_data,
    minimize,
)
from projfree.runtime import default_threads, parallel_for

FAST = {"reassoc", "nsz", "contract", "nnan", "ninf"}


@njit(nogil=True, fastmath=FAST)
def read_sum(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    return total


@njit(nogil=True, fastmath=FAST)
def read_max(x):
    largest = x[0]
    for i in range(len(x)):
        largest = max(largest, x[i])
    return largest


@njit(nogil=True, fastmath=FAST)
def read_four(x):
    a = b = c = d = 0.0
    for i in range(0, len(x) - 3, 4):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
    return a + b + c + d


def reader(X, kernel, threads):
    flat = X.reshape(-1, order="A")
    edges = np.linspace(0, len(flat), 65).astype(int)
    return lambda: parallel_for(lambda k: kernel(flat[edges[k] : edges[k + 1]]), 64, threads)


def tangent(loss, X, y, outputs=()):
    f = Objective(loss, as_data(X, y))
    random = np.random.default_rng(1)

    def once():
        w = random.standard_normal((X.shape[1], *f.outputs)) / 10
        return f.evaluate(f.point(w)).slope

    return once


def measure(tasks, repeat):
    """Seconds of each task, interleaved; the first round is not counted."""
    times = {name: [] for name in tasks}
    for turn in range(repeat + 1):
        for name, task in tasks.items():
            begun = time.perf_counter()
            task()
            if turn:
                times[name].append(time.perf_counter() - begun)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}


def averaging(X, y, iterations=100):
    f, ball = Objective(Logistic(), as_data(X, y)), LpBall(2, radius=1.0)
    return lambda: minimize(f, ball, PrimalAveraging(), tol=0.0, max_iter=iterations)


def in_process(code, repeat=5):
    """Median seconds that ``code`` says it took in a fresh process, bytecode and kernels being on disk."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        for _ in range(repeat + 1)
    ]
    return float(np.median([float(run.stdout) for run in runs[1:]]))


EMPTY = """
import time
from numba import njit
@njit(nogil=True)
def nothing(x):
    return x
begun = time.perf_counter(); nothing(1.0); print(time.perf_counter() - begun)
"""
FIRST = """
import time, numpy as np
from projfree import Logistic, Objective, as_data
X = np.ones((100_000, 90)); y = np.where(np.arange(100_000) % 2, 1.0, -1.0)
f = Objective(Logistic(), as_data(X, y)); x = f.point(np.ones(90) / 90)
import numba
begun = time.perf_counter(); f.evaluate(x).slope; print(time.perf_counter() - begun)
"""
IMPORT = "import time; b = time.perf_counter(); import {}; print(time.perf_counter() - b)"


def rows_of(n, d, threads, repeat):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    signs, targets = np.sign(rng.standard_normal(n)), rng.standard_normal(n)
    tasks = {f"read {k.__name__}": reader(X, k, threads) for k in (read_sum, read_max, read_four)}
    tasks |= {
        "logistic": tangent(Logistic(), X, signs),
        "squared": tangent(Squared(), X, targets),
        "squared sigmoid": tangent(SquaredSigmoid(), X, signs),
        "bi-weight": tangent(BiWeight(), X, targets),
        "Huber": tangent(Huber(), X, targets),
        "logistic, Fortran order": tangent(Logistic(), np.asfortranarray(X), signs),
        "squared, 8 outputs": tangent(Squared(), X, rng.standard_normal((n, 8))),
        "softmax, 8 classes": tangent(Softmax(), X, rng.integers(0, 8, n)),
    }
    seconds = measure(tasks, repeat)
    read = min(value for name, value in seconds.items() if name.startswith("read"))
    speed = X.nbytes / read / 1e9
    goals = {"squared, 8 outputs": 3.0, "softmax, 8 classes": 5.0}
    found = [
        (name, value / read, goals.get(name, 1.5)) for name, value in seconds.items() if not name.startswith("read")
    ]
    once = tasks["logistic"]
    side_by_side = measure({"PA": averaging(X, signs), "passes": lambda: [once() for _ in range(100)]}, 3)
    found.append(
        ("PA, 100 iterations, over 100 logistic passes", side_by_side["PA"] / side_by_side["passes"], 1.15),
    )
    X32 = X.astype(np.float32)
    half = measure(
        {f"read {k.__name__}": reader(X32, k, threads) for k in (read_sum, read_max, read_four)}
        | {"float32": tangent(Logistic(), X32, signs)},
        repeat,
    )
    found.append(
        ("logistic, float32 (reads of it)", half["float32"] / min(v for k, v in half.items() if k != "float32"), 2.0)
    )
    return speed, found


def start_up():
    first = in_process(FIRST) - in_process(EMPTY)
    light = in_process(IMPORT.format("projfree")) / in_process(IMPORT.format("numpy, scipy.sparse"))
    return [
        ("first call, kernels on disk (s over an empty one)", first, 0.3),
        ("import, over numpy and scipy.sparse", light, 1.2),
    ]


def sparse(n, d, each, repeat):
    from scipy import sparse as sp

    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, d, (n, each), dtype=np.int32), axis=1).ravel()
    X = sp.csr_array((rng.standard_normal(n * each), columns, np.arange(0, n * each + 1, each)), shape=(n, d))
    y, w, r = np.sign(rng.standard_normal(n)), rng.standard_normal(d) / 100, rng.standard_normal(n)
    transposed = X.T
    seconds = measure({"scipy": lambda: (X @ w, transposed @ r), "ours": tangent(Logistic(), X, y)}, repeat)
    return [(f"CSR {n:,} x {d:,}, {each} a row, over SciPy", seconds["ours"] / seconds["scipy"], 0.7)]


def parquet_of(path, X, rows):
    """Write a table in row groups, piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{j}" for j in range(X.shape[1])]
    settings = {"compression": "none", "use_dictionary": False, "data_page_size": 1 << 16}
    with pq.ParquetWriter(path, pa.schema([(c, pa.float64()) for c in names]), **settings) as writer:
        for first in range(0, len(X), rows):
            part = np.asfortranarray(X[first : first + rows])
            columns = [pa.array(part[:, j]) for j in range(part.shape[1])]
            writer.write_table(pa.table(columns, names=names), row_group_size=rows)


def read_parquet(path):
    """What reading alone costs: every row group, column by column, into one buffer that is used again."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    out = None
    for g in range(file.num_row_groups):
        group = file.read_row_group(g)
        out = np.empty((group.num_columns, group.num_rows)) if out is None else out
        for j, column in enumerate(group.columns):
            out[j, : len(column)] = column.to_numpy()


def read_npy(path, nbytes=1 << 24):
    buffer = bytearray(nbytes)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def streamed_gram(n, d, repeat):
    import pyarrow.parquet as pq

    X, y = np.random.default_rng(0).standard_normal((n, d)), np.zeros(n)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.parquet"
        parquet_of(path, X, 1 << 16)
        data = as_data(path, y)
        seconds = measure({"read": lambda: pq.read_table(path), "gram": data.gram}, repeat)
    return [(f"Gram of {n:,} x {d} from Parquet, over pyarrow.read_table", seconds["gram"] / seconds["read"], 2.0)]


OUT_OF_CORE = """
import json, re, sys, time
import numpy as np
sys.path.insert(0, {here!r})
from passes import read_npy, read_parquet
from projfree import Logistic, Objective, as_data
path, n, d = {path!r}, {n}, {d}
y = np.where(np.arange(n) % 2, 1.0, -1.0)
f = Objective(Logistic(), as_data(path, y))
times, w = [], np.full(d, 0.01)
for _ in range({repeat} + 1):
    begun = time.perf_counter(); f.evaluate(f.point(w)).slope; times.append(time.perf_counter() - begun)
status = open("/proc/self/status").read()  # getrusage would tell the peak of the process that started this one
peak = int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024
read, reads = read_npy if path.endswith(".npy") else read_parquet, []
for _ in range({repeat} + 1):
    begun = time.perf_counter(); read(path); reads.append(time.perf_counter() - begun)
print(json.dumps([float(np.median(times[1:])) / float(np.median(reads[1:])), peak]))
"""


def out_of_core(d, repeat, nbytes=4 << 30):
    """A tangent over a file over reading it, and the peak memory of the process, in MB."""
    n, found = nbytes // (8 * d), []
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < 3 * nbytes:
            raise SystemExit(f"--out-of-core needs {3 * nbytes >> 30} GB in {folder}; set TMPDIR to a larger disk.")
        table = np.lib.format.open_memmap(Path(folder) / "X.npy", "w+", np.float64, (n, d))
        rng = np.random.default_rng(0)
        for first in range(0, n, 1 << 16):
            part = table[first : first + (1 << 16)]
            part[:] = rng.standard_normal(part.shape)
        table.flush()
        parquet_of(Path(folder) / "X.parquet", table, 1 << 16)
        del table
        for name in ("X.npy", "X.parquet"):
            code = OUT_OF_CORE.format(
                here=str(Path(__file__).parent), path=str(Path(folder) / name), n=n, d=d, repeat=repeat
            )
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            ratio, peak = json.loads(run.stdout)
            kind = f"out of core, {nbytes >> 30} GB {name[1:]}"
            found += [(f"{kind}, over reading it", ratio, 1.3), (f"{kind}, peak MB", peak, 400.0)]
    return found


def best_speed(folder):
    """The fastest read on record, in GB/s."""
    path = folder / "speed.json"
    return json.loads(path.read_text(encoding="utf-8"))["best GB/s"] if path.exists() else 0.0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=515_345)
    options.add_argument("--columns", type=int, default=90)
    options.add_argument("--repeat", type=int, default=15)
    destinations(options)
    options.add_argument("--out-of-core", action="store_true")
    chosen = options.parse_args()
    info, threads = machine(), default_threads()
    speed, found = rows_of(chosen.rows, chosen.columns, threads, chosen.repeat)
    found += sparse(chosen.rows, 20_000, 100, max(3, chosen.repeat // 3)) + start_up()
    found += streamed_gram(chosen.rows, chosen.columns, max(3, chosen.repeat // 3))
    found += out_of_core(chosen.columns, 3) if chosen.out_of_core else []
    best = max(best_speed(chosen.out), speed)
    void = speed < 0.8 * best
    title = f"{chosen.rows:,} x {chosen.columns}, {threads} threads, one read = {speed:.1f} GB/s"
    table = Table(title=title + (f": VOID, the best on record is {best:.1f} GB/s" if void else ""))
    for name in ("pass", "ratio", "target"):
        table.add_column(name, justify="left" if name == "pass" else "right")
    for name, ratio, goal in found:
        table.add_row(name, f"[{'green' if ratio <= goal else 'red'}]{ratio:.2f}[/]", f"{goal:g}")
    console().print(table)
    report = {
        "machine": info | {"speed of one read": f"{speed:.1f} GB/s, {threads} threads" + (", VOID" if void else "")},
        "ratios": [{"pass": name, "ratio": ratio, "target": goal} for name, ratio, goal in found],
    }
    keep("passes", report, chosen)
    (chosen.out / "speed.json").write_text(json.dumps({"best GB/s": best}), encoding="utf-8")


if __name__ == "__main__":
    main()
