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

from projfree.run.penalty import lasso_alpha, logistic_C, ridge_alpha

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
    spare : bool
        Whether a quick run leaves it out.
    """

    name: str
    solve: Callable[[Any, float], Answers]
    settings: tuple[float, ...] = TIGHTER
    spare: bool = False


def warm(problem: Any, fit: Callable[[Any, Any], Any]) -> Answers:
    """Answers to all goals, ``fit(goal, before)`` each from the one before."""
    found: Answers = []
    for goal in problem.goals:
        found.append(fit(goal, found[-1] if found else None))
    return found


def sklearn_lasso(selection: str) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        from sklearn.linear_model import Lasso, lasso_path

        alphas = np.array([lasso_alpha(goal.multiplier) for goal in p.goals])
        if p.intercept:
            model = Lasso(alpha=alphas[0], tol=tol, max_iter=100_000, selection=selection, random_state=0)
            return [model.fit(p.csc, p.y).coef_]
        settings = {"selection": selection, "random_state": 0, "precompute": False, "check_input": False}
        return list(lasso_path(p.csc, p.y, alphas=alphas, tol=tol, max_iter=100_000, **settings)[1].T)

    return solve


def celer_lasso(p0: int) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        from celer import Lasso, celer_path

        alphas = np.array([lasso_alpha(goal.multiplier) for goal in p.goals])
        if p.intercept:
            return [Lasso(alpha=alphas[0], tol=tol, p0=p0, prune=True).fit(p.csc, p.y).coef_]
        return list(celer_path(p.csc, p.y, "lasso", alphas=alphas, tol=tol, p0=p0, prune=1, max_iter=100)[1].T)

    return solve


def skglm_lasso(p: Any, tol: float) -> Answers:
    from skglm.datafits import Quadratic
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD

    solver = AndersonCD(tol=tol, fit_intercept=p.intercept, max_iter=200, warm_start=True)
    return _skglm(p, solver, Quadratic(), lambda mu: L1(lasso_alpha(mu)))


def skglm_logistic(p: Any, tol: float) -> Answers:
    from skglm.datafits import Logistic
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    return _skglm(p, ProxNewton(tol=tol, fit_intercept=p.intercept, max_iter=200, warm_start=True), Logistic(), L1)


def _skglm(p: Any, solver: Any, datafit: Any, penalty: Callable[[float], Any]) -> Answers:
    d = p.csc.shape[1]

    def fit(goal: Any, before: np.ndarray | None) -> np.ndarray:
        start = np.zeros(d + p.intercept) if before is None else before
        image = np.zeros(len(p.y)) if before is None else p.csc @ before
        return solver.solve(p.csc, p.y, datafit, penalty(goal.multiplier), start, image, run_checks=False)[0]

    return [w[:d] for w in warm(p, fit)]


def celer_logistic(p0: int) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        from celer import celer_path

        alphas = np.array([goal.multiplier * len(p.y) for goal in p.goals])
        settings = {"tol": tol, "p0": p0, "use_PN": True, "max_iter": 100}
        return list(celer_path(p.csc, p.y, "logreg", alphas=alphas, **settings)[1].T)

    return solve


def sklearn_logistic(solver: str, norm: float, dual: bool = False) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        from sklearn.linear_model import LogisticRegression

        settings = {"solver": solver, "tol": tol, "max_iter": 10_000, "fit_intercept": p.intercept, "dual": dual}
        settings["l1_ratio"] = 1.0 if norm == 1.0 else 0.0

        def fit(goal: Any, before: np.ndarray | None) -> np.ndarray:
            C = logistic_C(goal.multiplier, goal.radius, len(p.y), norm)
            coefficients = LogisticRegression(C=C, **settings).fit(p.csr, p.y).coef_
            return coefficients[0] if len(coefficients) == 1 else coefficients.T

        return warm(p, fit)

    return solve


def sklearn_ridge(solver: str) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        from sklearn.linear_model import ridge_regression

        alpha = ridge_alpha(p.goals[0].multiplier, p.goals[0].radius, len(p.y))
        return [ridge_regression(p.csr, p.y, alpha, solver=solver, tol=tol, max_iter=100_000, check_input=False)]

    return solve


def adelie(family: str, width: int = 1) -> Callable[[Any, float], Answers]:
    """Adelie on sparse or dense columns, in groups of ``width``, without weights of the groups."""

    def solve(p: Any, tol: float) -> Answers:
        import adelie as ad

        d, scale = p.csc.shape[1], 0.5 if family == "gaussian" else 1.0
        X = ad.matrix.sparse(p.csc) if p.sparse else ad.matrix.dense(p.csc)
        glm = ad.glm.gaussian(p.y) if family == "gaussian" else ad.glm.binomial((p.y + 1.0) / 2.0)
        path = np.array([scale * goal.multiplier for goal in p.goals])
        groups = np.arange(0, d, width)
        settings = {"groups": groups, "penalty": np.ones(len(groups)), "lmda_path": path, "early_exit": False}
        settings |= {"tol": tol} if family == "gaussian" else {"tol": tol, "irls_tol": tol}
        state = ad.grpnet(X, glm, intercept=p.intercept, progress_bar=False, n_threads=1, **settings)
        return [np.asarray(row.todense()).ravel() for row in state.betas]

    return solve


def glum(family: str, norm: float) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        from glum import GeneralizedLinearRegressor

        goal = p.goals[0]
        alpha = goal.multiplier if norm == 1.0 else goal.multiplier / goal.radius
        y = (p.y + 1.0) / 2.0 if family == "binomial" else p.y
        settings = {"family": family, "l1_ratio": float(norm == 1.0), "fit_intercept": p.intercept, "max_iter": 1_000}
        return [GeneralizedLinearRegressor(alpha=alpha, gradient_tol=tol, **settings).fit(p.csc, y).coef_]

    return solve


def celer_groups(p: Any, tol: float) -> Answers:
    from celer import GroupLasso

    alpha = lasso_alpha(p.goals[0].multiplier)
    return [GroupLasso(groups=p.width, alpha=alpha, tol=tol, fit_intercept=False, prune=True).fit(p.csc, p.y).coef_]


def skglm_groups(p: Any, tol: float) -> Answers:
    from skglm import GroupLasso

    alpha = lasso_alpha(p.goals[0].multiplier)
    return [GroupLasso(groups=p.width, alpha=alpha, tol=tol, fit_intercept=False, max_iter=500).fit(p.csc, p.y).coef_]


def celer_tasks(p: Any, tol: float) -> Answers:
    from celer.homotopy import mtl_path  # its estimator does not work with scikit-learn 1.6 and later

    alphas = np.array([lasso_alpha(goal.multiplier) for goal in p.goals])
    return list(mtl_path(p.csc, np.asfortranarray(p.y), alphas=alphas, tol=tol, prune=True)[1].T)


def tasks(module: str, **settings: Any) -> Callable[[Any, float], Answers]:
    def solve(p: Any, tol: float) -> Answers:
        lasso = __import__(module, fromlist=["MultiTaskLasso"]).MultiTaskLasso
        alpha = lasso_alpha(p.goals[0].multiplier)
        return [lasso(alpha=alpha, tol=tol, fit_intercept=False, **settings).fit(p.csc, p.y).coef_.T]

    return solve


def peers(problem: Any) -> Iterator[Peer]:
    """All peers that solve the problem."""
    for peer in FAMILIES.get((problem.loss, problem.norm), lambda p: iter(()))(problem):
        # Whole decades are enough for a path, whose radii differ in what they need.
        yield peer if len(problem.goals) == 1 else replace(peer, settings=peer.settings[::2])


def _lasso(p: Any) -> Iterator[Peer]:
    yield Peer("scikit-learn cyclic", sklearn_lasso("cyclic"))
    yield Peer("scikit-learn random", sklearn_lasso("random"), spare=True)
    yield Peer("celer p0=10", celer_lasso(10))
    yield Peer("celer p0=100", celer_lasso(100), spare=True)
    yield Peer("skglm AndersonCD", skglm_lasso)
    yield Peer("adelie", adelie("gaussian"), TIGHTER[4:], spare=True)


def _logistic_l1(p: Any) -> Iterator[Peer]:
    yield Peer("liblinear", sklearn_logistic("liblinear", 1.0))
    yield Peer("celer p0=10", celer_logistic(10))
    yield Peer("celer p0=100", celer_logistic(100), spare=True)
    yield Peer("skglm ProxNewton", skglm_logistic)
    yield Peer("adelie", adelie("binomial"), TIGHTER[4:], spare=True)
    if p.csc.shape[1] <= 1_000 and len(p.goals) == 1:  # it forms dense Hessians
        yield Peer("glum", glum("binomial", 1.0), spare=True)


def _logistic_l2(p: Any) -> Iterator[Peer]:
    yield Peer("scikit-learn lbfgs", sklearn_logistic("lbfgs", 2.0))
    yield Peer("scikit-learn newton-cg", sklearn_logistic("newton-cg", 2.0))
    yield Peer("liblinear", sklearn_logistic("liblinear", 2.0))
    yield Peer("liblinear dual", sklearn_logistic("liblinear", 2.0, dual=True), spare=True)
    if p.csc.shape[1] <= 1_000:
        yield Peer("scikit-learn newton-cholesky", sklearn_logistic("newton-cholesky", 2.0))
        yield Peer("glum", glum("binomial", 2.0), spare=True)


def _ridge(p: Any) -> Iterator[Peer]:
    for solver in ("lsqr", "sparse_cg"):
        yield Peer(f"scikit-learn {solver}", sklearn_ridge(solver))


def _softmax(p: Any) -> Iterator[Peer]:
    yield Peer("scikit-learn lbfgs", sklearn_logistic("lbfgs", 2.0), TIGHTER[2::2])
    yield Peer("scikit-learn newton-cg", sklearn_logistic("newton-cg", 2.0), TIGHTER[2::2], spare=True)


def _groups(p: Any) -> Iterator[Peer]:
    yield Peer("adelie", adelie("gaussian", p.width))
    yield Peer("celer GroupLasso", celer_groups)
    yield Peer("skglm GroupBCD", skglm_groups)


def _tasks(p: Any) -> Iterator[Peer]:
    yield Peer("scikit-learn MultiTaskLasso", tasks("sklearn.linear_model", max_iter=100_000))
    yield Peer("celer mtl_path", celer_tasks)
    yield Peer("skglm MultiTaskLasso", tasks("skglm", max_iter=500), spare=True)


FAMILIES: dict[tuple[str, str], Callable[[Any], Iterator[Peer]]] = {
    ("squared", "l_1"): _lasso,
    ("logistic", "l_1"): _logistic_l1,
    ("logistic", "l_2"): _logistic_l2,
    ("squared", "l_2"): _ridge,
    ("softmax", "l_2"): _softmax,
    ("squared", "groups"): _groups,
    ("squared", "rows"): _tasks,
}
