"""The problems on which the plan is judged, fixed here: every kind of loss, ball and shape, and two radii each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from projfree import (
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    Objective,
    SchattenBall,
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
#: For logistic regression alone, with 100 entries a row.
LARGE = {
    "sparse 8,000 x 5,000, 100 a row": (8_000, 5_000, 0.02, 3.0),
    "large 500,000 x 20,000": (500_000, 20_000, 0.005, 3.0),
}
LOSSES = {"squared": Squared(), "logistic": Logistic(), "huber": Huber(1.0), "softmax": Softmax()}
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
        f = Objective(LOSSES[self.loss], as_data(X, y), fit_intercept=True)
        return f, vector_ball(self.ball, w, self.radius)


@lru_cache(maxsize=1)
def table(shape: str) -> tuple[Any, np.ndarray]:
    from scipy import sparse

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


def vector_ball(name: str, w: np.ndarray, part: float) -> Any:
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
