"""The problems on which the plan is judged, fixed here: every kind of loss, ball and shape, and two radii each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from projfree import (
    BlackBox,
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    Objective,
    OwlBall,
    SchattenBall,
    Simplex,
    Softmax,
    Squared,
    as_data,
)

#: name: rows, columns, share of entries that are not zero, condition of the features' spread
SHAPES = {
    "tall 200,000 x 20": (200_000, 20, 1.0, 30.0),
    "tall 50,000 x 100": (50_000, 100, 1.0, 30.0),
    "steep 20,000 x 100": (20_000, 100, 1.0, 3_000.0),
    "square 4,000 x 600": (4_000, 600, 1.0, 30.0),
    "wide 1,000 x 3,000": (1_000, 3_000, 1.0, 30.0),
    "sparse 8,000 x 5,000": (8_000, 5_000, 0.01, 3.0),
    "sparse 100,000 x 400": (100_000, 400, 0.02, 3.0),
}
#: Where the plan meets text, clicks and genomes: name, and the table that `sparse_problems` makes at a scale.
WIDE = {
    "text 4,600 x 9,100": ("text A", 0.25),
    "text 1,800 x 10,400": ("text B", 0.25),
    "click 24,900 x 150": ("click", 0.5),
    "wide 200 x 8,000": ("wide", 0.4),
}
#: Columns with a coefficient there, out of the most frequent ones.
FEW = 60
#: For logistic regression alone, with 100 entries a row.
LARGE = {
    "sparse 8,000 x 5,000, 100 a row": (8_000, 5_000, 0.02, 3.0),
    "large 500,000 x 20,000": (500_000, 20_000, 0.005, 3.0),
}
LOSSES = {"squared": Squared(), "logistic": Logistic(), "huber": Huber(1.0), "softmax": Softmax()}
#: Squares as a function of which nothing is known but values and gradients.
CALLS = "calls"
VECTOR_BALLS = {f"l_{p:g}": p for p in (1.0, 1.1, 1.5, 2.0, np.inf)}
CLASSES = 4
#: Radii relative to the norm of the coefficients that made the targets: on the boundary, and inside or nearly so.
RADII = (0.3, 2.0)


@dataclass(frozen=True)
class Case:
    loss: str
    ball: str
    shape: str
    radius: float

    @property
    def name(self) -> str:
        return f"{self.loss}, {self.ball}, {self.shape}, r = {self.radius:g}"

    def build(self) -> tuple[Objective, Any]:
        X, W = table(self.shape)
        rng = np.random.default_rng(1)
        w = W[:, 0]
        if self.loss == "softmax":
            y = np.argmax(X @ W + rng.gumbel(size=(X.shape[0], CLASSES)), axis=1)
            return Objective(Softmax(), as_data(X, y), fit_intercept=True), matrix_ball(self.ball, W, self.radius)
        u = X @ w
        if self.loss == "logistic":
            y = np.where(u + rng.logistic(size=len(u)) > 0, 1.0, -1.0)
        else:
            y = u + np.std(u) * rng.standard_t(3, size=len(u))
        if self.loss == CALLS:
            return calls(X, y), vector_ball(self.ball, w, self.radius)
        f = Objective(LOSSES[self.loss], as_data(X, y), fit_intercept=True)
        return f, vector_ball(self.ball, w, self.radius)


@lru_cache(maxsize=1)
def table(shape: str) -> tuple[Any, np.ndarray]:
    from scipy import sparse

    if shape in WIDE:
        return made(*WIDE[shape])
    n, d, share, condition = (SHAPES | LARGE)[shape]
    rng = np.random.default_rng(0)
    spread = np.geomspace(1.0, 1.0 / condition, d)
    W = rng.standard_normal((d, CLASSES)) * (rng.random((d, 1)) < 0.3) / np.sqrt(d * share)
    if share < 1.0:
        return sparse.random_array(
            (n, d), density=share, format="csr", rng=rng, data_sampler=rng.standard_normal
        ), W * 5
    mixed = rng.standard_normal((n, d)) * spread
    mixed[:, 1:] += 0.5 * mixed[:, :-1]  # neighbours are correlated
    return mixed, W * 5


def made(name: str, scale: float) -> tuple[Any, np.ndarray]:
    """A table of the benchmark of sparse problems, and a few coefficients that give predictions of about one."""
    from sparse_problems import table as sparse_table

    X, rng = sparse_table(name, scale).X, np.random.default_rng(0)
    often = np.asarray((X != 0).sum(axis=0)).ravel()
    W = np.zeros((X.shape[1], CLASSES))
    W[np.argsort(-often, kind="stable")[:FEW]] = rng.standard_normal((min(FEW, X.shape[1]), CLASSES))
    return X, W * (2.0 / np.std(X @ W))


def calls(X: Any, y: np.ndarray) -> BlackBox:
    def fun(w: np.ndarray) -> tuple[float, np.ndarray]:
        rest = X @ w - y
        return float(rest @ rest) / len(y), (2.0 / len(y)) * (X.T @ rest)

    return BlackBox(fun, (X.shape[1],), convex=True)


def vector_ball(name: str, w: np.ndarray, part: float) -> Any:
    if name == "ordered l_1":
        ball = OwlBall(np.linspace(1.5, 0.5, len(w)), 1.0)
        return ball.resized(part * ball.norm(w))
    if name == "simplex":
        return Simplex(part * np.abs(w).sum())
    ball = LpBall(VECTOR_BALLS[name], 1.0)
    return ball.resized(part * ball.norm(w))


def matrix_ball(name: str, W: np.ndarray, part: float) -> Any:
    ball = {"group l_2,1": GroupBall(2, 1, 1.0), "Schatten-1": SchattenBall(1, 1.0), "Frobenius": SchattenBall(2, 1.0)}[
        name
    ]
    return ball.resized(part * ball.norm(W))


def large() -> list[Case]:
    """What a sparse problem of a user's size asks of the plan."""
    return [Case("logistic", ball, shape, r) for shape in LARGE for ball in ("l_2", "l_1.5", "l_1.1") for r in RADII]


def wide() -> list[Case]:
    """Text, clicks and genomes: few coefficients out of many, for every loss and the balls that are used there."""
    vector = [
        Case(loss, ball, shape, r)
        for shape in WIDE
        for loss in ("squared", "logistic", "huber")
        for ball in VECTOR_BALLS
        for r in RADII
    ]
    matrix = [Case("softmax", ball, shape, r) for shape in WIDE for ball in ("group l_2,1", "Frobenius") for r in RADII]
    return vector + matrix


def polytopes() -> list[Case]:
    """A polytope that has no projection."""
    shapes = ("tall 50,000 x 100", "square 4,000 x 600", "text 1,800 x 10,400", "click 24,900 x 150")
    losses = ("squared", "logistic", "huber", CALLS)
    return [Case(loss, "ordered l_1", shape, r) for shape in shapes for loss in losses for r in RADII]


def cases() -> list[Case]:
    vector = [
        Case(loss, ball, shape, r)
        for shape in SHAPES
        for loss in ("squared", "logistic", "huber")
        for ball in VECTOR_BALLS
        for r in RADII
    ]
    small = [shape for shape in SHAPES if SHAPES[shape][1] <= 100 or shape.startswith("sparse 8")]
    matrix = [
        Case("softmax", ball, shape, r)
        for shape in small
        for ball in ("group l_2,1", "Schatten-1", "Frobenius")
        for r in RADII
    ]
    return sorted(vector + matrix, key=lambda case: list(SHAPES).index(case.shape))
