"""The default models beside the models of scikit-learn that minimise the same function.

    python benchmarks/defaults.py [--only NAME ...] [--repeat 5] [--commit]

Peers are `Ridge`, `Lasso`, and `LogisticRegression` with a tolerance at which its predictions agree with ours. Times
are the smallest of interleaved fits, in wall-clock seconds on one thread. The difference is the largest one of the
linear predictions on the rows of the fit, over the largest of them. Scores are R2 or accuracy on rows that were held
out. The texts are generated: words have Zipf's frequencies, which depend on the class.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import console
from record import commit, machine
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from projfree import ConstrainedClassifier, ConstrainedRegressor

#: The share of rows that are held out for the scores.
HELD = 0.3


@dataclass(frozen=True, eq=False)
class Case:
    """A data set."""

    name: str
    X: Any
    y: np.ndarray

    @property
    def classes(self) -> int:
        return len(np.unique(self.y)) if self.y.dtype.kind in "iub" else 0


def gaussian(n: int, d: int, *, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Features without correlation, and a target of which they explain half."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    u = X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)
    return X, (u > 0).astype(int) if classes else u


def words(n: int = 7_000, d: int = 40_000, length: int = 100, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Counts of words of Zipf's frequencies; those of one class are moved by a factor each."""
    rng = np.random.default_rng(seed)
    common = 1.0 / np.arange(1, d + 1)
    shares = [np.cumsum(q / q.sum()) for q in (common, common * np.exp(0.5 * rng.standard_normal(d)))]
    y = rng.integers(0, 2, n)
    drawn = [np.searchsorted(shares[one], rng.random(1 + rng.poisson(length))) for one in y]
    rows = np.repeat(np.arange(n, dtype=np.int32), [len(each) for each in drawn])
    columns = np.minimum(np.concatenate(drawn), d - 1).astype(np.int32)
    X = sp.csr_array(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, d)))
    return X, y


def cases() -> Iterator[Case]:
    diabetes, cancer, wine, digits = load_diabetes(), load_breast_cancer(), load_wine(), load_digits()
    yield Case("diabetes", scale(diabetes.data), diabetes.target)
    yield Case("breast cancer", scale(cancer.data), cancer.target)
    yield Case("wine", scale(wine.data), wine.target)
    yield Case("digits", digits.data / 16.0, digits.target)
    for n, d in ((1_000, 20), (20_000, 50), (20_000, 300), (200_000, 10)):
        yield Case("numbers", *gaussian(n, d, classes=False))
        yield Case("two classes", *gaussian(n, d, classes=True))
    X, y = words()
    yield Case("text, counts", X, y)
    yield Case("text, tf-idf", sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(X)), y)


def peer(case: Case, p: float, n: int) -> tuple[str, Any]:
    """The model of scikit-learn for ``n`` rows, with its name."""
    if not case.classes:
        return ("Ridge", Ridge()) if p == 2 else ("Lasso", Lasso(alpha=1.0 / n, tol=1e-8, max_iter=100_000))
    if p == 2:
        solver = "newton-cholesky" if case.X.shape[1] < 1_000 else "lbfgs"
        return solver, LogisticRegression(solver=solver, tol=1e-10 if solver != "lbfgs" else 1e-6, max_iter=10_000)
    if case.classes == 2:  # which has no intercept here, since it would penalise it
        given = {"solver": "liblinear", "fit_intercept": False, "tol": 1e-6, "max_iter": 10_000}
        return "liblinear", LogisticRegression(penalty="l1", **given)
    return "saga", LogisticRegression(penalty="l1", solver="saga", tol=1e-6, max_iter=10_000)


def linear(model: Any, X: Any) -> np.ndarray:
    """Linear predictions; softmax does not see their mean."""
    u = np.asarray(X @ model.coef_.T + model.intercept_)
    return u - u.mean(axis=1, keepdims=True) if u.ndim == 2 and u.shape[1] > 1 else u.ravel()


def measured(case: Case, p: float, repeat: int) -> dict[str, Any]:
    order = np.random.default_rng(1).permutation(len(case.y))
    held, rows = np.split(order, [int(HELD * len(order))])
    X, y, Xt, yt = case.X[rows], case.y[rows], case.X[held], case.y[held]
    name, theirs = peer(case, p, len(y))
    kind = ConstrainedClassifier if case.classes else ConstrainedRegressor
    ours = kind(p=p, fit_intercept=name != "liblinear")
    seconds = []
    for _ in range(repeat):
        pair = []
        for model in (ours, theirs):
            begun = time.perf_counter()
            model.fit(X, y)
            pair.append(time.perf_counter() - begun)
        seconds.append(pair)
    best, expected = np.min(seconds, axis=0), linear(theirs, X)
    return {
        "data": case.name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "p": p,
        "peer": name,
        "seconds": float(best[0]),
        "peer seconds": float(best[1]),
        "ratio": float(best[0] / best[1]),
        "difference": float(np.abs(linear(ours, X) - expected).max() / np.abs(expected).max()),
        "score": float(ours.score(Xt, yt)),
        "peer score": float(theirs.score(Xt, yt)),
        "radius": float(ours.radius_),
        "relative gap": float(ours.result_.relative_gap),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--commit", action="store_true")
    given = parser.parse_args()
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases():
            for p in (2.0, 1.0):
                if not given.only or case.name in given.only:
                    rows.append(measured(case, p, given.repeat))
                    print(rows[-1], flush=True)
    table = Table("data", "rows", "features", "p", "peer", "ms", "peer's", "ratio", "difference", "score", "peer's")
    for row in rows:
        times = [f"{1e3 * row[k]:.1f}" for k in ("seconds", "peer seconds")]
        scores = [f"{row[k]:.3f}" for k in ("score", "peer score")]
        sizes = [f"{row[k]:,}" for k in ("rows", "features")]
        ratio, difference = f"{row['ratio']:.2f}", f"{row['difference']:.0e}"
        table.add_row(row["data"], *sizes, f"{row['p']:g}", row["peer"], *times, ratio, difference, *scores)
    console().print(table)
    if given.commit:
        commit("defaults", {"machine": machine(), "settings": vars(given), "models": rows})


if __name__ == "__main__":
    main()
