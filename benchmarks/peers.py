"""Time to a given accuracy, against what a user would pick instead, on the same problem and checked by the same code.

    python benchmarks/peers.py [--quick] [--only TEXT] [--repeat 3] [--commit]

Ours stop when their own certificate says so. Peers have no certificate: for each the loosest setting whose answer,
brought into the ball and evaluated here, is good enough is looked for first: from one iteration or a tolerance of one,
tighter by factors, then halving the last factor until iterations are known to 15 % and tolerances to a factor of two.
Then all methods are timed at their settings, in turn; the figure is the median of the processor time, with one thread.
A peer that is not installed or that raises an error is shown as missing, with the reason; "not reached" means that no
setting was good enough. Needs `pip install projfree[peers]`.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from typing import Any

import numpy as np
from common import console, with_one_thread
from peer_methods import Peer, peers
from record import destinations, keep, machine, versions
from rich.table import Table

from projfree import (
    AcceleratedProjectedGradient,
    CorrectivePrimalAveraging,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    Squared,
    as_data,
    datasets,
    minimize,
)

LEVELS = {"1e-2": 1e-2, "1e-4": 1e-4, "1e-6": 1e-6}
#: Seconds that one run may take, and one of a quick benchmark.
PATIENCE, HURRY = 60.0, 5.0
PACKAGES = ("copt", "scikit-learn", "scipy", "cvxpy", "clarabel", "scs", "skglm", "celer")
OURS = {
    "projfree auto": "auto",
    "projfree PA corrective": CorrectivePrimalAveraging(),
    "projfree PA": PrimalAveraging(),
    "projfree FISTA": AcceleratedProjectedGradient(),
}


@dataclass
class Problem:
    name: str
    X: np.ndarray
    y: np.ndarray
    loss: str
    p: float
    radius: float

    def __post_init__(self):
        self.ball = LpBall(self.p, self.radius)
        self.f = self.fresh()
        self.best = minimize(self.f, self.ball, tol=1e-11)
        self.scale = abs(self.best.value)

    @cached_property
    def by_columns(self):
        """The layout that coordinate descent likes."""
        return np.asfortranarray(self.X)

    def fresh(self):
        return Objective(Logistic() if self.loss == "logistic" else Squared(), as_data(self.X, self.y))

    def error(self, w):
        """The relative suboptimality of an answer, infinite if it is not in the ball nor within a hair of it."""
        w = np.full(self.f.shape, math.nan) if w is None else np.asarray(w, dtype=float).ravel()
        if w.shape != self.f.shape or not np.isfinite(w).all() or self.ball.norm(w) > self.radius * (1 + 1e-3):
            return math.inf
        inside = w * min(1.0, self.radius / max(self.ball.norm(w), 1e-300))
        return max(0.0, self.f(self.f.point(inside)) - self.best.value) / self.scale


def timed(call):
    """Seconds of the processor, and what the call gives; a peer at a loose setting often warns, and copt prints."""
    begun = time.process_time()
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        out = call()
    return time.process_time() - begun, out


class Search:
    """The loosest setting of a peer for each level; every setting is run once."""

    def __init__(self, problem: Problem, peer: Peer, patience: float):
        self.problem, self.peer, self.patience = problem, peer, patience
        self.runs: dict[float, tuple[float, float]] = {}

    def setting(self, step: float) -> float:
        """One iteration, or a tolerance of one, and tighter by the peer's factor with every step."""
        return self.peer.tighter**step

    def run(self, step: float) -> tuple[float, float]:
        """Seconds and error."""
        if step not in self.runs:
            spent, w = timed(lambda: self.peer.solve(self.problem, self.setting(step)))
            self.runs[step] = spent, self.problem.error(w)
        return self.runs[step]

    def loosest(self, level: float) -> float | None:
        """None where no setting is good enough within the time and the numbers that settings can be."""
        if not self.runs:
            timed(lambda: self.peer.solve(self.problem, self.setting(0.0)))  # compiles and loads
        step = 0.0
        while self.run(step)[1] > level:
            if self.run(step)[0] > self.patience or not 1e-14 < self.setting(step + 1.0) < 1e7:
                return None
            step += 1.0
        low = step - 1.0
        while step > 0.0 and abs(math.log(self.setting(step) / self.setting(low))) > math.log(self.peer.close):
            middle = 0.5 * (low + step)
            low, step = (low, middle) if self.run(middle)[1] <= level else (middle, step)
        return self.setting(step)


