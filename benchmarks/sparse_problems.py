"""The tables of the benchmark of sparse and wide problems, made by a script: text-like, click-like, groups and tasks.

    python benchmarks/sparse_problems.py [--scale 0.1] [--out FOLDER]

prints what the tables look like and, with a folder, writes them there as .npz files. Seeds are fixed, so that a table
of one scale is the same everywhere. A scale multiplies the numbers of rows and of columns.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

CLASSES = 20
#: The share of the words of a text that come from the vocabulary of its topic, and the size of such a vocabulary.
TOPICAL, VOCABULARY = 0.3, 2_000
#: Every word is in at least so many texts.
FEWEST = 2


@dataclass(frozen=True, eq=False)
class Table:
    """Features and the targets that the problems on them have."""

    X: Any
    #: Real numbers, one or several a row.
    real: np.ndarray
    #: -1 and +1.
    sign: np.ndarray | None = None
    #: Classes 0, 1, ...
    topic: np.ndarray | None = None


def text_like(rows: int, columns: int, entries: int, seed: int, counts: bool = False, noise: float = 1.0) -> Table:
    """Texts as TF-IDF with rows of length one: words by Zipf's law, a third of a topic's own, lengths that vary.

    Parameters
    ----------
    rows, columns : int
        Texts and words.
    entries : int
        Stored entries a row, about.
    seed : int
        Of all that is drawn.
    counts : bool
        Whether the entries are the counts themselves.
    noise : float
        In the linear targets, over the signal; without any the signs are separable.
    """
    rng = np.random.default_rng(seed)
    topic = rng.integers(CLASSES, size=rows)
    # Words repeat within a text, the more the longer it is: so that the mean of the draws exceeds that of the entries.
    lengths = np.maximum(5, rng.lognormal(np.log(0.93 * entries), 0.6, size=rows)).astype(int)
    text = np.repeat(np.arange(rows), lengths)
    word = rng.permutation(columns)[zipf(rng, columns, len(text))]
    own = min(VOCABULARY, columns)
    vocabulary = np.stack([rng.choice(columns, own, replace=False) for _ in range(CLASSES)])
    topical = rng.random(len(text)) < TOPICAL
    word[topical] = vocabulary[topic[text[topical]], zipf(rng, own, int(topical.sum()))]
    text = np.append(text, rng.integers(rows, size=FEWEST * columns))
    word = np.append(word, np.tile(np.arange(columns), FEWEST))
    X = sparse.coo_matrix((np.ones(len(text)), (text, word)), shape=(rows, columns)).tocsr()
    X = X if counts else tf_idf(X)
    return Table(X, *linear_targets(X, rng, 600, noise), mislabelled(topic, rng))


def zipf(rng: np.random.Generator, most: int, size: int) -> np.ndarray:
    """Ranks from 0 by the law of Zipf and Mandelbrot."""
    weight = np.cumsum(1.0 / (np.arange(most) + 10.0))
    return np.minimum(np.searchsorted(weight, rng.random(size) * weight[-1]), most - 1)


def tf_idf(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Sublinear frequencies times smoothed inverse document frequencies, rows scaled to Euclidean length one."""
    n, d = counts.shape
    frequency = np.bincount(counts.indices, minlength=d)
    values = (1.0 + np.log(counts.data)) * (1.0 + np.log((1.0 + n) / (1.0 + frequency)))[counts.indices]
    X = sparse.csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape)
    X.sort_indices()
    X.data /= np.repeat(np.sqrt(np.maximum(X.multiply(X).sum(axis=1).A1, 1e-300)), np.diff(X.indptr))
    return X


