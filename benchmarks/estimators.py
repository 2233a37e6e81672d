"""The estimators against scikit-learn, in one run: speed on Adult, multitask learning on School, outliers in songs.

python benchmarks/estimators.py speed | search | school | robust
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LassoCV, LogisticRegressionCV, MultiTaskLasso, Ridge, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold

from projfree import ConstrainedClassifierCV, ConstrainedRegressor, ConstrainedRegressorCV
from projfree.datasets import load_adult, load_school, load_year_sample

RADII = np.geomspace(3, 300, 9)
SOLVERS = ("newton-cholesky", "lbfgs", "newton-cg")


def speed() -> None:
    """20 radii x 5 folds on Adult against 20 penalties x 5 folds, at the suboptimality that the other one reaches."""
    adult = load_adult()
    X, y = adult.X, adult.y
    folds = list(StratifiedKFold(5).split(X, y))
    models, seconds = {}, {}
    for solver in SOLVERS:
        grid = {"Cs": np.geomspace(1e-5, 1e2, 20), "l1_ratios": (0,), "use_legacy_attributes": False}
        model = LogisticRegressionCV(**grid, cv=folds, solver=solver, tol=1e-4, max_iter=1000, scoring="accuracy")
        begun = time.perf_counter()
        models[solver] = model.fit(X, y)
        seconds[solver] = time.perf_counter() - begun
        print(f"LogisticRegressionCV({solver})".ljust(44), f"{seconds[solver]:7.2f} s")
    fastest = min(seconds, key=seconds.__getitem__)
    coefs = np.reshape(models[fastest].coefs_paths_, (5, 20, -1))[:, :, : X.shape[1]]
    rows = folds[0][0]
    worst = max(_excess(X[rows], y[rows], coefs[0, j]) for j in (0, 10, 19))
    print(f"  {fastest}: largest relative suboptimality of three of its fits, by our bounds: {worst:.1e}")
    radii = np.linalg.norm(coefs, axis=2).mean(axis=0)  # the same problems
    for p, tol in ((2.0, worst), (2.0, 1e-6), (1.5, worst), (1.5, 1e-6)):
        search = ConstrainedClassifierCV(p=p, radii=radii if p == 2.0 else 20, cv=folds, tol=tol)
        begun = time.perf_counter()
        search.fit(X, y)
        took = time.perf_counter() - begun
        name = f"ConstrainedClassifierCV(p={p:g}, tol={tol:.0e})"
        gap = search.path_.gaps.max()
        print(name.ljust(44), f"{took:7.2f} s, {took / seconds[fastest]:.2f} x {fastest}, largest proven gap {gap:.1e}")


def search(repeats: int = 5) -> list[tuple[str, float, float]]:
    """24 radii x 5 folds of least squares against RidgeCV and LassoCV: the radii are the norms of their paths.

    Both run in turn, and the quickest of some repetitions counts. The peers stop at their default tolerance, ours at a
    proven relative gap of 1e-6.
    """
    table = []
    for n, d in ((2_000, 50), (8_000, 276)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        y = X @ (rng.standard_normal(d) * (np.arange(d) % 3 == 0)) / np.sqrt(d) + rng.standard_normal(n)
        folds = list(KFold(5).split(X))
        centred = X - X.mean(axis=0)
        largest = float(np.abs(centred.T @ y).max()) / n
        for p, peer, alphas in (
            (2.0, RidgeCV, np.geomspace(1e-1, 1e5, 24)),
            (1.0, LassoCV, np.geomspace(1e-3, 0.9, 24) * largest),
        ):
            one = Ridge if p == 2.0 else Lasso
            radii = [float(np.linalg.norm(one(alpha=a).fit(X, y).coef_, int(p))) for a in alphas]
            ours = ConstrainedRegressorCV(p=p, radii=radii, cv=folds)
            theirs = peer(alphas=alphas, cv=folds)
            took = {"ours": np.inf, "theirs": np.inf}
            for _ in range(repeats):
                for name, model in (("theirs", theirs), ("ours", ours)):
                    begun = time.perf_counter()
                    model.fit(X, y)
                    took[name] = min(took[name], time.perf_counter() - begun)
            name = f"{n:,} x {d}, p = {p:g}"
            table.append((name, took["ours"], took["theirs"]))
            print(
                f"{name:20} {took['ours']:7.3f} s, {peer.__name__} {took['theirs']:7.3f} s, "
                f"ratio {took['ours'] / took['theirs']:.2f}; best R2 {ours.best_score_:.5f}, largest gap of the path "
                f"{ours.path_.gaps.max():.1e}, verified: {ours.verify(X, y).ok}"
            )
    return table


def _excess(X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """By how much the loss of ``w`` (with its best intercept) can exceed the minimum over the ball through it."""
    from projfree import Logistic, LpBall, Objective, as_data, minimize

    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    best = minimize(f, LpBall(2, float(np.linalg.norm(w))), tol=1e-9)
    return float((f.value(f.point(w)) - best.bound) / best.bound)


def school(splits: int = 10, first: int = 0) -> dict[str, list[float]]:
    """Test explained variance over random splits, three quarters of each school for training."""
    data = load_school()
    X, y, task = data.X, data.y, data.task
    table = np.column_stack([X, task])
    scores: dict[str, list[float]] = {}
    for seed in range(first, first + splits):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        rank = np.empty(len(y))
        for t in range(139):  # the first three quarters of each school in a random order
            rows = order[task[order] == t]
            rank[rows] = np.arange(len(rows)) / len(rows)
        train, test = np.flatnonzero(rank < 0.75), np.flatnonzero(rank >= 0.75)
        fold = [
            (np.flatnonzero(k != np.arange(len(train)) % 3), np.flatnonzero(k == np.arange(len(train)) % 3))
            for k in range(3)
        ]
        for name, predict in methods(X, y, task, table, train, fold).items():
            left = y[test] - predict(test)
            scores.setdefault(name, []).append(1.0 - float(np.sum(left**2) / np.sum((y[test] - y[test].mean()) ** 2)))
        print(f"split {seed}: " + ", ".join(f"{name} {s[-1]:.3f}" for name, s in scores.items()), flush=True)
    print(f"\n{'method':44} explained variance (mean, standard deviation over {splits} splits)")
    for name, s in sorted(scores.items(), key=lambda item: -np.mean(item[1])):
        print(f"{name:44} {100 * np.mean(s):5.2f} % +- {100 * np.std(s, ddof=splits > 1):.2f}")
    return scores


def methods(X, y, task, table, train, fold):
    """Name and prediction of each method, with its parameters chosen by 3 folds of the training rows."""
    out = {}
    pooled = RidgeCV(alphas=np.geomspace(1e-2, 1e4, 13)).fit(X[train], y[train])
    out["one ridge for all schools"] = lambda rows: pooled.predict(X[rows])
    alphas = np.geomspace(1, 1e4, 9)

    def independent(alpha, rows, at):
        guess = np.empty(len(at))
        for t in range(139):
            own, asked = rows[task[rows] == t], task[at] == t
            if asked.any():
                guess[asked] = Ridge(alpha=alpha).fit(X[own], y[own]).predict(X[at[asked]])
        return guess

    losses = [sum(np.sum((y[train[b]] - independent(a, train[f], train[b])) ** 2) for f, b in fold) for a in alphas]
    alpha = alphas[int(np.argmin(losses))]
    out["independent ridge"] = lambda rows: independent(alpha, train, rows)
    out["MultiTaskLasso, other targets filled in"] = _filled(X, y, task, train, fold, pooled)
    for name, parameters in {
        "Schatten p=1": {"norm": "schatten", "p": 1.0},
        "Schatten p=1.5": {"norm": "schatten", "p": 1.5},
        "Schatten p=2": {"norm": "schatten", "p": 2.0},
        "group l_{2,1}": {"norm": "group", "p": 2.0, "q": 1.0},
        "group l_{2,1.5}": {"norm": "group", "p": 2.0, "q": 1.5},
    }.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            search = ConstrainedRegressorCV(
                **parameters, radii=RADII, cv=fold, task=28, standardize=True, tol=1e-3, max_iter=300
            ).fit(table[train], y[train])
        if search.radius_ in (RADII[0], RADII[-1]):
            print(f"  {name}: the chosen radius {search.radius_:g} is at the end of the grid")
        out[f"{name} ball, one intercept a school"] = lambda rows, m=search: m.predict(table[rows])
    return out


def _filled(X, y, task, train, fold, pooled):
    """MultiTaskLasso needs every target of every row: those of other schools are filled in with the pooled ridge."""

    def fit(alpha, rows):
        Y = np.tile(pooled.predict(X[rows])[:, None], (1, 139))
        Y[np.arange(len(rows)), task[rows]] = y[rows]
        # The same problem with as many rows as features: only X^T X and X^T Y enter.
        mx, my = X[rows].mean(axis=0), Y.mean(axis=0)
        values, vectors = np.linalg.eigh((X[rows] - mx).T @ (X[rows] - mx))
        root = np.sqrt(np.maximum(values, 1e-9 * values.max()))
        R = root[:, None] * vectors.T
        Z = (vectors.T @ ((X[rows] - mx).T @ (Y - my))) / root[:, None]
        model = MultiTaskLasso(alpha=alpha * len(rows) / 28, fit_intercept=False, max_iter=5000).fit(R, Z)
        return lambda at: np.einsum("ij,ij->i", X[at] - mx, model.coef_[task[at]]) + my[task[at]]

    alphas = np.geomspace(1e-3, 1e-1, 5)
    losses = [sum(np.sum((y[train[b]] - fit(a, train[f])(train[b])) ** 2) for f, b in fold) for a in alphas]
    return fit(alphas[int(np.argmin(losses))], train)


def robust() -> list[tuple[str, float, float]]:
    """Songs: test error in years, clean and with a tenth of the training years set to gross errors."""
    songs = load_year_sample()
    X, y = songs.X[:5000], songs.y[:5000]
    spoiled = y.copy()
    rng = np.random.default_rng(0)
    rows = rng.choice(5000, size=500, replace=False)
    spoiled[rows] = rng.uniform(0, 1000, size=500)
    table = []
    for loss in ("squared", "huber", "biweight"):
        errors = []
        for target in (y, spoiled):
            model = ConstrainedRegressor(loss, p=2, radius=10.0, tol=1e-6).fit(X, target)
            errors.append(float(np.mean(np.abs(model.predict(songs.X[5000:]) - songs.y[5000:]))))
        table.append((loss, *errors))
        print(f"{loss:10} mean absolute error {errors[0]:6.2f} years clean, {errors[1]:6.2f} with a tenth of outliers")
    return table


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    parts = {"speed": speed, "search": search, "school": school, "robust": robust}
    options.add_argument("part", nargs="?", default="speed", choices=parts)
    parts[options.parse_args().part]()
