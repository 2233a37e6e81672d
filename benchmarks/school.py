"""Multitask learning on School: 139 schools, test explained variance over random splits of each school.

    PROJFREE_DATA=... python benchmarks/school.py [--splits 10] [--commit]

Three quarters of each school are for training. Every method has features standardised by its training rows, and chooses
one parameter out of nine by the same three folds of them; a choice at the end of a grid is shown, since a better one
may lie beyond it.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from common import console
from record import destinations, keep, machine
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso, Ridge
from sklearn.preprocessing import StandardScaler

from projfree import ConstrainedRegressorCV
from projfree.datasets import load_school

TASKS = 139
RADII = np.geomspace(3, 300, 9)
#: Penalties of the ridge for all schools, of one ridge a school, and of MultiTaskLasso, for which the smallest is none.
POOLED, ALONE, SHARED = np.geomspace(1e-2, 1e4, 9), np.geomspace(1, 1e4, 9), np.geomspace(1e-5, 1e-1, 9)
BALLS: dict[str, dict[str, Any]] = {
    "Schatten p=1 ball": {"norm": "schatten", "p": 1.0},
    "Schatten p=1.5 ball": {"norm": "schatten", "p": 1.5},
    "Schatten p=2 ball": {"norm": "schatten", "p": 2.0},
    "group l_{2,1} ball": {"norm": "group", "p": 2.0, "q": 1.0},
    "group l_{2,1.5} ball": {"norm": "group", "p": 2.0, "q": 1.5},
}


class Split:
    """Training rows, test rows, and three folds of the training rows, as positions in them."""

    def __init__(self, seed: int):
        data = load_school()
        order = np.random.default_rng(seed).permutation(len(data.y))
        rank = np.empty(len(data.y))
        for t in range(TASKS):
            rows = order[data.task[order] == t]
            rank[rows] = np.arange(len(rows)) / len(rows)
        self.train, self.test = np.flatnonzero(rank < 0.75), np.flatnonzero(rank >= 0.75)
        turn = np.arange(len(self.train)) % 3
        self.folds = [(np.flatnonzero(turn != k), np.flatnonzero(turn == k)) for k in range(3)]
        self.X = StandardScaler().fit(data.X[self.train]).transform(data.X)
        self.y, self.task = data.y, data.task

    def score(self, guess: np.ndarray) -> float:
        y = self.y[self.test]
        return 1.0 - float(np.sum((y - guess) ** 2) / np.sum((y - y.mean()) ** 2))

    def chosen(self, fit: Any, grid: np.ndarray) -> tuple[Any, float]:
        """``fit(parameter, rows)`` with the parameter that predicts the folds best, on all training rows."""
        losses = []
        for parameter in grid:
            parts = [(self.train[rows], self.train[held]) for rows, held in self.folds]
            losses.append(sum(np.sum((self.y[b] - fit(parameter, a)(b)) ** 2) for a, b in parts))
        best = float(grid[int(np.argmin(losses))])
        return fit(best, self.train), best


def pooled(split: Split, alpha: float, rows: np.ndarray) -> Any:
    """One ridge for all schools."""
    model = Ridge(alpha=alpha).fit(split.X[rows], split.y[rows])
    return lambda at: model.predict(split.X[at])


def alone(split: Split, alpha: float, rows: np.ndarray) -> Any:
    """One ridge a school."""

    def predict(at: np.ndarray) -> np.ndarray:
        guess = np.empty(len(at))
        for t in range(TASKS):
            own, asked = rows[split.task[rows] == t], split.task[at] == t
            if asked.any():
                guess[asked] = Ridge(alpha=alpha).fit(split.X[own], split.y[own]).predict(split.X[at[asked]])
        return guess

    return predict


def filled(split: Split, alpha: float, rows: np.ndarray, fill: Any) -> Any:
    """MultiTaskLasso needs every target of every row: those of other schools are filled in by another model."""
    X, y, task = split.X, split.y, split.task
    Y = np.tile(fill(rows)[:, None], (1, TASKS))
    Y[np.arange(len(rows)), task[rows]] = y[rows]
    # The same problem with as many rows as features: only X^T X and X^T Y enter.
    mx, my = X[rows].mean(axis=0), Y.mean(axis=0)
    values, vectors = np.linalg.eigh((X[rows] - mx).T @ (X[rows] - mx))
    root = np.sqrt(np.maximum(values, 1e-9 * values.max()))
    R, Z = root[:, None] * vectors.T, (vectors.T @ ((X[rows] - mx).T @ (Y - my))) / root[:, None]
    model = MultiTaskLasso(alpha=alpha * len(rows) / R.shape[1], fit_intercept=False, max_iter=5000).fit(R, Z)
    return lambda at: np.einsum("ij,ij->i", X[at] - mx, model.coef_[task[at]]) + my[task[at]]


def methods(split: Split) -> dict[str, tuple[Any, float, np.ndarray]]:
    """Prediction, chosen parameter and grid of each method."""
    one, alpha = split.chosen(lambda a, rows: pooled(split, a, rows), POOLED)
    out = {"one ridge for all schools": (one, alpha, POOLED)}
    out["one ridge a school"] = (*split.chosen(lambda a, rows: alone(split, a, rows), ALONE), ALONE)
    # The fill knows the rows of a fit alone; from all training rows it would tell of those held out.
    lasso = split.chosen(lambda a, rows: filled(split, a, rows, pooled(split, alpha, rows)), SHARED)
    out["MultiTaskLasso, other targets filled in"] = (*lasso, SHARED)
    table = np.column_stack([split.X, split.task])
    for name, norm in BALLS.items():
        settings = {"radii": RADII, "cv": split.folds, "task": split.X.shape[1], "tol": 1e-3, "max_iter": 300}
        search = ConstrainedRegressorCV(**norm, **settings, standardize=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            search.fit(table[split.train], split.y[split.train])
        out[name] = (lambda rows, m=search: m.predict(table[rows]), search.radius_, RADII)
    return out


def measured(splits: int) -> list[dict[str, Any]]:
    scores: dict[str, list[float]] = {}
    edges: dict[str, int] = {}
    for seed in range(splits):
        split = Split(seed)
        for name, (predict, parameter, grid) in methods(split).items():
            scores.setdefault(name, []).append(split.score(predict(split.test)))
            edges[name] = edges.get(name, 0) + any(np.isclose(parameter, end) for end in (grid[0], grid[-1]))
        print(f"split {seed}: " + ", ".join(f"{name} {s[-1]:.3f}" for name, s in scores.items()), flush=True)
    return [
        {
            "method": name,
            "explained variance, %": 100 * float(np.mean(s)),
            "standard deviation": 100 * float(np.std(s, ddof=len(s) > 1)),
            "splits": len(s),
            "choices at the end of the grid": edges[name],
        }
        for name, s in sorted(scores.items(), key=lambda item: -float(np.mean(item[1])))
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--splits", type=int, default=10)
    destinations(options)
    chosen, info = options.parse_args(), machine()
    rows = measured(chosen.splits)
    table = Table(*rows[0], title="School")
    for row in rows:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    console().print(table)
    keep("school", {"machine": info, "methods": rows}, chosen)


if __name__ == "__main__":
    main()
