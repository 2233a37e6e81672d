"""What small problems cost, where overhead is all there is: calls, fits against scikit-learn, the first run, imports.

    python benchmarks/small.py [--repeat 200] [--quick] [--commit]

Counts are exact and the same on every machine; seconds are medians of interleaved runs with BLAS at one thread. New
processes have their bytecode on disk; the first run has an empty folder for compiled code, which is what someone sees
who has just installed the package.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from common import console
from record import destinations, keep, machine
from rich.table import Table
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

import projfree
from projfree import (
    ConstrainedClassifier,
    ConstrainedRegressor,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    as_data,
    minimize,
)

SOURCE = str(Path(projfree.__file__).parent)
README = Path(__file__).parents[1] / "README.md"
#: The share of the norm of the unconstrained minimiser that the balls of the fits allow.
SHARE = 0.5


class Walk:
    """Python calls while it is entered: how many, in which of our files and functions, and how deep in our own."""

    def __init__(self):
        self.calls, self.own, self.depth, self.deepest = 0, 0, 0, 0
        self.functions = set()

    def __enter__(self):
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        self.calls -= 1  # that of this function

    @property
    def files(self):
        return {code.co_filename for code in self.functions}

    def _event(self, frame, event, _):
        if event not in ("call", "return"):
            return
        ours = frame.f_code.co_filename.startswith(SOURCE)
        if event == "call":
            self.calls, self.own, self.depth = self.calls + 1, self.own + ours, self.depth + ours
            self.deepest = max(self.deepest, self.depth)
            if ours:
                self.functions.add(frame.f_code)
        else:
            self.depth -= ours


def table_of(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + 2.0 * rng.standard_normal(n)


def iteration_calls():
    """Calls of one iteration of PA, the mean of the iterations from 20 to 40: two runs, one taken off the other."""
    X, y = table_of(300, 6)
    counted = []
    for steps in (20, 20, 40):  # the first run imports what is imported on first use
        f = Objective(Logistic(), as_data(X, np.sign(y)))
        with Walk() as walk:
            minimize(f, LpBall(2, radius=1.0), PrimalAveraging(), tol=0.0, max_iter=steps)
        counted.append((walk.calls, walk.own))
    return tuple((late - early) / 20 for early, late in zip(counted[1], counted[2], strict=True))


def fit_pairs():
    """Our estimators and scikit-learn's with the same minimisers, and the data of each pair."""
    X, y = table_of(200, 10)
    signs, n = np.sign(y), len(y)
    pairs = {}
    for name, model, p, target in (
        ("ConstrainedRegressor p = 2, over Ridge", ConstrainedRegressor, 2, y),
        ("ConstrainedRegressor p = 1, over Lasso", ConstrainedRegressor, 1, y),
        ("ConstrainedClassifier p = 2, over LogisticRegression", ConstrainedClassifier, 2, signs),
    ):
        free = model(p=p, radius=1e3).fit(X, target)
        radius = SHARE * float(np.linalg.norm(np.ravel(free.coef_), p))
        mu = model(p=p, radius=radius).fit(X, target).multiplier_
        if model is ConstrainedClassifier:
            peer = LogisticRegression(C=radius / (n * mu))
        else:
            peer = Ridge(alpha=mu * n / (2 * radius)) if p == 2 else Lasso(alpha=mu / 2)
        pairs[name] = (model(p=p, radius=radius), peer, X, target)
    return pairs


def fits(repeat):
    """Milliseconds of our fits and of the peers', interleaved; the answers are the same."""
    found = {}
    with threadpool_limits(1):
        for name, (ours, peer, X, y) in fit_pairs().items():
            times = {ours: [], peer: []}
            for _ in range(repeat + 3):
                for model, took in times.items():
                    begun = time.perf_counter()
                    model.fit(X, y)
                    took.append(1e3 * (time.perf_counter() - begun))
            apart = np.abs(ours.coef_ - peer.coef_).max() / np.abs(peer.coef_).max()
            if apart > 1e-2:
                raise SystemExit(f"{name}: the coefficients are {apart:.1e} apart; the problems are not the same.")
            found[name] = tuple(float(np.median(took[3:])) for took in times.values())
    return found


def in_process(code, **environment):
    """Seconds that a new process takes in all, and what it prints."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    ask = [sys.executable, "-c", code]
    run = subprocess.run(ask, capture_output=True, text=True, check=True, env=kept | environment)
    return time.perf_counter() - begun, run.stdout


def first_example(repeat):
    """The seconds that the first example of the README takes in a new process with nothing compiled."""
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)[1]
    seconds = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            seconds.append(in_process(code, NUMBA_CACHE_DIR=folder)[0])
    return float(np.median(seconds))


def imports(repeat):
    """Seconds to import our estimators and scikit-learn's linear models, interleaved, in new processes."""
    code = "import time; b = time.perf_counter(); {}; print(time.perf_counter() - b)"
    ours = "from projfree.estimators import ConstrainedClassifier, ConstrainedRegressor"
    names = (ours, "import sklearn.linear_model")
    times = [[float(in_process(code.format(name))[1]) for name in names] for _ in range(repeat + 1)]
    return tuple(float(x) for x in np.median(times[1:], axis=0))


def fit_walk():
    """Files, functions and depth of a fit of a classifier."""
    X, y = table_of(200, 10)
    model = ConstrainedClassifier(p=2, radius=1.0).fit(X, np.sign(y))
    with Walk() as walk:
        model.fit(X, np.sign(y))
    return len(walk.files), len(walk.functions), walk.deepest


def measured(repeat, processes):
    """What is shown: name, figure, target, and what stands behind the figure."""
    calls, own = iteration_calls()
    found = [("Python calls of an iteration of PA, 300 x 6", calls, 250, f"{own:.0f} in our files")]
    goals = (2.0, 2.0, 1.5)
    for (name, (ours, peer)), goal in zip(fits(repeat).items(), goals, strict=True):
        found.append((name, ours / peer, goal, f"{ours:.2f} over {peer:.2f} ms"))
    seconds = first_example(max(1, processes // 3))
    found.append(("first example, nothing compiled (s)", seconds, 3.0, "with the import of the package"))
    ours, peer = imports(processes)
    found.append(("import of the estimators, over sklearn.linear_model", ours / peer, 1.15, f"{ours:.2f} s"))
    for name, figure, before in zip(("files", "functions", "depth"), fit_walk(), (64, 301, 20), strict=True):
        found.append((f"a fit of a classifier, {name}", figure, before / 2, f"{before} once"))
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeat", type=int, default=200)
    options.add_argument("--quick", action="store_true")
    destinations(options)
    chosen, info = options.parse_args(), machine()
    warnings.simplefilter("error")
    found = measured(20, 3) if chosen.quick else measured(chosen.repeat, 9)
    table = Table(title="what small problems cost")
    for name in ("what", "figure", "target", "behind it"):
        table.add_column(name, justify="right" if name in ("figure", "target") else "left")
    for name, figure, goal, behind in found:
        table.add_row(name, f"[{'green' if figure <= goal else 'red'}]{figure:.3g}[/]", f"{goal:g}", behind)
    console().print(table)
    figures = {name: {"figure": figure, "target": goal, "behind": behind} for name, figure, goal, behind in found}
    keep("small", {"machine": info, "figures": figures}, chosen)


if __name__ == "__main__":
    main()
