"""The peers of the benchmark of sparse problems: each at its own tolerances, with the penalty of the radius for free.

A peer gets ready arrays in the layout that it likes (`Problem.csc` and `Problem.csr`, or Fortran order where dense),
and is called as directly as its interface allows: without validation where it can be left out, without an estimator
around a solver. It returns one answer for each goal of the problem; several goals are a path, with warm starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

TIGHTER = tuple(10.0 ** (-k / 2) for k in range(2, 29))
Answers = list[np.ndarray]


@dataclass(frozen=True)
class Peer:
    """A way to solve the penalised problem, and its tolerances, loosest first.

    Attributes
    ----------
    name : str
        The package and its solver.
    solve : callable
        ``solve(problem, tolerance)``: an answer for each goal.
    settings : tuple of float
        The tolerances.
    """

    name: str
    solve: Callable[[Any, float], Answers]
    settings: tuple[float, ...] = TIGHTER


def sklearn_lasso(p: Any, tol: float) -> Answers:
    from sklearn.linear_model import Lasso, lasso_path

    alphas = np.array([goal.multiplier / 2 for goal in p.goals])
    if p.intercept:
        return [Lasso(alpha=alphas[0], tol=tol, max_iter=100_000).fit(p.csc, p.y).coef_]
    settings = {"precompute": False, "check_input": False, "max_iter": 100_000}
    return list(lasso_path(p.csc, p.y, alphas=alphas, tol=tol, **settings)[1].T)


def celer_lasso(p0: int) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        from celer import Lasso, celer_path

        alphas = np.array([goal.multiplier / 2 for goal in p.goals])
        if p.intercept:
            return [Lasso(alpha=alphas[0], tol=tol, p0=p0, prune=True).fit(p.csc, p.y).coef_]
        return list(celer_path(p.csc, p.y, "lasso", alphas=alphas, tol=tol, p0=p0, prune=1, max_iter=100)[1].T)

    return solve


def skglm_logistic(p: Any, tol: float) -> Answers:
    from skglm.datafits import Logistic
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    solver, penalty = ProxNewton(tol=tol, fit_intercept=False, max_iter=200), L1(p.goals[0].multiplier)
    start, image = np.zeros(p.csc.shape[1]), np.zeros(len(p.y))
    return [solver.solve(p.csc, p.y, Logistic(), penalty, start, image, run_checks=False)[0]]


def celer_logistic(p: Any, tol: float) -> Answers:
    from celer import celer_path

    alphas = np.array([goal.multiplier * len(p.y) for goal in p.goals])
    return list(celer_path(p.csc, p.y, "logreg", alphas=alphas, tol=tol, use_PN=True, max_iter=100)[1].T)


def sklearn_logistic(solver: str) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        from sklearn.linear_model import LogisticRegression

        settings = {"solver": solver, "tol": tol, "max_iter": 10_000, "fit_intercept": p.intercept, "l1_ratio": 1.0}

        def fit(goal: Any) -> np.ndarray:
            C = 1.0 / (len(p.y) * goal.multiplier)
            coefficients = LogisticRegression(C=C, **settings).fit(p.csr, p.y).coef_
            return coefficients[0] if len(coefficients) == 1 else coefficients.T

        return [fit(goal) for goal in p.goals]

    return solve


def adelie(p: Any, tol: float) -> Answers:
    """Groups of ``p.width`` dense columns, without weights of the groups."""
    import adelie as ad

    groups, path = np.arange(0, p.csc.shape[1], p.width), np.array([0.5 * goal.multiplier for goal in p.goals])
    settings = {"groups": groups, "penalty": np.ones(len(groups)), "lmda_path": path, "early_exit": False, "tol": tol}
    glm, quiet = ad.glm.gaussian(p.y), {"progress_bar": False, "n_threads": 1}
    state = ad.grpnet(ad.matrix.dense(p.csc), glm, intercept=p.intercept, **settings, **quiet)
    return [np.asarray(row.todense()).ravel() for row in state.betas]


def sklearn_tasks(p: Any, tol: float) -> Answers:
    from sklearn.linear_model import MultiTaskLasso

    alpha = p.goals[0].multiplier / 2
    return [MultiTaskLasso(alpha=alpha, tol=tol, fit_intercept=False, max_iter=100_000).fit(p.csc, p.y).coef_.T]


def peers(problem: Any) -> Iterator[Peer]:
    """All peers that solve the problem."""
    for peer in FAMILIES.get((problem.loss, problem.norm), lambda p: iter(()))(problem):
        # Whole decades are enough for a path, whose radii differ in what they need.
        yield peer if len(problem.goals) == 1 else replace(peer, settings=peer.settings[::2])


def _lasso(p: Any) -> Iterator[Peer]:
    yield Peer("scikit-learn", sklearn_lasso)
    yield Peer("celer p0=10", celer_lasso(10))
    yield Peer("celer p0=100", celer_lasso(100))


def _logistic_l1(p: Any) -> Iterator[Peer]:
    yield Peer("liblinear", sklearn_logistic("liblinear"))
    yield Peer("skglm ProxNewton", skglm_logistic) if len(p.goals) == 1 else Peer("celer", celer_logistic)


def _softmax(p: Any) -> Iterator[Peer]:
    yield Peer("scikit-learn saga", sklearn_logistic("saga"), TIGHTER[::2])


def _groups(p: Any) -> Iterator[Peer]:
    yield Peer("adelie", adelie)


def _tasks(p: Any) -> Iterator[Peer]:
    yield Peer("scikit-learn MultiTaskLasso", sklearn_tasks)


FAMILIES: dict[tuple[str, str], Callable[[Any], Iterator[Peer]]] = {
    ("squared", "l_1"): _lasso,
    ("logistic", "l_1"): _logistic_l1,
    ("softmax", "l_1"): _softmax,
    ("squared", "groups"): _groups,
    ("squared", "rows"): _tasks,
}
