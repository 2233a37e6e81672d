"""Random fits of estimators: offsets in targets and columns, free columns, parts, scaling, weights; exact values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from agreement.exact import DIGITS, Array, Mean, decimals
from agreement.inside import pulled
from sklearn.base import clone

from projfree import ConstrainedClassifier, ConstrainedRegressor, LpBall

LOSSES = ("squared", "squared", "squared", "huber", "quantile", "logistic", "poisson", "gamma")
#: The losses of a residual, whose targets may have any offset.
OF_RESIDUALS = ("squared", "huber", "quantile")


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimator, its rows, and how it is fitted."""

    model: Any
    X: Array
    y: Array
    weight: Array | None
    parts: bool
    y_offset: float
    x_offset: float

    def __str__(self) -> str:
        way = "parts" if self.parts else "fit"
        weighted = "" if self.weight is None else " weighted"
        return f"{self.model!r} {way}{weighted} y + {self.y_offset:.1e} X + {self.x_offset:.1e}"

    @property
    def free(self) -> list[int]:
        return list(self.model.free or ())

    def fitted(self, **changed: Any) -> Any:
        model = clone(self.model).set_params(**changed)
        if not self.parts:
            return model.fit(self.X, self.y, sample_weight=self.weight)
        for rows in np.array_split(np.arange(len(self.y)), 3):
            model.partial_fit(self.X[rows], self.y[rows], None if self.weight is None else self.weight[rows])
        return model

    def exact_value(self, model: Any, radius: float) -> Decimal:
        """The exact value of a model near this one that lies in the ball: no bound may exceed it.

        The penalised coefficients are pulled into the ball of the scaled columns. For squares, the unpenalised ones
        are those that are best for them; for other losses any will do.
        """
        with localcontext(DIGITS):
            coef, b = decimals(np.ravel(model.coef_)), decimals(np.ravel(model.intercept_))[0]
            kept = np.setdiff1d(np.arange(self.X.shape[1]), self.free)
            ball, scaling = LpBall(self.model.p, radius or 1e-300), model.fit_params_["standardize"]
            scale = np.ones(self.X.shape[1]) if scaling is False else scaling[1]
            scale = decimals(scale if len(scale) == len(kept) else scale[kept])
            coef[kept] = pulled(ball, coef[kept] * scale) / scale
            mean = Mean(model.loss_, self.X, self._targets(model), self.weight, intercept=self.model.fit_intercept)
            if self.free and self.squares:
                columns = [self.X[:, self.free], np.ones((len(self.y), int(self.model.fit_intercept)))]
                coef[self.free] = 0
                best = _least_squares(decimals(np.column_stack(columns)), mean.y - mean.images(coef), mean.s)
                coef[self.free], b = best[: len(self.free)], b
            return mean(coef, b)

    @property
    def squares(self) -> bool:
        return getattr(self.model, "loss", None) == "squared"

    def _targets(self, model: Any) -> Array:
        return np.where(self.y == model.classes_[1], 1.0, -1.0) if hasattr(model, "classes_") else self.y


def _least_squares(F: Array, r: Array, s: Array) -> Array:
    """The best coefficients of the columns of F for r, with weights s; columns without a pivot get zero."""
    k = F.shape[1]
    M = np.column_stack([(F * s[:, None]).T.dot(F), (F * s[:, None]).T.dot(r)])
    sizes = [M[i, i] for i in range(k)]
    pivots = []
    for i in range(k):
        if M[i, i] <= Decimal("1e-60") * sizes[i]:
            continue
        pivots.append(i)
        for j in range(k):
            if j != i:
                M[j] = M[j] - M[i] * (M[j, i] / M[i, i])
    out = decimals(np.zeros(k))
    for i in pivots:
        out[i] = M[i, -1] / M[i, i]
    return out


def draw_fit(seed: int) -> Fit:
    """The fit of a number."""
    rng = np.random.default_rng([seed, 31])
    loss = str(rng.choice(LOSSES))
    n, d = int(rng.integers(12, 50)), int(rng.integers(2, 6))
    x_offset = float(rng.choice([0.0, 10.0 ** rng.uniform(3, 12)]))
    y_offset = float(rng.choice([0.0, 10.0 ** rng.uniform(3, 12)])) if loss in OF_RESIDUALS else 0.0
    base = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, size=d)
    X = base + x_offset * (rng.uniform(size=d) < 0.5)
    u = base @ rng.standard_normal(d) / np.linalg.norm(base, axis=1).mean() + 0.3 * rng.standard_normal(n)
    free = np.sort(rng.choice(d, int(rng.integers(1, d)), replace=False)).tolist() if rng.uniform() < 0.4 else None
    radius = None if rng.uniform() < 0.3 else float(10.0 ** rng.uniform(-2, 1))  # None: the default penalty
    free = None if radius is None and loss == "quantile" else free  # which takes seconds
    settings = {"p": float(rng.choice([1.0, 1.5, 2.0, 3.0])), "radius": radius}
    settings |= {"standardize": bool(rng.integers(2)), "free": free, "fit_intercept": rng.uniform() < 0.7}
    weight = None if rng.integers(2) else rng.uniform(0.1, 3.0, size=n)
    if loss == "logistic":
        y = np.where(u > np.median(u), 5, 3)
        y[:4] = [5, 3, 5, 3]
        return Fit(ConstrainedClassifier(**settings), X, y, weight, False, y_offset, x_offset)
    y = np.asarray(rng.poisson(np.exp(np.clip(u, -3, 3))), dtype=np.float64) if loss == "poisson" else u
    y = np.exp(u) if loss == "gamma" else y
    y = y + y_offset if loss in OF_RESIDUALS else y + (np.arange(n) == 0)
    parts = loss == "squared" and not free and bool(rng.integers(2))
    return Fit(ConstrainedRegressor(loss=loss, **settings), X, y, weight, parts, y_offset, x_offset)


def better(certificate: Any, part: float = 1e-3) -> list[Any]:
    """Claims that are better than a certificate by a thousandth of its value."""
    off = part * abs(certificate.value)
    raised, narrowed = {"bound": certificate.bound + off}, {"gap": certificate.gap - off}
    return [replace(certificate, **claim) for claim in (raised, narrowed, {"value": certificate.value - off})]
