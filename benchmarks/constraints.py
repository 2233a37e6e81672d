"""Linear constraints inside a ball, beside CVXPY with Clarabel, glum and scikit-lego, in one thread.

Run with ``python benchmarks/constraints.py [--commit]`` where the extra ``peers`` is installed. Times are the best of
some interleaved runs, in seconds of the processor, from arrays to coefficients. Ours end at a certified relative gap of
1e-6; the peers keep their default tolerances, CVXPY ends after 60 seconds, and the table says how far its value is
above the best bound, whether or not its coefficients satisfy all constraints.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from common import with_one_thread
from record import destinations, keep, machine

from projfree import (
    Constrained,
    Logistic,
    LpBall,
    Objective,
    Poisson,
    QuadraticForm,
    Squared,
    as_data,
    datasets,
    minimize,
)
from projfree.sets import bounds, covariance, order, shifted, sums_to
from projfree.sets.rows import joined

TOL, REPEATS = 1e-6, 3
#: Seconds of a run that is not repeated, and after which CVXPY gives up.
LONG, LIMIT = 5.0, 60.0


@dataclass
class Case:
    """A problem: ours, how CVXPY states it, and other peers, which fit the same rows."""

    name: str
    f: Any
    C: Constrained
    cvxpy: Callable[[Any], Any]
    peers: dict[str, Callable[[], Any]] = field(default_factory=dict)


def adult(n: int, p: float, r: float) -> Case:
    """Logistic regression on Adult, a chain of ten columns and ten signs."""
    table = datasets.load_adult()
    X, y = np.asarray(table.X, dtype=np.float64)[:n], np.asarray(table.y, dtype=np.float64)[:n]
    X = X[:, X.std(axis=0) > 0.0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    d = X.shape[1]
    C = Constrained(LpBall(p, r), [order(range(10)), bounds(range(20, 30), 0.0)])
    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    return Case(f"Adult logistic {n:,} x {d}, l_{p:g}, chain and signs", f, C, logistic(X, y))


def logistic(X: Any, y: Any) -> Callable[[Any], Any]:
    def state(w: Any) -> Any:
        import cvxpy as cp

        return cp.sum(cp.logistic(-cp.multiply(y, X @ w + cp.Variable()))) / len(y)

    return state


def tariff() -> Case:
    """A Poisson tariff with two monotone chains, at the radius that glum's ridge penalty has."""
    rng = np.random.default_rng(0)
    n, d, alpha = 20_000, 50, 1e-3
    X = rng.standard_normal((n, d)) / 4
    w = np.concatenate(
        [np.sort(rng.standard_normal(10)), np.sort(rng.standard_normal(10)), rng.standard_normal(d - 20)]
    )
    y = rng.poisson(np.exp(X @ (w + 0.3 * rng.standard_normal(d)) - 1.0)).astype(float)
    rows = [order(range(10)), order(range(10, 20))]
    A = joined(rows, d)[0].toarray()

    def glum() -> Any:
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(family="poisson", alpha=alpha, A_ineq=-A, b_ineq=np.zeros(len(A)))
        return model.fit(X, y).coef_

    def state(w: Any) -> Any:
        import cvxpy as cp

        u = X @ w + cp.Variable()
        return cp.sum(cp.exp(u) - cp.multiply(y, u)) / n

    C = Constrained(LpBall(2, float(np.linalg.norm(glum()))), rows)
    f = Objective(Poisson(), as_data(X, y), fit_intercept=True)
    return Case("Poisson 20,000 x 50, two chains, l_2", f, C, state, {"glum": glum})


def fairness() -> Case:
    rng = np.random.default_rng(1)
    n, d, limit = 5_000, 30, 0.02
    z = (rng.random((n, 2)) < 0.4).astype(float)
    X = rng.standard_normal((n, d)) + 0.5 * z @ rng.standard_normal((2, d))
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) * 3 > 0, 1.0, -1.0)
    C = Constrained(LpBall(2, 1.0), [covariance(X, z[:, k], limit) for k in (0, 1)])

    def lego() -> Any:
        import pandas as pd
        from sklego.linear_model import DemographicParityClassifier

        frame = pd.DataFrame(X).assign(a=z[:, 0], b=z[:, 1])
        frame.columns = frame.columns.astype(str)
        model = DemographicParityClassifier(sensitive_cols=["a", "b"], covariance_threshold=limit, penalty="none")
        return model.fit(frame, (y > 0).astype(int))

    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    return Case("fairness 5,000 x 30, two covariances, l_2", f, C, logistic(X, y), {"scikit-lego": lego})


def contrasts(d: int) -> Case:
    rng = np.random.default_rng(2)
    n = 2 * d
    X = np.log(rng.dirichlet(np.ones(d), n) + 1e-3)
    X -= X.mean(axis=0)
    w = np.zeros(d)
    w[:6] = 1.0, -0.8, 0.6, 0.0, -1.5, 0.7
    y = X @ w + 0.5 * rng.standard_normal(n)

    def state(w: Any) -> Any:
        import cvxpy as cp

        return cp.sum_squares(X @ w - y) / n

    C = Constrained(LpBall(1, 4.0), sums_to(0.0, range(d)))
    return Case(f"log-contrast {n:,} x {d}, l_1, sum to zero", Objective(Squared(), as_data(X, y)), C, state)


