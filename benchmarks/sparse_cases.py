"""The problems of the benchmark of sparse and wide data: loss, ball, multiplier, and the optimum of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sparse_peers
from scipy import sparse
from sparse_problems import CLASSES, table
from sparse_reference import polished, smooth, with_nonzeros

from projfree import GroupBall, Logistic, LpBall, Objective, SchattenBall, Softmax, Squared, as_data

LOSSES = {"squared": Squared(), "logistic": Logistic(), "softmax": Softmax()}
GROUP = 10
#: Reference optima have at most this relative gap, where a peer can be brought to it.
ACCURATE = 1e-11
#: Ratios to the best peer at the two levels that are aimed at, by family.
TARGETS = {
    "lasso": (1.5, 1.0),
    "lasso 2,000": (2.5, 2.5),
    "logistic l_1": (2.5, 2.0),
    "l_2": (1.5, 1.5),
    "softmax": (1.0, 1.0),
    "group": (2.0, 1.5),
    "path": (2.0, 2.5),
}


@dataclass(frozen=True)
class Case:
    """A problem by name, before anything is made.

    Attributes
    ----------
    family : str
        The key of its target, or "" where it has none.
    table, loss, norm : str
        Where the rows come from, a key of `LOSSES`, and "l_1", "l_2", "l_1.5", "groups" or "rows".
    size : float
        How many coefficients or groups are not zero at the optimum (norms that make zeros), the strength s of the
        penalty s ||w||^2 / 2 that the radius amounts to (l_2), or the radius (l_1.5).
    intercept : bool
        Whether there is one.
    radii : int
        How many; the last of a path has the size.
    """

    family: str
    table: str
    loss: str
    norm: str
    size: float
    intercept: bool = False
    radii: int = 1

    @property
    def name(self) -> str:
        kind = {("squared", "l_1"): "lasso", ("squared", "l_2"): "ridge", ("squared", "groups"): "group lasso"}
        kind |= {("squared", "rows"): "multitask lasso", ("softmax", "l_2"): f"softmax of {CLASSES} l_2"}
        size = {"l_1": "nonzeros", "groups": "groups", "rows": "rows", "l_2": "strength", "l_1.5": "radius"}[self.norm]
        number = f"{self.size:g} {size}" if size in ("nonzeros", "groups", "rows") else f"{size} {self.size:g}"
        parts = [kind.get((self.loss, self.norm), f"{self.loss} {self.norm}"), self.table, number]
        parts += ["intercept"] * self.intercept + [f"path of {self.radii}"] * (self.radii > 1)
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Goal:
    """One radius, its multiplier, and the optimum over the ball."""

    radius: float
    multiplier: float
    w: np.ndarray | None
    value: float = np.nan
    #: An upper bound on the relative error of the value.
    gap: float = np.nan


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
        self.goals = [self._judged(goal) for goal in self._found()]

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
        if self.norm == "rows":
            return GroupBall(2, 1, radius)
        return SchattenBall(2, radius) if self.loss == "softmax" else LpBall(float(self.norm[2:]), radius)

    def error(self, answers: list[np.ndarray]) -> float:
        """The largest relative suboptimality of the answers of a peer, each by the measure that favours it.

        Either the answer is scaled into the ball where it is outside, and its value compared with the minimum there;
        or its penalised value is compared with that of the optimum, which a peer minimises.
        """
        return max(self._error(goal, w) for goal, w in zip(self.goals, answers, strict=True))

    def _error(self, goal: Goal, w: np.ndarray) -> float:
        if w.shape != self.f.shape or not np.isfinite(w).all():
            return np.inf
        norm, value = self._unit.norm(w), self.f.value(self.f.point(w))
        best = goal.value + self._penalty(goal, goal.radius)
        penalised = (value + self._penalty(goal, norm) - best) / best
        if norm > goal.radius:
            value = self.f.value(self.f.point(w * (goal.radius / norm)))
        return max(0.0, min(penalised, (value - goal.value) / goal.value))

    def _penalty(self, goal: Goal, norm: float) -> float:
        """What a peer adds to the loss: mu ||w||, or its square with the same slope at the radius."""
        return goal.multiplier * norm if self.norm != "l_2" else goal.multiplier * norm**2 / (2.0 * goal.radius)

    @cached_property
    def _unit(self) -> Any:
        return self.ball(1.0)

    def _judged(self, goal: Goal) -> Goal:
        """The goal with its value and Frank-Wolfe gap, at the penalised minimiser."""
        if goal.w is None:
            return goal
        found = self.f.evaluate(self.f.point(goal.w))
        g, ball = found.slope.gradient, self.ball(goal.radius)
        gap = float(np.sum(g * goal.w)) + ball.support(-g)
        return Goal(goal.radius, goal.multiplier, goal.w, found.value, gap / abs(found.value))

    def _found(self) -> list[Goal]:
        """The goals, from the cache on disk where they were found before for the same table."""
        if self.norm == "l_1.5":
            return [Goal(self.case.size, np.nan, None)]
        mark = hashlib.sha256(self.case.name.encode() + np.ascontiguousarray(self.y).tobytes())
        mark.update((self.csr.data if self.sparse else np.ascontiguousarray(self.csr)).tobytes())
        path = self.cache / f"{mark.hexdigest()[:16]}.npz"
        if not path.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            goals = self._solved()
            parts = {"w": np.stack([goal.w for goal in goals])}
            np.savez_compressed(path, mu=[goal.multiplier for goal in goals], **parts)
        stored = np.load(path)
        radii = [self._unit.norm(w) for w in stored["w"]]
        return [Goal(r, mu, w) for r, mu, w in zip(radii, stored["mu"].tolist(), stored["w"], strict=True)]

    def _solved(self) -> list[Goal]:
        if self.norm == "l_2":
            return [self._smooth(self.case.size)]
        largest = self._unit.dual_norm(self.f.minorant(self.f.point(np.zeros(self.f.shape))).gradient)
        each = {"l_1": 1, "groups": GROUP, "rows": self.f.shape[-1]}[self.norm]
        most = len(self.y) // 5  # of a table that was scaled down
        mu = with_nonzeros(lambda mu: self._peer(mu, 1e-5), largest, min(round(self.case.size) * each, most))
        return [self._sparse(m) for m in np.geomspace(largest, mu, self.case.radii + 1)[1:]]

    def _peer(self, mu: float, tol: float) -> np.ndarray:
        """The penalised minimiser by a peer."""
        solve = {"groups": sparse_peers.adelie("gaussian", GROUP), "rows": sparse_peers.tasks("sklearn.linear_model")}
        solve["l_1"] = sparse_peers.celer_logistic(10)
        if self.loss == "squared":
            solve["l_1"] = sparse_peers.sklearn_lasso("cyclic")
        kept, self.goals = self.goals, [Goal(1.0, mu, None)]
        try:
            return solve[self.norm](self, tol)[0]
        finally:
            self.goals = kept

    def _sparse(self, mu: float) -> Goal:
        """The goal at a multiplier, by a peer at tighter and tighter tolerances until the gap says that it is found."""
        for tol in (1e-6, 1e-8, 1e-11, 1e-15):
            w = self._peer(mu, tol)
            if self.norm == "l_1":
                w = polished(self.loss, self.csr, self.y, w, mu, self.intercept)
            goal = self._judged(Goal(self._unit.norm(w), mu, w))
            if goal.gap <= ACCURATE:
                break
        return goal

    def _smooth(self, strength: float) -> Goal:
        w = smooth(self.loss, self.csr, self.y, strength, np.zeros(self.f.shape))
        return Goal(self._unit.norm(w), strength * self._unit.norm(w), w)


def cases() -> Iterator[Case]:
    """All problems, in the order of the table."""
    for nonzeros in (20, 200, 500):
        yield Case("lasso", "text A", "squared", "l_1", nonzeros)
    yield Case("lasso 2,000", "text A", "squared", "l_1", 2_000)
    yield Case("lasso", "text A", "squared", "l_1", 200, intercept=True)
    for nonzeros in (20, 200):
        yield Case("lasso", "text B", "squared", "l_1", nonzeros)
    yield Case("lasso", "wide", "squared", "l_1", 50)
    for nonzeros in (20, 270):
        yield Case("logistic l_1", "text A", "logistic", "l_1", nonzeros)
    yield Case("logistic l_1", "click", "logistic", "l_1", 30)
    yield Case("l_2", "click", "logistic", "l_2", 2e-5)
    yield Case("l_2", "text A", "logistic", "l_2", 5e-5)
    for strength in (1e-4, 2e-6):
        yield Case("l_2", "text A", "squared", "l_2", strength)
    yield Case("softmax", "text A", "softmax", "l_2", 5e-5)
    yield Case("group", "groups", "squared", "groups", 10)
    yield Case("group", "tasks", "squared", "rows", 20)
    yield Case("path", "text A", "squared", "l_1", 500, radii=50)
    yield Case("path", "text A", "logistic", "l_1", 270, radii=50)
    yield Case("", "text A", "logistic", "l_1.5", 30.0)
