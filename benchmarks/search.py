"""Searches of regressors against those of scikit-learn, at equal accuracy: 24 radii x 5 folds of least squares.

    python benchmarks/search.py [--shapes 200x1000 ...] [--repeat 3] [--commit]

The radii are the norms on the path of the peer, which gets the same folds. `RidgeCV` is exact. `LassoCV` is run at its
default tolerance and at the loosest of some tolerances at which no fit of its path, in any fold, is worse than what
ours proves: the relative suboptimality is at most our tolerance, which our gap is at most in every fold. Suboptimality
is measured in the way that favours the peer: of the loss over the ball through its point, or of its own penalised
objective. Minima come from a walk along the exact path, whose gaps are below 1e-8. Where a peer takes so long that it
is given up, its last and coarser tolerance is shown, and the ratio is an upper bound. Times are those of the processor
with one thread, and the quickest of some interleaved repetitions counts (one, of a peer that is far behind). Neither
scales the features.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import console, with_one_thread
from record import destinations, keep, machine, versions
from rich.table import Table
from sklearn.linear_model import Lasso, LassoCV, Ridge, RidgeCV, lasso_path
from sklearn.model_selection import KFold

from projfree import ConstrainedRegressorCV
from projfree.numerics.lp_quadratic import minimise_path

SHAPES = ("2000x50", "8000x276", "200x1000", "600x1000", "3000x1000")
#: Our tolerances, those that `LassoCV` is tried at with the most iterations, and both by default.
LEVELS, TRIED, MOST, DEFAULT = (1e-4, 1e-6), tuple(10.0**-k for k in range(2, 11)), 100_000, (1e-4, 1_000)
#: A peer is given up at a tolerance where a path of its folds takes so many times as long as our search.
FAR = 5.0
#: As in relative gaps: a value counts as at least this part of that at zero.
LEAST_VALUE = 1e-6
#: Walks until the multipliers of the reference are those of the peer.
WALKS = 8

Rows = list[dict[str, Any]]


def problem(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a third of the features in use, and as much noise as signal."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X @ (rng.standard_normal(d) * (np.arange(d) % 3 == 0)) / np.sqrt(d) + rng.standard_normal(n)


def timed(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a peer at a loose tolerance warns
        model.fit(X, y)
    return time.process_time() - begun


class Fold:
    """The centred training rows of a fold, and the minima of their mean squared error."""

    def __init__(self, X: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> None:
        self.X, self.y, self.alphas = X - X.mean(axis=0), y - y.mean(), alphas
        n = len(y)
        self.H, self.b, self.c = 2.0 * self.X.T @ self.X / n, 2.0 * self.X.T @ self.y / n, float(self.y @ self.y) / n
        self.penalised = self._penalised()

    def value(self, w: np.ndarray) -> float:
        return float(np.mean(np.square(self.y - self.X @ w)))

    def minima(self, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The minima over l_1 balls and their multipliers, for increasing radii."""
        found = minimise_path(self.H, self.b, 1.0, radii)
        return np.array([self.value(one.w) for one in found]), np.array([one.multiplier for one in found])

    def _penalised(self) -> np.ndarray:
        """Upper bounds on the minima of the loss plus 2 alpha times the norm; the radius is interpolated in it."""
        order, mu = np.argsort(self.alphas), 2.0 * self.alphas
        best = np.full(len(mu), np.inf)
        w = lasso_path(self.X, self.y, alphas=self.alphas, tol=1e-3)[1]
        radii = np.unique(np.abs(w).sum(axis=0))
        radii = radii[radii > 0.0]
        known: tuple[list[float], list[float]] = ([], [])
        for _ in range(WALKS):
            values, multipliers = self.minima(radii)
            best = np.minimum(best, (values + np.multiply.outer(mu, radii)).min(axis=1))
            known[0].extend(multipliers.tolist())
            known[1].extend(radii.tolist())
            at = np.argsort(known[0])
            radii = np.interp(mu[order], np.array(known[0])[at], np.array(known[1])[at])
            radii = np.unique(radii[radii > 0.0])
        return best

    def error(self, path: np.ndarray) -> float:
        """The largest relative suboptimality of points (d, alphas), each by the measure that favours it."""
        norms = np.abs(path).sum(axis=0)
        inside = np.flatnonzero(norms > 0.0)
        order = inside[np.argsort(norms[inside])]
        through = np.full(len(norms), self.c)
        through[order] = self.minima(norms[order])[0]
        worst = 0.0
        for k, w in enumerate(path.T):
            value, least = self.value(w), LEAST_VALUE * self.c
            own, penalty = max(self.penalised[k], least), 2.0 * self.alphas[k] * norms[k]
            measures = ((value - through[k]) / max(through[k], least), (value + penalty - self.penalised[k]) / own)
            worst = max(worst, min(measures))
        return worst