def searched(problem: Problem, peer: Peer, patience: float) -> dict[str, Any]:
    """The settings of a peer by level, or why there are none."""
    search = Search(problem, peer, patience)
    try:
        found = {name: search.loosest(level) for name, level in LEVELS.items()}
    except ImportError:
        return {"missing": "not installed"}
    except Exception as error:  # a peer may give up in any way, which is shown
        return {"missing": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    return {"settings": found}


def ours(problem: Problem, solver: Any, level: float, patience: float) -> float:
    """Seconds to a certificate, infinite where it was not reached."""
    f = problem.fresh()
    settings = {"tol": level, "max_iter": 10**6, "time_limit": patience, "record": 0}
    spent, result = timed(lambda: minimize(f, problem.ball, solver, **settings))
    good = result.status.converged and problem.error(result.w) <= level
    return spent if good else math.inf


def compare(problem: Problem, quick: bool, repeat: int) -> list[dict[str, Any]]:
    """One row a method, with its median seconds to each level."""
    patience = HURRY if quick else PATIENCE
    rows = [{"problem": problem.name, "method": name} for name in OURS]
    runs = {name: lambda level, solver=s: ours(problem, solver, LEVELS[level], patience) for name, s in OURS.items()}
    for peer in peers(problem, quick):
        rows.append({"problem": problem.name, "method": peer.name} | searched(problem, peer, patience))
        settings = rows[-1].get("settings", {})
        runs[peer.name] = lambda level, peer=peer, settings=settings: (
            math.inf if settings.get(level) is None else timed(lambda: peer.solve(problem, settings[level]))[0]
        )
    times: dict[tuple[str, str], list[float]] = {(name, level): [] for name in runs for level in LEVELS}
    for _ in range(repeat):
        for (name, level), taken in times.items():
            hopeless = math.inf in taken or (taken and min(taken) > patience)
            taken.append(math.inf if hopeless else runs[name](level))
    for row in rows:
        medians = {level: float(np.median(times[row["method"], level])) for level in LEVELS}
        told = {level: value if math.isfinite(value) else "not reached" for level, value in medians.items()}
        row["seconds"] = dict.fromkeys(LEVELS, None) if "missing" in row else told
    return rows


def problems(quick):
    year = datasets.load_year_sample()
    X = (year.X - year.X.mean(axis=0)) / year.X.std(axis=0)
    y = year.y - year.y.mean()
    free = np.linalg.lstsq(X, y, rcond=None)[0]
    for p in (2, 1.5, 1):
        radius = 0.5 * LpBall(p, 1.0).norm(free)
        yield Problem(f"squares, l_{p}, year sample {X.shape[0]:,} x {X.shape[1]}", X, y, "squared", p, radius)
    adult = datasets.load_adult()
    A, labels = (adult.X[:8_000], adult.y[:8_000]) if quick else (adult.X, adult.y)
    for p, r in ((2, 2.5), (1.5, 4.6)):
        name = f"logistic, l_{p}, Adult {A.shape[0]:,} x {A.shape[1]}"
        yield Problem(name, np.ascontiguousarray(A), labels, "logistic", p, r)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the methods on one problem, the fastest first."""
    table = Table(title=f"{rows[0]['problem']}: processor seconds to a relative error of")
    for name in ("method", *LEVELS):
        table.add_column(name, justify="left" if name == "method" else "right")

    def seconds(row):
        value = row["seconds"]["1e-6"]
        return value if isinstance(value, float) else math.inf

    for row in sorted(rows, key=seconds):
        cells = [
            f"{value:.4f}" if isinstance(value, float) else value or "missing" for value in row["seconds"].values()
        ]
        table.add_row(row["method"], *cells)
        if "missing" in row:
            table.add_row("", row["missing"])
    console().print(table)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--repeat", type=int, default=3)
    destinations(options)
    chosen = options.parse_args()
    with_one_thread()
    info, found = machine(), []
    for problem in problems(chosen.quick):
        if chosen.only in problem.name:
            rows = compare(problem, chosen.quick, chosen.repeat)
            show(rows)
            found += rows
    settings = {"quick": chosen.quick, "repeat": chosen.repeat, "patience": HURRY if chosen.quick else PATIENCE}
    keep("peers", {"machine": info, "versions": versions(*PACKAGES), "settings": settings, "rows": found}, chosen)


if __name__ == "__main__":
    main()
