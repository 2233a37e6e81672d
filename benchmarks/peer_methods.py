"""Other packages' ways to minimise a loss over an l_p ball, with the settings that their documentation recommends.

A method is ``solve(problem, setting)``, with a number of iterations or a tolerance as its setting, and gives an answer.
Peers with a penalty get the one that belongs to the radius for free, and arrays in the layout they like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.estimators.penalty import lasso_alpha, logistic_C, ridge_alpha


@dataclass(frozen=True)
class Peer:
    """A method, the factor from a setting to a tighter one, and the factor to which the best setting is looked for."""

    name: str
    solve: Callable[[Any, float], np.ndarray]
    tighter: float
    close: float


def by_tolerance(name: str, solve: Callable[[Any, float], np.ndarray]) -> Peer:
    return Peer(name, solve, 0.1, 2.0)


def by_iterations(name: str, solve: Callable[[Any, float], np.ndarray]) -> Peer:
    return Peer(name, solve, 3.0, 1.15)


def mean_loss(problem):
    """Value and gradient, as a user would write them."""
    X, y, n = problem.X, problem.y, len(problem.y)
    if problem.loss == "squared":
        return lambda w: ((r := X @ w - y) @ r / n, 2.0 * (X.T @ r) / n)

    def logistic(w):
        m = y * (X @ w)
        s = 1.0 / (1.0 + np.exp(np.clip(m, -700, 700)))
        return np.logaddexp(0.0, -m).mean(), X.T @ (-y * s) / n

    return logistic


def hessian(problem):
    """Of the mean loss; constant for squares."""
    X, y, n = problem.X, problem.y, len(problem.y)
    if problem.loss == "squared":
        H = 2.0 * (X.T @ X) / n
        return lambda w: H

    def logistic(w):
        s = 1.0 / (1.0 + np.exp(np.clip(y * (X @ w), -700, 700)))
        return (X.T * (s * (1.0 - s) / n)) @ X

    return logistic


def copt_frank_wolfe(step, variant="vanilla"):
    """Only the l_1 ball has an oracle in copt."""

    def solve(problem, setting):
        import copt

        ball, start = copt.constraint.L1Ball(problem.radius), np.zeros(problem.X.shape[1])
        settings = {"step": step, "jac": True, "tol": 0.0, "max_iter": int(setting)}
        if step == "DR":
            settings["lipschitz"] = problem.f.smoothness()
        if variant == "pairwise":  # begins at a vertex, which it is told
            start[0] = problem.radius
            settings |= {"variant": variant, "x0_rep": (1.0, 0)}
        lmo = ball.lmo_pairwise if variant == "pairwise" else ball.lmo
        return copt.minimize_frank_wolfe(mean_loss(problem), start, lmo, **settings).x

    return solve


def copt_accelerated(problem, setting):
    import copt

    ball = (copt.constraint.L2Ball if problem.p == 2 else copt.constraint.L1Ball)(problem.radius)
    settings = {"accelerated": True, "step": "backtracking", "jac": True, "tol": 0.0, "max_iter": int(setting)}
    start = np.zeros(problem.X.shape[1])
    return copt.minimize_proximal_gradient(mean_loss(problem), start, ball.prox, **settings).x


def slsqp(problem, setting):
    from scipy.optimize import minimize

    room, slope = _room(problem)
    inside = {"type": "ineq", "fun": room, "jac": slope}
    options = {"ftol": setting, "maxiter": 1000}
    settings = {"jac": True, "method": "SLSQP", "constraints": [inside], "options": options}
    return minimize(mean_loss(problem), _near_zero(problem), **settings).x


def trust_constr(problem, setting):
    from scipy.optimize import NonlinearConstraint, minimize

    room, slope = _room(problem)
    # The power has a second derivative everywhere for p = 2 alone; elsewhere SciPy's default estimates it.
    curved = {"hess": lambda w, v: -2.0 * v[0] * np.eye(len(w))} if problem.p == 2 else {}
    inside = NonlinearConstraint(room, 0.0, np.inf, jac=lambda w: slope(w)[None, :], **curved)
    options = {"gtol": setting, "xtol": 1e-2 * setting, "maxiter": 2000}
    settings = {"jac": True, "hess": hessian(problem), "method": "trust-constr", "constraints": [inside]}
    return minimize(mean_loss(problem), _near_zero(problem), options=options, **settings).x


def _room(problem):
    p, r = problem.p, problem.radius
    return lambda w: r**p - np.sum(np.abs(w) ** p), lambda w: -p * np.sign(w) * np.abs(w) ** (p - 1)


def _near_zero(problem):
    return np.full(problem.X.shape[1], 1e-3 * problem.radius / problem.X.shape[1])


def cvxpy(name):
    def solve(problem, setting):
        import cvxpy as cp

        w, n = cp.Variable(problem.X.shape[1]), len(problem.y)
        loss = (
            cp.sum_squares(problem.X @ w - problem.y)
            if problem.loss == "squared"
            else cp.sum(cp.logistic(cp.multiply(-problem.y, problem.X @ w)))
        ) / n
        clarabel = dict.fromkeys(("tol_gap_rel", "tol_gap_abs", "tol_feas"), setting)
        options = clarabel if name == "CLARABEL" else dict.fromkeys(("eps_abs", "eps_rel"), setting)
        cp.Problem(cp.Minimize(loss), [cp.norm(w, problem.p) <= problem.radius]).solve(solver=name, **options)
        return w.value

    return solve


def logistic_regression(solver):
    def solve(problem, setting):
        from sklearn.linear_model import LogisticRegression

        C = logistic_C(problem.best.multiplier, problem.radius, len(problem.y))
        settings = {"solver": solver, "tol": setting, "max_iter": 10_000, "fit_intercept": False}
        return LogisticRegression(C=C, **settings).fit(problem.X, problem.y).coef_

    return solve


def ridge(problem, setting):
    from sklearn.linear_model import Ridge

    alpha = ridge_alpha(problem.best.multiplier, problem.radius, len(problem.y))
    return Ridge(alpha=alpha, fit_intercept=False, tol=setting).fit(problem.X, problem.y).coef_


def lasso(module):
    def solve(problem, setting):
        found = __import__(module, fromlist=["Lasso"]).Lasso
        # Up to a hundred times the default, so that the tolerance decides.
        settings = {"fit_intercept": False, "tol": setting, "max_iter": 10_000}
        return found(alpha=lasso_alpha(problem.best.multiplier), **settings).fit(problem.by_columns, problem.y).coef_

    return solve


def peers(problem, quick) -> Iterator[Peer]:
    """Those that can solve the problem."""
    if problem.p in (1, 2):
        yield by_iterations("copt accelerated", copt_accelerated)
    if problem.p == 1:
        for step in ("backtracking", "DR"):
            yield by_iterations(f"copt Frank-Wolfe, {step}", copt_frank_wolfe(step))
        yield by_iterations("copt pairwise Frank-Wolfe", copt_frank_wolfe("backtracking", "pairwise"))
    if problem.p > 1:
        yield by_tolerance("SciPy SLSQP", slsqp)
        if not quick:
            yield by_tolerance("SciPy trust-constr", trust_constr)
    if problem.X.size <= 700_000:  # logistic losses of more rows take gigabytes
        yield by_tolerance("CVXPY Clarabel", cvxpy("CLARABEL"))
        yield by_tolerance("CVXPY SCS", cvxpy("SCS"))
    if problem.p == 2 and problem.loss == "logistic":
        for solver in ("newton-cholesky", "lbfgs"):
            yield by_tolerance(f"scikit-learn {solver}", logistic_regression(solver))
    if problem.p == 2 and problem.loss == "squared":
        yield by_tolerance("scikit-learn Ridge", ridge)
    if problem.p == 1 and problem.loss == "squared":
        for name, module in {"scikit-learn": "sklearn.linear_model", "celer": "celer", "skglm": "skglm"}.items():
            yield by_tolerance(f"{name} Lasso", lasso(module))
