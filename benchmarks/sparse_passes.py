"""How far a tangent over a sparse table is from its two bare products, in one run.

    python benchmarks/sparse_passes.py [--repeat 15] [--quick]

For each table: the time of a tangent over that of SciPy's ``X @ w`` and ``X.T @ r``, and over those and the loss, with
a target of 1.3; the time of `as_data` over that of scikit-learn's validation, with a target of 2. Both are interleaved
and measured in seconds of the processor on one thread; figures are quotients of medians. "Wall" is the quotient of wall
times where a tangent may use all threads, and the products still have one.
"""

import argparse
import time

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.utils import check_array

from projfree import Logistic, Objective, Softmax, as_data
from projfree.runtime import default_threads, single_blas


def text_like(n, d, each, seed=0):
    """Rows of about so many words with Zipf's frequencies, weighted as in TF-IDF, each of norm one."""
    rng = np.random.default_rng(seed)
    frequency = np.cumsum(1.0 / np.arange(1, d + 1))
    words = np.maximum(5, rng.lognormal(np.log(1.15 * each), 0.6, n)).astype(int)
    drawn = np.searchsorted(frequency, frequency[-1] * rng.random(words.sum()))
    columns = rng.permutation(d)[np.minimum(drawn, d - 1)]
    X = counted(np.repeat(np.arange(n), words), columns, (n, d))
    rarity = np.log((1 + n) / (1 + np.bincount(X.indices, minlength=d))) + 1
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    return X


def click_like(n, d, each, seed=0):
    """Rows of about so many ones in columns of uneven frequency."""
    rng = np.random.default_rng(seed)
    frequency = np.cumsum(np.arange(1, d + 1) ** -0.8)
    columns = np.minimum(np.searchsorted(frequency, frequency[-1] * rng.random(n * each)), d - 1)
    X = counted(np.repeat(np.arange(n), each), columns, (n, d))
    X.data[:] = 1.0
    return X


def counted(rows, columns, shape):
    """How often each pair occurs, as CSR with short indices."""
    X = sp.csr_array(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape))
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


TABLES = {
    "text 18,221 x 36,568": lambda: text_like(18_221, 36_568, 100),
    "text 7,094 x 41,681": lambda: text_like(7_094, 41_681, 250),
    "clicks 49,749 x 300": lambda: click_like(49_749, 300, 14),
}


def measure(tasks, repeat, clock=time.process_time):
    """Median seconds of each task, interleaved; the first round is not counted."""
    times = {name: [] for name in tasks}
    for turn in range(repeat + 1):
        for name, task in tasks.items():
            begun = clock()
            task()
            if turn:
                times[name].append(clock() - begun)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}


def problem(X, outputs, threads):
    rng = np.random.default_rng(1)
    n = X.shape[0]
    if outputs == 1:
        f = Objective(Logistic(), as_data(X, np.sign(rng.standard_normal(n)), threads=threads))
    else:
        f = Objective(Softmax(outputs), as_data(X, rng.integers(0, outputs, n), threads=threads))
    return f, rng.standard_normal(f.shape) / 10, rng.standard_normal((n, *f.outputs))


def tangents(X, outputs, repeat):
    """A tangent over two products, over two products and the loss, and with threads over two products."""
    (f, w, r), (g, _, _) = problem(X, outputs, 1), problem(X, outputs, default_threads())
    own = X.astype(np.float64)  # what SciPy would do in each product
    turned, u, y = own.T, own @ w, f.data.y
    tasks = {"products": lambda: (own @ w, turned @ r), "loss": lambda: (f.loss.value(u, y), f.loss.derivative(u, y))}
    with single_blas():
        one = measure(tasks | {"tangent": lambda: f.evaluate(f.point(w)).slope}, repeat)
        wall = measure({**tasks, "tangent": lambda: g.evaluate(g.point(w)).slope}, repeat, time.perf_counter)
    due = one["products"] + one["loss"]
    return one["tangent"] / one["products"], one["tangent"] / due, wall["tangent"] / wall["products"]


def validation(X, repeat):
    y = np.ones(X.shape[0])
    with single_blas():
        found = measure({"ours": lambda: as_data(X, y), "theirs": lambda: check_array(X, accept_sparse="csr")}, repeat)
    return found["ours"] / found["theirs"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeat", type=int, default=15)
    options.add_argument("--quick", action="store_true", help="float64 in CSR alone")
    chosen = options.parse_args()
    table = Table(title="a tangent over a sparse table")
    for name in ("table", "outputs", "over products", "over products and loss", "wall, all threads", "as_data"):
        table.add_column(name, justify="left" if name == "table" else "right")
    for name, make in TABLES.items():
        X = make()
        forms = {"CSR": X} if chosen.quick else {"CSR": X, "CSR float32": X.astype(np.float32), "CSC": X.tocsc()}
        for kind, form in forms.items():
            checked = validation(form, chosen.repeat)
            for outputs in (1, 8, 20):
                ratios = tangents(form, outputs, chosen.repeat if outputs == 1 else max(3, chosen.repeat // 3))
                first = outputs == 1
                shown = [f"{ratio:.2f}" for ratio in ratios]
                heading = f"{name}, {X.nnz:,} entries, {kind}" if first else ""
                table.add_row(heading, str(outputs), *shown, f"{checked:.2f}" if first else "")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
