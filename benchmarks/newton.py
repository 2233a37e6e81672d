"""Second-order and exact solvers against their targets, as ratios in one run.

    python benchmarks/newton.py [--quick] [--repeat 3] [--commit]

Adult (48,842 x 108, one-hot, with intercept) for logistic regression, the full-size stand-in of the year data for least
squares. rho is the radius over R_p, the smallest radius whose minimum is within 1e-3 of the infimum; R_p is printed.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings

import numpy as np
from common import console
from record import destinations, keep, machine
from rich.table import Table

from projfree import ConstrainedNewton, Logistic, LpBall, Objective, Squared, as_data, datasets, minimize, path

RHOS = (0.3, 0.5, 0.9, 1.0, 1.5)


def timed(call, repeat):
    times, out = [], None
    for _ in range(repeat):
        begun = time.perf_counter()
        out = call()
        times.append(time.perf_counter() - begun)
    return float(np.median(times)), out


class Counting(Objective):
    """An objective that counts its Hessians, with those of what runs open from it."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.hessians = []

    def hessian(self, x):
        self.hessians.append(1)
        return super().hessian(x)


def reference_radius(f, p, infimum):
    low, high = 0.1, 1_000.0
    for _ in range(14):
        middle = math.sqrt(low * high)
        good = minimize(f, LpBall(p, middle), tol=1e-5).value <= 1.001 * infimum
        low, high = (low, middle) if good else (middle, high)
    return high


def logistic(quick, repeat):
    adult = datasets.load_adult()
    X, y = adult.X, adult.y
    data = as_data(X, y)
    plain = Objective(Logistic(), data, fit_intercept=True)
    infimum = minimize(plain, LpBall(2, 1_000.0), tol=1e-6, max_iter=100).value
    rows = []
    for p in (2.0, 1.5, 1.1):
        R = reference_radius(plain, p, infimum)
        for rho in RHOS:
            f, ball = Counting(Logistic(), data, fit_intercept=True), LpBall(p, rho * R)
            spent, result = timed(lambda: minimize(f, ball, ConstrainedNewton(), tol=1e-8), repeat)
            row = {
                "p": p,
                "rho": rho,
                "R_p": R,
                "seconds": spent,
                "gap": result.relative_gap,
                "status": result.status.name,
                "hessians": len(f.hessians) / repeat,
                "passes": result.n_passes,
            }
            if p == 2.0 and rho == 0.5:
                row |= peers(f, ball, X, y, result, repeat, quick)
            elif not quick:
                row["SLSQP"] = slsqp(f, ball, X, y, result)
            rows.append(row)
    return rows


def peers(f, ball, X, y, result, repeat, quick):
    from sklearn.linear_model import LogisticRegression

    C = ball.radius / (len(y) * result.multiplier)
    out, best = {}, result.value
    for tol in (1e-4, 1e-6, 1e-8, 1e-10):
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=tol, max_iter=1_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spent, fitted = timed(lambda: model.fit(X, y), repeat)
        if excess(f, ball, fitted.coef_.ravel(), best) <= 1e-8:
            out["newton-cholesky"] = spent
            break
    out["SLSQP"] = slsqp(f, ball, X, y, result) if not quick else math.nan
    out["copt"] = copt(f, ball, X, y, best) if not quick else math.nan
    return out


def excess(f, ball, w, best):
    w = w * min(1.0, ball.radius / ball.norm(w))
    return (f.value(f.point(w)) - best) / best


def full_loss(X, y):
    Z = np.column_stack([X, np.ones(len(y))])

    def value(v):
        m = y * (Z @ v)
        s = 1.0 / (1.0 + np.exp(np.clip(m, -700, 700)))
        return np.logaddexp(0.0, -m).mean(), Z.T @ (-y * s) / len(y)

    return value