def errors(folds: list[Fold], tol: float, most: int) -> tuple[float, float]:
    """The largest suboptimality of the peer over path and folds at a tolerance, and the seconds of its paths."""
    worst, spent = 0.0, 0.0
    for fold in folds:
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = lasso_path(fold.X, fold.y, alphas=fold.alphas, tol=tol, max_iter=most)[1]  # from the largest on
        spent += time.process_time() - begun
        worst = max(worst, fold.error(path[:, ::-1]))
    return worst, spent


def lasso(X: np.ndarray, y: np.ndarray, name: str, repeat: int) -> Rows:
    """Ours at two tolerances against `LassoCV` at its default one and at one that is as accurate."""
    rows_of = list(KFold(5).split(X))
    alphas = np.geomspace(1e-3, 0.9, 24) * float(np.abs((X - X.mean(axis=0)).T @ y).max()) / len(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        radii = [float(np.abs(Lasso(alpha=a).fit(X, y).coef_).sum()) for a in alphas]
    folds = [Fold(X[rows], y[rows], alphas) for rows, _ in rows_of]
    found = {DEFAULT: errors(folds, *DEFAULT)}
    table: Rows = []
    for level in LEVELS:
        ours = ConstrainedRegressorCV(p=1, radii=radii, cv=rows_of, standardize=False, tol=level)
        timed(ours, X, y)  # compiles
        about, equal = timed(ours, X, y), DEFAULT
        for equal in ((tol, MOST) for tol in TRIED):
            if equal not in found:
                found[equal] = errors(folds, *equal)
            if found[equal][0] <= level or found[equal][1] > FAR * about:
                break
        for tol, most in (DEFAULT, equal):
            theirs, error = LassoCV(alphas=alphas, cv=rows_of, tol=tol, max_iter=most), found[tol, most][0]
            often = repeat if found[tol, most][1] <= FAR * about else 1
            took = np.min([(timed(theirs, X, y), timed(ours, X, y)) for _ in range(often)], axis=0)
            peer = f"LassoCV(tol={tol:.0e}{', the default' if most != MOST else ''})"
            table.append(_row(name, ours, X, y, level, peer, took, error))
            print(f"{name}: {peer} {took[0]:.3g} s at {error:.1e}, ours {took[1]:.3g} s at {level:.0e}", flush=True)
    return table


def ridge(X: np.ndarray, y: np.ndarray, name: str, repeat: int) -> Rows:
    """Ours at the default tolerance against `RidgeCV`, on the same folds and leaving one row out."""
    rows_of, alphas = list(KFold(5).split(X)), np.geomspace(1e-1, 1e5, 24)
    radii = [float(np.linalg.norm(Ridge(alpha=a).fit(X, y).coef_)) for a in alphas]
    ours, table = ConstrainedRegressorCV(p=2, radii=radii, cv=rows_of, standardize=False), []
    timed(ours, X, y)
    for peer, settings in (("RidgeCV", {"cv": rows_of}), ("RidgeCV, leave-one-out", {})):
        theirs = RidgeCV(alphas=alphas, **settings)
        took = np.min([(timed(theirs, X, y), timed(ours, X, y)) for _ in range(repeat)], axis=0)
        table.append(_row(name, ours, X, y, 1e-6, peer, took, 0.0))
    return table


def _row(name: str, ours: Any, X: Any, y: Any, tol: float, peer: str, took: np.ndarray, error: float) -> dict[str, Any]:
    enough = error <= tol
    return {
        "problem": name,
        "ours, tol": tol,
        "ours, CPU s": float(took[1]),
        "ours, largest gap": float(ours.path_.gaps.max()),
        "verified": bool(ours.verify(X, y).ok),
        "peer": peer,
        "peer, CPU s": float(took[0]),
        "peer, largest error": error,
        "as accurate": enough,
        "ratio": float(took[1] / took[0]),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shapes", nargs="*", default=list(SHAPES), help="rows and columns, as in 200x1000")
    options.add_argument("--repeat", type=int, default=3)
    destinations(options)
    chosen = options.parse_args()
    with_one_thread()
    rows: Rows = []
    for shape in chosen.shapes:
        n, d = map(int, shape.split("x"))
        X, y = problem(n, d)
        rows += ridge(X, y, f"{n:,} x {d:,}, p = 2", chosen.repeat)
        rows += lasso(X, y, f"{n:,} x {d:,}, p = 1", chosen.repeat)
    table = Table(*rows[0], title="search")
    for row in rows:
        table.add_row(*(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()))
    console().print(table)
    keep("search", {"machine": machine(), "versions": versions("scikit-learn"), "search": rows}, chosen)


if __name__ == "__main__":
    main()
