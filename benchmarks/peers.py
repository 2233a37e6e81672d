"""Time to a given accuracy, against what a user would pick instead, on the same problem and checked by the same code.

    python benchmarks/peers.py [--quick] [--only TEXT] [--repeat 3] [--commit]

Ours stop when their own certificate says so. Peers have no certificate: each is run at a series of its own tolerances,
and is credited with the fastest setting whose answer, brought into the ball and evaluated here, is good enough. Peers
with a penalty get the one that belongs to the radius for free. Needs `pip install projfree[peers]`.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from common import console
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

LEVELS = (1e-2, 1e-4, 1e-6)
PATIENCE = 60.0
PACKAGES = ("copt", "scikit-learn", "scipy", "cvxpy", "clarabel", "scs", "skglm", "celer")


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

    def fresh(self):
        return Objective(Logistic() if self.loss == "logistic" else Squared(), as_data(self.X, self.y))

    def error(self, w):
        """The relative suboptimality of an answer, infinite if it is not in the ball nor within a hair of it."""
        w = np.asarray(w, dtype=float).ravel()
        if w.shape != self.f.shape or not np.isfinite(w).all() or self.ball.norm(w) > self.radius * (1 + 1e-3):
            return math.inf
        inside = w * min(1.0, self.radius / max(self.ball.norm(w), 1e-300))
        return max(0.0, self.f.value(self.f.point(inside)) - self.best.value) / self.scale


def ours(solver):
    def run(problem, level):
        f = problem.fresh()
        begun = time.perf_counter()
        result = minimize(f, problem.ball, solver, tol=level, max_iter=10**6, time_limit=PATIENCE, record=0)
        return time.perf_counter() - begun, result.w if result.status.converged else None

    return run


def peer(solve: Callable, settings):
    """A peer at each of its settings, loosest first, until one is good enough."""

    def run(problem, level):
        for setting in settings:
            begun = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    w = solve(problem, setting)
                except Exception:  # a peer that gives up is shown as such
                    return math.inf, None
            spent = time.perf_counter() - begun
            if problem.error(w) <= level:
                return spent, w
            if spent > PATIENCE:
                break
        return math.inf, None

    return run


def mean_loss(problem):
    X, y, n = problem.X, problem.y, len(problem.y)
    if problem.loss == "squared":
        return lambda w: ((r := X @ w - y) @ r / n, 2.0 * (X.T @ r) / n)

    def logistic(w):
        m = y * (X @ w)
        s = 1.0 / (1.0 + np.exp(np.clip(m, -700, 700)))
        return np.logaddexp(0.0, -m).mean(), X.T @ (-y * s) / n

    return logistic


def copt_solver(kind):
    def solve(problem, setting):
        import copt

        value = mean_loss(problem)
        start = np.zeros(problem.X.shape[1])
        if kind == "frank-wolfe":
            set_ = copt.constraint.L2Ball(problem.radius) if problem.p == 2 else copt.constraint.L1Ball(problem.radius)
            lipschitz = problem.f.smoothness()
            return copt.minimize_frank_wolfe(
                value, start, set_.lmo, step="DR", lipschitz=lipschitz, max_iter=setting, tol=0.0
            ).x
        set_ = copt.constraint.L2Ball(problem.radius) if problem.p == 2 else copt.constraint.L1Ball(problem.radius)
        return copt.minimize_proximal_gradient(
            value, start, set_.prox, step="backtracking", accelerated=True, max_iter=setting, tol=0.0, jac=True
        ).x

    return solve


def scipy_solver(method):
    def solve(problem, setting):
        from scipy.optimize import NonlinearConstraint
        from scipy.optimize import minimize as scipy_minimize

        value, p, r = mean_loss(problem), problem.p, problem.radius
        start = np.full(problem.X.shape[1], 1e-3 * r / problem.X.shape[1])

        def room(w):
            return r**p - np.sum(np.abs(w) ** p)

        def slope(w):
            return -p * np.sign(w) * np.abs(w) ** (p - 1)

        if method == "SLSQP":
            inside = {"type": "ineq", "fun": room, "jac": slope}
            return scipy_minimize(
                value, start, jac=True, method="SLSQP", constraints=[inside], options={"ftol": setting, "maxiter": 1000}
            ).x
        inside = NonlinearConstraint(room, 0.0, np.inf, jac=lambda w: slope(w)[None, :])
        return scipy_minimize(
            value,
            start,
            jac=True,
            method="trust-constr",
            constraints=[inside],
            options={"gtol": setting, "xtol": setting * 1e-2, "maxiter": 2000},
        ).x

    return solve


def cvxpy_solver(name):
    def solve(problem, setting):
        import cvxpy as cp

        w, n = cp.Variable(problem.X.shape[1]), len(problem.y)
        loss = (
            cp.sum_squares(problem.X @ w - problem.y)
            if problem.loss == "squared"
            else cp.sum(cp.logistic(cp.multiply(-problem.y, problem.X @ w)))
        ) / n
        options = {"tol_gap_rel": setting, "tol_gap_abs": setting} if name == "CLARABEL" else {"eps": setting}
        cp.Problem(cp.Minimize(loss), [cp.norm(w, problem.p) <= problem.radius]).solve(solver=name, **options)
        return w.value

    return solve


def penalised(kind):
    """scikit-learn and its relatives, at the penalty that belongs to the radius."""

    def solve(problem, setting):
        n, mu, r = len(problem.y), problem.best.multiplier, problem.radius
        if kind.startswith("LogisticRegression"):
            from sklearn.linear_model import LogisticRegression

            model = LogisticRegression(
                C=r / (n * mu), solver=kind.split()[1], tol=setting, max_iter=10_000, fit_intercept=False
            )
        elif kind == "Ridge":
            from sklearn.linear_model import Ridge

            model = Ridge(alpha=mu * n / (2 * r), fit_intercept=False, tol=setting)
        else:
            module = {"Lasso": "sklearn.linear_model", "celer": "celer", "skglm": "skglm"}[kind]
            lasso = __import__(module, fromlist=["Lasso"]).Lasso
            model = lasso(alpha=mu / 2, fit_intercept=False, tol=setting, max_iter=10_000)
        return model.fit(problem.X, problem.y).coef_

    return solve


TOLS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
STEPS = (10, 30, 100, 300, 1_000, 3_000, 10_000)


def methods(problem, quick):
    yield "projfree auto", ours("auto")
    yield "projfree PA corrective", ours(CorrectivePrimalAveraging())
    yield "projfree PA", ours(PrimalAveraging())
    yield "projfree FISTA", ours(AcceleratedProjectedGradient())
    if problem.p in (1, 2):
        yield "copt accelerated", peer(copt_solver("proximal"), STEPS)
        yield "copt Frank-Wolfe", peer(copt_solver("frank-wolfe"), STEPS)
    if problem.p > 1:
        yield "SciPy SLSQP", peer(scipy_solver("SLSQP"), TOLS)
        if not quick:
            yield "SciPy trust-constr", peer(scipy_solver("trust-constr"), TOLS[1::2])
    if problem.X.size <= 1_000_000:
        yield "CVXPY Clarabel", peer(cvxpy_solver("CLARABEL"), TOLS[3::2])
        yield "CVXPY SCS", peer(cvxpy_solver("SCS"), TOLS[2:5])
    if problem.p == 2 and problem.loss == "logistic":
        for solver in ("newton-cholesky", "lbfgs"):
            yield f"scikit-learn {solver}", peer(penalised(f"LogisticRegression {solver}"), TOLS)
    if problem.p == 2 and problem.loss == "squared":
        yield "scikit-learn Ridge", peer(penalised("Ridge"), (1e-6,))
    if problem.p == 1 and problem.loss == "squared":
        for kind in ("Lasso", "celer", "skglm"):
            yield {"Lasso": "scikit-learn Lasso"}.get(kind, kind), peer(penalised(kind), TOLS)


def problems(quick):
    year = datasets.load_year_sample()
    X = (year.X - year.X.mean(axis=0)) / year.X.std(axis=0)
    y = year.y - year.y.mean()
    free = np.linalg.lstsq(X, y, rcond=None)[0]
    for p in (2, 1.5, 1):
        yield Problem(
            f"squares, l_{p}, year sample {X.shape[0]:,} x {X.shape[1]}",
            X,
            y,
            "squared",
            p,
            0.5 * LpBall(p, 1.0).norm(free),
        )
    adult = datasets.load_adult()
    A, labels = (adult.X[:8_000], adult.y[:8_000]) if quick else (adult.X, adult.y)
    for p, r in ((2, 2.5), (1.5, 4.6)):
        name = f"logistic, l_{p}, Adult {A.shape[0]:,} x {A.shape[1]}"
        yield Problem(name, np.ascontiguousarray(A), labels, "logistic", p, r)


def compare(problem, quick, repeat):
    runs = dict(methods(problem, quick))
    times = {name: {level: [] for level in LEVELS} for name in runs}
    for _ in range(repeat):
        for level in LEVELS:
            for name, run in runs.items():
                if math.inf in times[name][level] or any(
                    math.inf in times[name][easier] for easier in LEVELS if easier > level
                ):
                    times[name][level].append(math.inf)
                    continue
                spent, w = run(problem, level)
                good = w is not None and problem.error(w) <= level
                times[name][level].append(spent if good else math.inf)
    return {name: {level: float(np.median(values)) for level, values in by.items()} for name, by in times.items()}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--repeat", type=int, default=3)
    destinations(options)
    chosen = options.parse_args()
    found = {}
    for problem in problems(chosen.quick):
        if chosen.only not in problem.name:
            continue
        times = found[problem.name] = compare(problem, chosen.quick, chosen.repeat)
        table = Table(title=f"{problem.name}: seconds to a relative error of")
        for name in ("method", *(f"{level:g}" for level in LEVELS)):
            table.add_column(name, justify="left" if name == "method" else "right")
        for name, by in sorted(times.items(), key=lambda item: item[1][LEVELS[-1]]):
            table.add_row(name, *(f"{by[level]:.4f}" if math.isfinite(by[level]) else "-" for level in LEVELS))
        console().print(table)
    keep("peers", {"machine": machine(), "versions": versions(*PACKAGES), "seconds": found}, chosen)


if __name__ == "__main__":
    main()
