"""Data of different kinds for `defaults.py`: the packaged samples, and scikit-learn's loaders and generators."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets

from projfree.datasets import load_adult, load_school, load_year_sample

#: Rows of the packaged samples that a run uses, every so manieth.
MOST_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class Case:
    """One data set: its kind, rows and targets, and the norms to try."""

    name: str
    kind: str
    X: Any
    y: np.ndarray
    norms: tuple[dict[str, Any], ...] = ({"p": 1.0}, {"p": 1.5}, {"p": 2.0})

    @property
    def classifies(self) -> bool:
        return self.y.dtype.kind in "iub"


#: For several outputs also rows and singular values.
MATRIX = ({"p": 1.0}, {"p": 1.5}, {"p": 2.0}, {"norm": "group"}, {"norm": "schatten", "p": 1.0})


def text(n: int = 600, d: int = 3_000, classes: int = 3, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Counts of words from a few topics, damped and divided by their norm."""
    rng = np.random.default_rng(seed)
    topics, base = rng.dirichlet(np.full(d, 0.03), size=classes), rng.dirichlet(np.full(d, 0.1))
    y = rng.integers(classes, size=n)
    counts = np.stack([rng.multinomial(60, 0.95 * base + 0.05 * topics[c]) for c in y])
    X = np.log1p(counts.astype(np.float64))
    return sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True)), y


def badly_scaled(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns whose deviations differ a millionfold."""
    X, y = datasets.make_regression(300, 15, n_informative=10, noise=40.0, random_state=seed)
    return X * 10.0 ** np.linspace(-3, 3, 15), y


def cases() -> Iterator[Case]:
    """The data that is always at hand, then what PROJFREE_DATA adds."""
    make, classify = datasets.make_regression, datasets.make_classification
    year, adult = load_year_sample(standardize=False), load_adult()
    step = len(adult.y) // MOST_ROWS
    yield Case("year sample", "dense", year.X[:MOST_ROWS], year.y[:MOST_ROWS])
    yield Case("adult", "one-hot, classes", adult.X[::step], (adult.y[::step] > 0).astype(int))
    yield Case("diabetes", "dense", *datasets.load_diabetes(return_X_y=True))
    yield Case("breast cancer", "badly scaled, classes", *datasets.load_breast_cancer(return_X_y=True))
    yield Case("wine", "badly scaled, three classes", *datasets.load_wine(return_X_y=True))
    yield Case("iris", "three classes", *datasets.load_iris(return_X_y=True))
    # Fits with p = 1 take seconds there.
    yield Case("digits", "ten classes", *(a[::3] for a in datasets.load_digits(return_X_y=True)), norms=({"p": 2.0},))
    yield Case("linnerud", "20 rows, three outputs", *datasets.load_linnerud(return_X_y=True), norms=MATRIX)
    yield Case("friedman", "not linear", *datasets.make_friedman1(300, 20, noise=1.0, random_state=0))
    yield Case("scales", "badly scaled", *badly_scaled())
    yield Case("no noise", "noise-free", *make(200, 30, n_informative=10, random_state=1))
    yield Case("much noise", "noise-heavy", *make(200, 30, n_informative=10, noise=300.0, random_state=1))
    yield Case("wide, few", "wide, sparse truth", *make(100, 500, n_informative=8, noise=5.0, random_state=2))
    low = make(100, 400, n_informative=200, effective_rank=10, noise=1.0, random_state=3)
    yield Case("wide, low rank", "wide, correlated", *low)
    yield Case("outputs", "five outputs", *make(300, 20, n_targets=5, noise=60.0, random_state=4), norms=MATRIX)
    yield Case("imbalanced", "7 % positives", *classify(1_000, 20, weights=[0.93], flip_y=0.02, random_state=5))
    yield Case("classes", "five classes", *classify(800, 25, n_informative=8, n_classes=5, random_state=6))
    yield Case("wide classes", "wide, classes", *classify(120, 600, n_informative=10, random_state=7))
    yield Case("noisy classes", "noise-heavy, classes", *classify(300, 40, n_informative=4, flip_y=0.4, random_state=8))
    if os.environ.get("PROJFREE_DATA"):
        school = load_school()
        yield Case("school", "dense, correlated", school.X[:MOST_ROWS], school.y[:MOST_ROWS])
    # Fits with p = 1 take up to a minute at the largest radii of the grid, where all rows are told apart: left out.
    yield Case("text", "sparse text, three classes", *text(), norms=({"p": 2.0},))
