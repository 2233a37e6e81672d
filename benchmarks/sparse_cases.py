"""The problems of the benchmark of sparse and wide data: loss, ball, multiplier, and the optimum of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sparse_problems import CLASSES, table

from projfree import GroupBall, Logistic, LpBall, Objective, Softmax, Squared, as_data, minimize
from projfree import path as minimize_path

LOSSES = {"squared": Squared(), "logistic": Logistic(), "softmax": Softmax()}
GROUP = 10
#: Reference optima are proved to this relative gap, where rounding allows it, within so many seconds.
ACCURATE, PATIENCE = 1e-10, 120.0
#: Ratios to the best peer at the two levels that are aimed at, by family.
TARGETS = {
    "lasso, few": (2.0, 2.0),
    "lasso": (1.5, 1.5),
    "logistic": (1.5, 1.5),
    "group": (1.5, 1.5),
    "path": (2.0, 2.0),
    "softmax": (3.0, 3.0),
}
#: And to liblinear at the tolerances 1e-3 and 1e-6, whatever gap it has there.
LIBLINEAR = (5.0, 2.5)


@dataclass(frozen=True)
class Case:
    """A problem by name, before anything is made.

    Attributes
    ----------
    family : str
        The key of its target.
    table, loss, norm : str
        Where the rows come from, a key of `LOSSES`, and "l_1", "groups" or "rows".
    size : int
        About how many coefficients, groups or rows are not zero at the optimum.
    chosen : bool
        Whether constants of the solvers may be tuned on it; the others judge them.
    intercept : bool
        Whether there is one.
    radii : int
        How many; the last of a path has the size.
    """

    family: str
    table: str
    loss: str
    norm: str
    size: int
    chosen: bool = False
    intercept: bool = False
    radii: int = 1

    @property
    def name(self) -> str:
        kind = {
            ("squared", "l_1"): "lasso",
            ("squared", "groups"): "group lasso",
            ("squared", "rows"): "multitask lasso",
        }
        size = {"l_1": "nonzeros", "groups": "groups", "rows": "rows"}[self.norm]
        kind |= {("softmax", "l_1"): f"softmax of {CLASSES} l_1"}
        parts = [kind.get((self.loss, self.norm), f"{self.loss} {self.norm}"), self.table, f"{self.size:,} {size}"]
        parts += ["intercept"] * self.intercept + [f"path of {self.radii}"] * (self.radii > 1)
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Goal:
    """One radius, its multiplier, and the optimum over the ball."""

    radius: float
    multiplier: float
    w: np.ndarray
    value: float
    #: An upper bound on the relative error of the value.
    gap: float


@dataclass(eq=False)
class Problem:
    """A case with its data by rows (``csr``) and by columns (``csc``), in C and Fortran order where they are dense."""

    case: Case
    scale: float
    cache: Path
    goals: list[Goal] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loss, self.norm, self.intercept = self.case.loss, self.case.norm, self.case.intercept
        made, self.width = table(self.case.table, self.scale), GROUP
        self.sparse = sparse.issparse(made.X)
        self.csr = made.X if self.sparse else np.ascontiguousarray(made.X)
        self.csc = made.X.tocsc() if self.sparse else np.asfortranarray(made.X)
        self.y = {"squared": made.real, "logistic": made.sign, "softmax": made.topic}[self.loss]
        self.f = self.objective(self.data())
        self.goals = [self.judged(w) for w in self._found()]

    def data(self) -> Any:
        """The data of ours, made anew."""
        return as_data(self.csr, self.y, threads=1)

    def objective(self, data: Any) -> Objective:
        """The objective on data."""
        return Objective(LOSSES[self.loss], data, fit_intercept=self.intercept)

    def ball(self, radius: float) -> Any:
        """The ball of the problem's norm."""
        if self.norm == "groups":
            return GroupBall(2, 1, radius, groups=tuple(np.arange(self.csr.shape[1]) // GROUP))
        return GroupBall(2, 1, radius) if self.norm == "rows" else LpBall(1, radius)

    def error(self, answers: list[np.ndarray]) -> float:
        """The largest relative suboptimality of the answers of a peer, each by the measure that favours it.

        Either the answer is scaled into the ball where it is outside, and its value compared with the minimum there;
        or its penalised value is compared with that of the optimum, which a peer minimises.
        """
        return max(self._error(goal, w) for goal, w in zip(self.goals, answers, strict=True))

    def proved(self, w: np.ndarray) -> float:
        """The relative gap that the tangent at an answer proves, scaled onto the ball."""
        norm = self._unit.norm(w)
        return self.judged(w * (self.goals[0].radius / norm)).gap if norm > 0.0 else np.inf

    def _error(self, goal: Goal, w: np.ndarray) -> float:
        if w.shape != self.f.shape or not np.isfinite(w).all():
            return np.inf
        norm, value = self._unit.norm(w), self.f(self.f.point(w))
        best = goal.value + goal.multiplier * goal.radius
        penalised = (value + goal.multiplier * norm - best) / best
        if norm > goal.radius:
            value = self.f(self.f.point(w * (goal.radius / norm)))
        return max(0.0, min(penalised, (value - goal.value) / goal.value))

    @cached_property
    def _unit(self) -> Any:
        return self.ball(1.0)

    def judged(self, w: np.ndarray) -> Goal:
        """The ball on whose boundary ``w`` lies, with the value and the Frank-Wolfe gap there."""
        found, radius = self.f.evaluate(self.f.point(w)), self._unit.norm(w)
        multiplier = self._unit.dual_norm(found.slope.gradient)
        gap = float(np.sum(found.slope.gradient * w)) + radius * multiplier
        return Goal(radius, multiplier, w, found.value, gap / abs(found.value))

    def _found(self) -> np.ndarray:
        """The optima, from the cache on disk where they were found before for the same table."""
        mark = hashlib.sha256(self.case.name.encode() + np.ascontiguousarray(self.y).tobytes())
        mark.update((self.csr.data if self.sparse else np.ascontiguousarray(self.csr)).tobytes())
        path = self.cache / f"{mark.hexdigest()[:16]}.npz"
        if not path.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, w=np.stack(self._solved()))
        return np.load(path)["w"]

    def _solved(self) -> list[np.ndarray]:
        """By a solver of ours: what it finds is proved by `judged`, and a peer that is better would refute it."""
        radius, settings = self._radius(), {"tol": ACCURATE, "record": 0, "max_iter": 10**5}
        if self.case.radii == 1:
            return [minimize(self.f, self.ball(radius), time_limit=PATIENCE, **settings).w]
        radii = np.geomspace(radius / 50.0, radius, self.case.radii)
        found = minimize_path(self.f, self._unit, radii, time_limit=PATIENCE / 5.0, **settings)
        return [result.w for result in found.results]

    def _radius(self) -> float:
        """At which about so many parts are not zero, by bisection of its logarithm."""
        zero = self.f.evaluate(self.f.point(np.zeros(self.f.shape)))
        wanted = min(self.case.size, len(self.y) // 3)  # of a table that was scaled down
        low = high = 1e-2 * zero.value / self._unit.dual_norm(zero.slope.gradient)
        w, settings = np.zeros(self.f.shape), {"tol": 1e-4, "record": 0, "time_limit": PATIENCE}
        for _ in range(40):
            radius = 2.0 * high if low == high else np.sqrt(low * high)
            w = minimize(
                self.f, self.ball(radius), start=w * min(1.0, radius / max(self._unit.norm(w), 1e-300)), **settings
            ).w
            size = self._parts(w)
            if abs(size - wanted) <= 0.05 * wanted:
                break
            if size > wanted:
                high = radius
            else:
                low, high = radius, radius if low == high else high
        return float(radius)

    def _parts(self, w: np.ndarray) -> int:
        """Coefficients, groups or rows that are not zero."""
        if self.norm == "groups":
            return len(np.unique(np.flatnonzero(w) // GROUP))
        return int(np.count_nonzero(w.any(axis=1) if self.norm == "rows" else w))


def cases() -> Iterator[Case]:
    """All problems, in the order of the table: those on which constants may be tuned, then those that judge."""
    tables = {True: ("text A", "counts B"), False: ("text B", "counts A")}
    for chosen, (first, second) in tables.items():
        for name, sizes in ((first, (20, 200, 1_000)), (second, (50, 500, 2_000))):
            for size in sizes:
                yield Case("lasso, few" if size < 100 else "lasso", name, "squared", "l_1", size, chosen)
        yield Case("lasso", first, "squared", "l_1", 200, chosen, intercept=True)
        for name, sizes in ((first, (100, 1_300)), (second, (500, 2_000)), (f"separable {second}", (300, 900))):
            for size in sizes:
                yield Case("logistic", name, "logistic", "l_1", size, chosen)
        yield Case("logistic", f"separable {first}", "logistic", "l_1", 2_500 if first == "text A" else 900, chosen)
        yield Case("group", "groups", "squared", "groups", 10 if chosen else 40, chosen)
        yield Case("group", "tasks", "squared", "rows", 10 if chosen else 20, chosen)
        yield Case("path", first, "squared", "l_1", 500, chosen, radii=50)
        yield Case("path", first, "logistic", "l_1", 270, chosen, radii=50)
    yield Case("lasso, few", "wide", "squared", "l_1", 50)
    yield Case("softmax", "text A", "softmax", "l_1", 2_000)
