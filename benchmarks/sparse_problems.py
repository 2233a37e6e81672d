"""The problems of the benchmark of sparse and wide data: tables made by a script, and the optimum of each problem.

Seeds are fixed, so that a table is the same everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from projfree import GroupBall, Logistic, LpBall, Objective, Softmax, Squared, as_data, minimize

LOSSES = {"lasso": Squared(), "logistic": Logistic(), "softmax": Softmax(), "group": Squared(), "tasks": Squared()}
CLASSES, GROUP = 20, 10
#: The share of the words of a text that come from the vocabulary of its topic, and the size of such a vocabulary.
TOPICAL, VOCABULARY = 0.3, 2_000


@dataclass(frozen=True, eq=False)
class Table:
    """Features, with real targets, signs of them, and classes."""

    X: Any
    real: np.ndarray
    sign: np.ndarray
    topic: np.ndarray | None = None


def text_like(rows: int, columns: int, entries: int, seed: int, counts: bool = False, noise: float = 1.0) -> Table:
    """Texts of about so many words by Zipf's law, as TF-IDF with rows of length one or as ``counts``.

    ``noise`` is that of the linear targets, over the signal; without any the signs are separable.
    """
    rng = np.random.default_rng(seed)
    topic = rng.integers(CLASSES, size=rows)
    lengths = np.maximum(5, rng.lognormal(np.log(0.93 * entries), 0.6, size=rows)).astype(int)
    text = np.repeat(np.arange(rows), lengths)
    word = rng.permutation(columns)[zipf(rng, columns, len(text))]
    vocabulary = np.stack([rng.choice(columns, VOCABULARY, replace=False) for _ in range(CLASSES)])
    topical = rng.random(len(text)) < TOPICAL
    word[topical] = vocabulary[topic[text[topical]], zipf(rng, VOCABULARY, int(topical.sum()))]
    # Every word is in a text or two.
    text, word = np.append(text, rng.integers(rows, size=2 * columns)), np.append(word, np.tile(np.arange(columns), 2))
    X = sparse.coo_matrix((np.ones(len(text)), (text, word)), shape=(rows, columns)).tocsr()
    X = X if counts else TfidfTransformer(sublinear_tf=True).fit_transform(X)
    often = np.bincount(X.indices, minlength=columns).astype(float)
    chosen = rng.choice(columns, 600, replace=False, p=often / often.sum())
    w = np.zeros(columns)
    w[chosen] = rng.standard_normal(len(chosen)) * np.geomspace(1.0, 0.1, len(chosen))
    wrong = rng.random(rows) < 0.1
    return with_noise(X, X @ w, noise, rng, np.where(wrong, rng.integers(CLASSES, size=rows), topic))


def zipf(rng: np.random.Generator, most: int, size: int) -> np.ndarray:
    """Ranks from 0 by the law of Zipf and Mandelbrot."""
    weight = np.cumsum(1.0 / (np.arange(most) + 10.0))
    return np.minimum(np.searchsorted(weight, rng.random(size) * weight[-1]), most - 1)


def dense_table(rows: int, columns: int, outputs: int, seed: int, near: float = 0.5, noise: float = 1.0) -> Table:
    """An autoregressive table, whose targets depend on a tenth of its groups of neighbours."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    for j in range(1, columns):
        X[:, j] = near * X[:, j - 1] + np.sqrt(1.0 - near**2) * X[:, j]
    chosen = np.repeat(rng.random(-(-columns // GROUP)) < 0.1, GROUP)[:columns]
    W = rng.standard_normal((columns, outputs)) * chosen[:, None]
    return with_noise(np.asfortranarray(X), X @ (W if outputs > 1 else W[:, 0]), noise, rng)


def with_noise(X: Any, u: np.ndarray, noise: float, rng: np.random.Generator, topic: Any = None) -> Table:
    """The table of a linear model with noise, the signal of unit variance."""
    y = u / u.std() + noise * rng.standard_normal(u.shape)
    return Table(X, y, np.where(y > 0.0, 1.0, -1.0), topic)


SIZE_A, SIZE_B = (18_221, 36_568, 100), (7_094, 41_681, 250)
#: name: maker, rows, columns, entries a row or outputs, seed, and what the maker takes besides
TABLES: dict[str, tuple[Any, ...]] = {
    "text A": (text_like, *SIZE_A, 1),
    "text B": (text_like, *SIZE_B, 2),
    "counts A": (text_like, *SIZE_A, 11, True),
    "counts B": (text_like, *SIZE_B, 12, True),
    "separable counts A": (text_like, *SIZE_A, 15, True, 0.0),
    "separable counts B": (text_like, *SIZE_B, 16, True, 0.0),
    "groups": (dense_table, 5_000, 2_000, 1, 4),
    "tasks": (dense_table, 9_005, 640, 8, 6),
    "neighbours": (dense_table, 500, 3_000, 1, 7, 0.95, 0.0),
}


@lru_cache(maxsize=2)
def table(name: str) -> Table:
    """One of the tables by its name."""
    make, *settings = TABLES[name]
    return make(*settings)


@dataclass(frozen=True)
class Case:
    """A problem before its table is made: with about ``size`` nonzero parts at the last of so many radii.

    Constants of the solvers may be tuned on those that are ``chosen``; the others judge them.
    """

    kind: str
    table: str
    size: int
    chosen: bool = False
    radii: int = 1

    @property
    def name(self) -> str:
        path = f", path of {self.radii}" if self.radii > 1 else ""
        return f"{self.kind}, {self.table}, {self.size:,}{path}" + " *" * self.chosen


def cases() -> Iterator[Case]:
    """All problems, in the order of the table."""
    for chosen, (first, second), sizes in ((True, ("text A", "counts B"), 0), (False, ("text B", "counts A"), 1)):
        yield Case("lasso", first, (200, 20)[sizes], chosen)
        yield Case("lasso", first, (1_000, 500)[sizes], chosen)
        yield Case("lasso", second, (500, 2_000)[sizes], chosen)
        yield Case("logistic", first, (100, 500)[sizes], chosen)
        yield Case("logistic", second, (1_300, 2_000)[sizes], chosen)
        yield Case("logistic", f"separable {second}", (300, 900)[sizes], chosen)
        yield Case("group", "groups", (10, 40)[sizes], chosen)
        yield Case("tasks", "tasks", (20, 60)[sizes], chosen)
        yield Case("lasso", first, 500, chosen, 50)
        yield Case("logistic", first, 270, chosen, 50)
    yield Case("softmax", "text A", 2_000)


@dataclass(frozen=True, eq=False)
class Goal:
    """A ball by its radius, the multiplier, and the minimum over it with its relative error at most."""

    radius: float
    multiplier: float
    w: np.ndarray
    value: float
    gap: float


class Problem:
    """A case with its data by rows and by columns, and reference optima: found once, then read from ``cache``."""

    def __init__(self, case: Case, cache: Path) -> None:
        made = table(case.table)
        self.case, self.X = case, made.X
        self.csc = made.X.tocsc() if sparse.issparse(made.X) else made.X
        self.y = {"logistic": made.sign, "softmax": made.topic}.get(case.kind, made.real)
        self.f, self.unit = self.objective(), self.ball(1.0)
        mark = hashlib.sha256(repr(case).encode() + np.ascontiguousarray(self.y).tobytes()).hexdigest()[:16]
        path = cache / f"{mark}.npz"
        if not path.exists():
            cache.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, w=np.stack(list(self._optima())))
        self.goals = [self.goal(w) for w in np.load(path)["w"]]

    def objective(self) -> Objective:
        """The objective on data made anew."""
        return Objective(LOSSES[self.case.kind], as_data(self.X, self.y, threads=1))

    def ball(self, radius: float) -> Any:
        """The ball of the problem's norm."""
        if self.case.kind == "group":
            return GroupBall(2, 1, radius, groups=tuple(np.arange(self.X.shape[1]) // GROUP))
        return GroupBall(2, 1, radius) if self.case.kind == "tasks" else LpBall(1, radius)

    def goal(self, w: np.ndarray) -> Goal:
        """The ball on whose boundary ``w`` lies, with the value and the gap there."""
        found, radius = self.f.evaluate(self.f.point(w)), self.unit.norm(w)
        multiplier = self.unit.dual_norm(found.slope.gradient)
        gap = float(np.sum(found.slope.gradient * w)) + radius * multiplier
        return Goal(radius, multiplier, w, found.value, gap / abs(found.value))

    def error(self, answers: list[np.ndarray]) -> float:
        """The largest relative suboptimality of answers, one for each goal, each by the measure that favours it.

        Either an answer outside is scaled into the ball, or penalised values are compared, which peers minimise.
        """
        errors = [0.0]
        for goal, w in zip(self.goals, answers, strict=True):
            if not np.isfinite(w).all():
                return np.inf
            norm, best = self.unit.norm(w), goal.value + goal.multiplier * goal.radius
            inside = self.f(self.f.point(w * min(1.0, goal.radius / max(norm, 1e-300))))
            penalised = (self.f(self.f.point(w)) + goal.multiplier * norm) / best - 1.0
            errors.append(min(penalised, inside / goal.value - 1.0))
        return max(errors)

    def parts(self, w: np.ndarray) -> int:
        """Coefficients, groups or rows that are not zero."""
        if self.case.kind == "group":
            return len(np.unique(np.flatnonzero(w) // GROUP))
        return int(np.count_nonzero(w.any(axis=1) if self.case.kind == "tasks" else w))

    def _optima(self) -> Iterator[np.ndarray]:
        """By our own solver; `goal` proves each, and a better peer would refute it."""
        zero = self.f.evaluate(self.f.point(np.zeros(self.f.shape)))
        radius, w = 0.01 * zero.value / self.unit.dual_norm(zero.slope.gradient), np.zeros(self.f.shape)
        while self.parts(w) < self.case.size:
            radius *= 1.2
            w = minimize(self.f, self.ball(radius), start=w, tol=1e-3, time_limit=30.0).w
        for r in np.geomspace(0.02 * radius, radius, self.case.radii) if self.case.radii > 1 else (radius,):
            start = w * min(1.0, r / self.unit.norm(w))
            w = minimize(self.f, self.ball(r), start=start, tol=1e-10, time_limit=60.0).w
            yield w
