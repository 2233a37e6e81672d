"""Random small problems, each determined by one whole number.

The number fixes the cell (loss and kind of set), so that all pairs come up equally often; everything else is drawn:
shape, conditioning, weights, intercept, the form of the objective, and a radius smaller than, equal to or larger
than that of an unconstrained minimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from agreement.data import Table, draw_table
from agreement.exact import Array, Mean, MeanOfEntries, Quadratic
from agreement.radius import draw_set
from scipy.special import expit

from projfree import (
    BiWeight,
    BlackBox,
    ConstraintSet,
    Entries,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Objective,
    Poisson,
    QuadraticForm,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
    as_data,
    perturb,
)
from projfree.objectives import SmoothFunction

CONVEX = (Squared(), Logistic(), Huber(0.7), Softmax())
MORE = (SquaredHinge(), Quantile(0.3, 0.05), Poisson(), Gamma())
OTHERS = (SquaredSigmoid(), BiWeight(0.8))
SETS = ("lp", "group", "schatten", "simplex", "box", "weighted")
MORE_FORMS = ("mean", "mean", "mean", "perturbed", "entries")
FORMS = ("mean", "mean", "mean", "mean", "perturbed", "black box", "quadratic", "entries")


@dataclass(frozen=True, eq=False)
class Problem:
    """An objective and a set; ``exact`` is the same objective in exact arithmetic, None where f is not convex."""

    seed: int
    form: str
    f: SmoothFunction
    ball: ConstraintSet
    table: Table
    exact: Callable[..., Any] | None
    loss: Loss
    intercept: bool

    def __str__(self) -> str:
        what = "+b" if self.intercept else ""
        return f"{self.seed}: {self.form} {self.loss!r}{what} on {self.table} over {self.ball!r}"


def convex_problem(seed: int) -> Problem:
    """A convex problem; every 24 numbers all losses meet all kinds of sets."""
    loss, kind = list(product(CONVEX, SETS))[seed % 24]
    return _draw(seed, loss, kind, np.random.default_rng((1, seed)))


def more_problem(seed: int) -> Problem:
    """The same for losses whose derivative has a corner, that are smoothed, or that have no largest curvature."""
    loss, kind = list(product(MORE, SETS))[seed % 24]
    return _draw(seed, loss, kind, np.random.default_rng((4, seed)), MORE_FORMS)


def other_problem(seed: int) -> Problem:
    """A problem that is not convex; every 12 numbers both losses meet all kinds of sets."""
    loss, kind = list(product(OTHERS, SETS))[seed % 12]
    return _draw(seed, loss, kind, np.random.default_rng((2, seed)))


def _draw(seed: int, loss: Loss, kind: str, rng: np.random.Generator, forms: tuple[str, ...] = FORMS) -> Problem:
    form = str(rng.choice(forms))
    if form == "entries" and (isinstance(loss, Softmax) or kind in ("simplex", "box")):
        form = "mean"
    if not loss.convex and form in ("black box", "quadratic"):
        form = "perturbed"
    matrix = kind in ("group", "schatten") or form == "entries"
    table = draw_table(loss, matrix, rng, entries=form == "entries")
    intercept = form in ("mean", "perturbed") and bool(rng.integers(2)) and table.mixed(loss)
    plain = _objective(loss, table, intercept)
    f, exact = plain, _exact(loss, table, intercept)
    if form == "quadratic":
        f, exact = _quadratic(table)
    elif form == "black box":
        f = _black_box(loss, table, plain)
    ball = draw_set(kind, plain if form != "quadratic" else f, rng)
    if form == "perturbed" and not ball.diameter(plain.shape) > 0.0:  # a simplex in one dimension is a point
        form = "mean"
    if form == "perturbed":
        centre = plain(plain.point(ball.centre(plain.shape)))
        f = perturb(plain, ball, max(centre, 1e-3) * 10.0 ** rng.uniform(-8, 1), rng)
    return Problem(seed, form, f, ball, table, exact if loss.convex else None, loss, intercept)


def _objective(loss: Loss, t: Table, intercept: bool) -> Objective:
    X = t.X if t.places is None else Entries(*t.places, shape=t.shape)
    return Objective(loss, as_data(X, t.y, t.weight), fit_intercept=intercept)


def _exact(loss: Loss, t: Table, intercept: bool) -> Mean:
    if t.places is not None:
        return MeanOfEntries(loss, *t.places, t.y, t.weight)
    return Mean(loss, t.X, t.y, t.weight, intercept)


def _quadratic(t: Table) -> tuple[QuadraticForm, Quadratic]:
    X, y = t.X.astype(np.float64), np.asarray(t.y, dtype=np.float64)
    if not np.issubdtype(np.asarray(t.y).dtype, np.floating):  # classes: one column each
        y = np.eye(int(t.y.max()) + 1)[t.y]
    H, b, c = X.T @ X / len(X), X.T @ y / len(X), float(np.sum(y**2) / (2 * len(X)))
    H = (H + H.T) / 2
    return QuadraticForm(H, b, c), Quadratic(H, b, c)


def _black_box(loss: Loss, t: Table, f: Objective) -> BlackBox:
    """The mean of a loss in extended precision, rounded once: what a careful user would hand in."""
    X, y = t.X.astype(np.longdouble), t.y
    s = np.ones(len(X), dtype=np.longdouble) if t.weight is None else t.weight.astype(np.longdouble)
    s = s / s.sum()

    def fun(w: Array) -> tuple[float, Array]:
        value, slope = _long(loss, X @ w.astype(np.longdouble), y)
        return float(np.sum(s * value)), np.asarray(X.T @ (slope.T * s).T, dtype=np.float64)

    return BlackBox(fun, f.shape, smoothness=f.smoothness(), convex=True)


def _long(loss: Loss, u: Array, y: Array) -> tuple[Array, Array]:
    if isinstance(loss, Softmax):
        e = np.exp(u - u.max(axis=1, keepdims=True))
        p, hot = e / e.sum(axis=1, keepdims=True), np.eye(u.shape[1])[y]
        return -np.log((p * hot).sum(axis=1)), p - hot
    if isinstance(loss, Logistic):
        value, slope = np.logaddexp(np.longdouble(0), -y * u), -y * expit(-y * u)
    else:
        r = u - y
        delta = np.longdouble(loss.delta) if isinstance(loss, Huber) else np.longdouble(np.inf)
        c = np.minimum(np.abs(r), delta)
        value, slope = c * (2 * np.abs(r) - c), 2 * np.sign(r) * c
    return (value.sum(axis=1) if value.ndim == 2 else value), slope