def slsqp(f, ball, X, y, result):
    """Seconds of SLSQP, infinite where it does not get within 1e-8."""
    from scipy.optimize import minimize as scipy_minimize

    p, r = ball.p, ball.radius
    start = np.full(X.shape[1] + 1, 1e-3)
    inside = {
        "type": "ineq",
        "fun": lambda v: r**p - np.sum(np.abs(v[:-1]) ** p),
        "jac": lambda v: np.append(-p * np.sign(v[:-1]) * np.abs(v[:-1]) ** (p - 1), 0.0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        found = scipy_minimize(
            full_loss(X, y),
            start,
            jac=True,
            method="SLSQP",
            constraints=[inside],
            options={"ftol": 1e-11, "maxiter": 500},
        )
        spent = time.perf_counter() - begun
    return spent if excess(f, ball, found.x[:-1], result.value) <= 1e-8 else math.inf


def copt(f, ball, X, y, best):
    """Seconds of copt's accelerated projected gradient, infinite where 20,000 iterations are not enough."""
    try:
        import copt as peer
    except ImportError:
        return math.nan
    l2 = peer.constraint.L2Ball(ball.radius)

    def prox(v, step):
        return np.append(l2.prox(v[:-1], step), v[-1])

    for most in (1_000, 5_000, 20_000):
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = peer.minimize_proximal_gradient(
                full_loss(X, y),
                np.zeros(X.shape[1] + 1),
                prox,
                jac=True,
                step="backtracking",
                accelerated=True,
                max_iter=most,
                tol=0.0,
            )
        spent = time.perf_counter() - begun
        if excess(f, ball, found.x[:-1], best) <= 1e-8:
            return spent
    return math.inf


def squares(quick, repeat):
    year = datasets.year_stand_in(100_000 if quick else 515_345)
    data = as_data(year.X, year.y, centre=True, scale=True)
    rows = []
    for p in (1.05, 1.1, 1.5, 2.0):
        f = Objective(Squared(), data, fit_intercept=True)
        wide = minimize(f, LpBall(2, 1e6), tol=1e-9)
        ball = LpBall(p, 0.5 * LpBall(p, 1.0).norm(wide.w))
        f = Objective(Squared(), data, fit_intercept=True)
        spent, result = timed(lambda f=f, ball=ball: minimize(f, ball, tol=1e-12), 1)
        rows.append(
            {
                "p": p,
                "seconds": spent,
                "passes": result.n_passes,
                "gap": result.relative_gap,
                "status": result.status.name,
            }
        )
    return rows


def paths(quick, repeat):
    adult, rows = datasets.load_adult(), []
    year = datasets.load_year_sample()
    year = year if quick else datasets.year_stand_in(515_345)
    cases = {"squared": (Squared(), year.X, year.y), "logistic": (Logistic(), adult.X, adult.y)}
    for name, (loss, X, y) in cases.items():
        data = as_data(X, y, centre=True, scale=True)
        for p in (2.0, 1.5):
            radii = np.geomspace(0.05, 20.0, 50) * (1.0 if name == "logistic" else np.std(y))
            whole, found = timed(
                lambda: path(Objective(loss, data, fit_intercept=True), LpBall(p, 1.0), radii, tol=1e-6), repeat
            )
            cold = max(
                timed(lambda r=r: minimize(Objective(loss, data, fit_intercept=True), LpBall(p, r), tol=1e-6), repeat)[
                    0
                ]
                for r in radii[::7]
            )
            good = all(result.status.converged for result in found.results)
            rows.append(
                {"loss": name, "p": p, "ratio": whole / cold, "path": whole, "hardest": cold, "certified": good}
            )
    return rows


def show(title, rows):
    table = Table(title=title)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(f"{row[n]:.4g}" if isinstance(row.get(n), float) else str(row.get(n, "")) for n in names))
    console().print(table)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--repeat", type=int, default=3)
    destinations(options)
    chosen = options.parse_args()
    info, found = machine(), {}
    for title, run in (
        ("logistic on Adult to a certified 1e-8", logistic),
        (
            "least squares, stand-in for the year data, to 1e-12 (passes: Gram and exit check included)",
            squares,
        ),
        ("50 radii, certified 1e-6 each, over the hardest cold solution", paths),
    ):
        found[run.__name__] = run(chosen.quick, chosen.repeat)
        show(title, found[run.__name__])
    keep("newton", {"machine": info, **found}, chosen)


if __name__ == "__main__":
    main()