def linear_targets(X: Any, rng: np.random.Generator, most: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Targets of a sparse linear model whose coefficients decay, with noise, and their signs."""
    often = np.bincount(X.indices, minlength=X.shape[1]).astype(float)
    chosen = rng.choice(X.shape[1], min(most, X.shape[1] // 2), replace=False, p=often / often.sum())
    w = np.zeros(X.shape[1])
    w[chosen] = rng.standard_normal(len(chosen)) * np.geomspace(1.0, 0.1, len(chosen))
    u = X @ w
    u = u / u.std()
    y = u + noise * rng.standard_normal(len(u))
    return y, np.where(y > 0.0, 1.0, -1.0)


def mislabelled(topic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Classes of which a tenth is drawn at random."""
    return np.where(rng.random(len(topic)) < 0.1, rng.integers(CLASSES, size=len(topic)), topic)


def click_like(rows: int, columns: int, entries: int, seed: int) -> Table:
    """Zeros and ones: rare and frequent flags, and a rare event whose odds a few of them decide."""
    rng = np.random.default_rng(seed)
    share = 1.0 / (np.arange(columns) + 5.0)
    share = np.minimum(0.5, share * entries / share.sum())
    lines = [np.flatnonzero(rng.random(rows) < p) for p in rng.permutation(share)]
    pointers = np.append(0, np.cumsum([len(line) for line in lines]))
    stored = np.concatenate(lines)
    X = sparse.csc_matrix((np.ones(len(stored)), stored, pointers), shape=(rows, columns)).tocsr()
    w = rng.standard_normal(columns) * (rng.random(columns) < 0.3)
    u = X @ w
    odds = 2.0 * (u - np.quantile(u, 0.85)) / u.std()
    sign = np.where(odds + rng.logistic(size=rows) > 0.0, 1.0, -1.0)
    return Table(X, u + rng.standard_normal(rows) * u.std(), sign)


def dense_table(rows: int, columns: int, entries: int, seed: int) -> Table:
    """Dense columns, neighbours correlated; ``entries`` of them have a coefficient, in groups of ten."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    X[:, 1:] += 0.5 * X[:, :-1]
    w = np.zeros(columns)
    for begin in 10 * rng.choice(columns // 10, max(1, entries // 10), replace=False):
        w[begin : begin + 10] = rng.standard_normal(10)
    u = X @ w
    y = u + u.std() * rng.standard_normal(rows)
    return Table(np.asfortranarray(X), y, np.where(y > 0.0, 1.0, -1.0))


def task_table(rows: int, columns: int, entries: int, seed: int) -> Table:
    """Dense columns and ``entries`` targets a row that depend on the same third of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    X[:, 1:] += 0.5 * X[:, :-1]
    W = rng.standard_normal((columns, entries)) * (rng.random((columns, 1)) < 0.3)
    U = X @ W
    return Table(np.asfortranarray(X), U + U.std() * rng.standard_normal(U.shape))


def neighbours(rows: int, columns: int, entries: int, seed: int) -> Table:
    """An autoregressive table of correlation 0.95, of whose ``entries`` columns the targets are made without noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    for j in range(1, columns):
        X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1.0 - 0.95**2) * X[:, j]
    y = X[:, rng.choice(columns, entries, replace=False)] @ rng.standard_normal(entries)
    return Table(np.asfortranarray(X), y, np.where(y > 0.0, 1.0, -1.0))


SIZE_A, SIZE_B = (18_221, 36_568, 100), (7_094, 41_681, 250)
#: name: maker, rows, columns, entries a row or what the maker says, seed, and whether there are counts and noise
TABLES: dict[str, tuple[Any, ...]] = {
    "text A": (text_like, *SIZE_A, 1),
    "text B": (text_like, *SIZE_B, 2),
    "counts A": (text_like, *SIZE_A, 11, True),
    "counts B": (text_like, *SIZE_B, 12, True),
    "separable text A": (text_like, *SIZE_A, 13, False, 0.0),
    "separable text B": (text_like, *SIZE_B, 14, False, 0.0),
    "separable counts A": (text_like, *SIZE_A, 15, True, 0.0),
    "separable counts B": (text_like, *SIZE_B, 16, True, 0.0),
    "click": (click_like, 49_749, 300, 12, 3),
    "groups": (dense_table, 5_000, 2_000, 100, 4),
    "wide": (dense_table, 500, 20_000, 50, 5),
    "tasks": (task_table, 9_005, 64, 8, 6),
    "neighbours": (neighbours, 500, 3_000, 100, 7),
}


@lru_cache(maxsize=2)
def table(name: str, scale: float = 1.0) -> Table:
    """One of the tables by its name, at the scale asked for."""
    make, rows, columns, *rest = TABLES[name]
    return make(max(20, round(scale * rows)), max(20, round(scale * columns)), *rest)


def describe(name: str, made: Table) -> str:
    """The table in one line."""
    n, d = made.X.shape
    stored = made.X.nnz / n if sparse.issparse(made.X) else d
    return f"{name}: {n:,} x {d:,}, {stored:.1f} stored entries a row"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    for name in TABLES:
        made = table(name, chosen.scale)
        print(describe(name, made), flush=True)
        if chosen.out is not None:
            write(chosen.out, name, made)


def write(folder: Path, name: str, made: Table) -> None:
    """Write a table as ``name.npz`` and its targets as ``name targets.npz``."""
    folder.mkdir(parents=True, exist_ok=True)
    targets = {key: value for key, value in vars(made).items() if key != "X" and value is not None}
    np.savez(folder / f"{name} targets.npz", **targets)
    if sparse.issparse(made.X):
        sparse.save_npz(folder / f"{name}.npz", made.X)
    else:
        np.savez(folder / f"{name}.npz", X=made.X)


if __name__ == "__main__":
    main()