def portfolio(d: int, kind: str) -> Case:
    rng = np.random.default_rng(3)
    F = rng.standard_normal((d, 10))
    H, mean = (F @ F.T + np.diag(rng.uniform(0.5, 2.0, d))) / 10, 0.1 * rng.standard_normal(d)
    rows = [sums_to(1.0, range(d)), bounds(range(d), 0.0, 10.0 / d)]
    held = np.full(d, 1.0 / d)
    ball = (
        shifted(LpBall(1, 0.5), held)
        if kind == "turnover"
        else LpBall(float(kind), 2.0 / np.sqrt(d) if kind == "2" else 0.5)
    )
    f = QuadraticForm(H, mean)

    def state(w: Any) -> Any:
        import cvxpy as cp

        return 0.5 * cp.quad_form(w, cp.psd_wrap(H)) - mean @ w

    what = "turnover" if kind == "turnover" else f"l_{kind}"
    return Case(f"portfolio {d}, {what}, all bounds", f, Constrained(ball, rows), state)


def singular() -> Case:
    rng = np.random.default_rng(4)
    n, d = 2_000, 60
    X = rng.standard_normal((n, d // 2)) @ rng.standard_normal((d // 2, d)) / 6 + 1e-6 * rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) + 2 * rng.standard_normal(n) > 0, 1.0, -1.0)
    C = Constrained(LpBall(2, 100.0), [order(range(10)), bounds(range(10, 30), -1.0, 1.0)])
    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    return Case("near-singular logistic 2,000 x 60, ball not active", f, C, logistic(X, y))


def cases() -> Iterator[Case]:
    yield adult(5_000, 2, 1.0)
    yield adult(5_000, 1.5, 1.0)
    yield tariff()
    yield fairness()
    for d in (200, 500, 1_000):
        yield contrasts(d)
    for d, kind in ((100, "turnover"), (500, "turnover"), (300, "2"), (300, "1.5")):
        yield portfolio(d, kind)
    yield singular()
    yield adult(48_842, 2, 1.0)
    yield adult(48_842, 1.5, 1.0)


def with_cvxpy(case: Case) -> Any:
    """The coefficients by Clarabel."""
    import cvxpy as cp

    C, d = case.C, case.f.shape[0]
    ball, offset = (C.ball.ball, C.ball.offset) if hasattr(C.ball, "offset") else (C.ball, 0.0)
    w = cp.Variable(d)
    A, lower, upper, _ = joined(C.rows, d)
    equal, low, high = lower == upper, np.isfinite(lower), np.isfinite(upper)
    says = [cp.norm(w - offset, ball.p) <= ball.radius]
    says += [A[equal] @ w == lower[equal]] if equal.any() else []
    says += [A[low & ~equal] @ w >= lower[low & ~equal]] if (low & ~equal).any() else []
    says += [A[high & ~equal] @ w <= upper[high & ~equal]] if (high & ~equal).any() else []
    with suppress(cp.SolverError):  # what it calls failed: there are no coefficients then
        cp.Problem(cp.Minimize(case.cvxpy(w)), says).solve(solver=cp.CLARABEL, time_limit=LIMIT)
    return w.value


def measure(case: Case) -> dict[str, Any]:
    """Best times of interleaved runs, and the passes to three tolerances."""
    row: dict[str, Any] = {"problem": case.name}
    bound = 0.0
    for tol in (1e-4, 1e-6, 1e-8):
        fresh = Constrained(case.C.ball, case.C.rows)
        result = minimize(case.f.open(), fresh, tol=tol)
        row[f"passes to {tol:g}"] = round(result.n_passes)
        if tol == TOL:
            A, lower, upper, _ = joined(fresh.rows, len(result.w))
            t, off, bound = A @ result.w, lower != upper, result.bound
            row["certified gap"] = result.relative_gap
            row["violation"] = float(np.max(np.maximum(lower - t, t - upper)[off], initial=0.0))
    runs: dict[str, Callable[[], Any]] = {
        "ours, s": lambda: minimize(case.f.open(), Constrained(case.C.ball, case.C.rows), tol=TOL).w,
        "CVXPY, s": lambda: with_cvxpy(case),
        **{f"{name}, s": run for name, run in case.peers.items()},
    }
    for _ in range(REPEATS):
        for name, run in runs.items():
            if row.get(name, 0.0) > LONG:
                continue
            begun = time.process_time()
            w = run()
            row[name] = min(row.get(name, np.inf), time.process_time() - begun)
            if name == "CVXPY, s":
                above = "failed" if w is None else float((case.f(case.f.point(w)) - bound) / abs(bound))
                row["gap of CVXPY"] = above
    return row


def main() -> None:
    with_one_thread()
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    destinations(options)
    chosen, info, rows = options.parse_args(), machine(), []
    measure(portfolio(20, "2"))  # imports and compilation
    for case in cases():
        rows.append(measure(case))
        print(rows[-1], file=sys.stderr, flush=True)
        keep("constraints", {"machine": info, "problems": rows}, chosen)  # what is interrupted counts up to there


if __name__ == "__main__":
    main()
