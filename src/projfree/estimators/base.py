"""What all estimators share: from parameters and rows to a run, and from its result to coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from projfree.checks import Array, flag, positive
from projfree.deadline import countdown
from projfree.estimators.answers import Answers
from projfree.estimators.balls import inside, labels, make_ball, radius_of
from projfree.estimators.columns import free_columns
from projfree.estimators.problem import Problem, Scaling, make_problem
from projfree.estimators.solving import checked_solver, warn_if_short
from projfree.estimators.table import Table
from projfree.estimators.watching import given_callbacks, shown_by
from projfree.losses.base import Loss
from projfree.run import Result, minimize
from projfree.run.result import raise_if_interrupted
from projfree.sets import ConstraintSet, WithFree
from projfree.solvers.choose import Plan, plan

#: Free coefficients of losses other than squares may be this many times as large as the range of the targets.
FREE_FACTOR = 1e4


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """A problem that waits for its solver, and what is left of the time limit.

    ``start_is_solution`` says that the start is only to be certified, and ``unsolved`` why its radius is not that of
    the penalised problem; it is empty where it is.
    """

    problem: Problem
    ball: ConstraintSet
    start: Array | None
    left: Callable[[], float | None] = field(default_factory=lambda: countdown(None))
    start_is_solution: bool = False
    unsolved: str = ""


class ConstrainedModel(Answers):
    """A linear model whose coefficients lie in a ball."""

    def _losses(self, table: Table) -> Loss:
        """The loss, or one to begin with where its scale is still to be found."""
        raise NotImplementedError

    def _last_loss(self, table: Table) -> Loss:
        """The loss that is fitted in the end, of whatever scale."""
        return self._losses(table)

    def _path_loss(self, table: Table) -> Loss:
        """The loss of the paths of a search."""
        return self._losses(table)

    def _own_score(self, loss: Loss, y: Array, u: Array, weight: Array | None) -> float:
        """The default score of linear predictions of targets as the loss takes them."""
        raise NotImplementedError

    def _refined(self, table: Table, prepared: PreparedFit) -> PreparedFit:
        """The problem with the scale of its loss found, where it has one."""
        return prepared

    def _shaped(self, coef: Array, intercept: Array) -> dict[str, Any]:
        """``coef_`` and ``intercept_`` from coefficients of shape (d,) or (d, k)."""
        raise NotImplementedError

    # ------------------------------------------------------------------ rows

    def _table(self, X: Any, y: Any, sample_weight: Any) -> Table:
        """Features and targets of a fit, checked together."""
        raise NotImplementedError

    # ------------------------------------------------------------------ problem

    def _problem(self, table: Table, loss: Loss) -> Problem:
        free = () if self.free is None else free_columns(self.free, table.features, self)
        intercept, scaled = flag("fit_intercept", self.fit_intercept), self._standardizes()
        return make_problem(table, loss, intercept=intercept, standardize=scaled, free=free)

    def _standardizes(self) -> bool | Scaling:
        """Whether columns are scaled; `verify` asks for the scaling of the fit."""
        if isinstance(self.standardize, tuple):
            return self.standardize
        return flag("standardize", self.standardize)

    def _ball(self, table: Table, problem: Problem) -> ConstraintSet:
        """The set, with the radius that was asked for, or 1 where a penalty decides it."""
        f, free = problem.objective, problem.free
        shape = (f.shape[0] - len(free), *f.shape[1:])
        given = self.radius is not None and not isinstance(self.norm, ConstraintSet)
        radius = positive("radius", self.radius) if given else 1.0
        groups = self._kept_groups(table)
        ball = make_ball(
            self.norm, self.p, self.q, radius, positive=flag("positive", self.positive), groups=groups, shape=shape
        )
        if free:
            ball = WithFree(ball, free, self._free_bound(table))
        return ball

    def _penalty_weight(self, data: Any) -> float:
        """The weight of the penalty beside the mean loss of these rows, or of their moments."""
        raise NotImplementedError

    @property
    def _is_penalised(self) -> bool:
        """Whether a penalty decides the radius: none was given, and the set is not given either."""
        return self.radius is None and not isinstance(self.norm, ConstraintSet)

    def _kept_groups(self, table: Table) -> Any:
        """The labels without those of free columns."""
        if self.feature_groups is None or self.free is None or self.norm != "group":
            return self.feature_groups
        return np.delete(labels(self.feature_groups), list(free_columns(self.free, table.features, self)))

    def _free_bound(self, table: Table) -> float:
        if table.y.dtype.kind in "iu":
            return FREE_FACTOR
        # An intercept takes the level of the targets; those of tasks are free coefficients themselves.
        size = np.ptp(table.y) if self.fit_intercept and table.task is None else np.abs(table.y).max(initial=1.0)
        return FREE_FACTOR * max(1.0, float(size))

    def _countdown(self) -> Callable[[], float | None]:
        """What is left of the time limit of a fit, which begins now: the penalised problem takes from it too."""
        return countdown(None if self.time_limit is None else positive("time_limit", self.time_limit))

    def _prepared(self, table: Table, start: Array | None = None) -> PreparedFit:
        left = self._countdown()
        problem = self._problem(table, self._losses(table))
        ball = self._ball(table, problem)
        before = self.result_.w if self.warm_start and hasattr(self, "result_") else start
        if self._is_penalised:
            return self._penalised(table, PreparedFit(problem, ball, before, left))
        start = inside(ball, before, problem.objective.shape)
        return self._refined(table, PreparedFit(problem, ball, start, left))

    def _penalised(self, table: Table, prepared: PreparedFit) -> PreparedFit:
        """The minimiser of the penalised problem, and the ball that it lies on the boundary of."""
        from projfree.estimators.regularization import penalised_fit

        return penalised_fit(prepared, self._penalty_weight(prepared.problem.objective.data))

    def explain(self, X: Any, y: Any = None, sample_weight: Any = None) -> Plan:
        """What `fit` would do with these rows: a `Plan`, from the shape of the problem alone; nothing is run.

        The plan depends on neither the radius nor the scale of a loss, which a fit may have to find first.
        """
        model = self._single() if hasattr(self, "_single") else clone(self)
        table = model._table(X, y, sample_weight)
        problem = model._problem(table, model._last_loss(table))
        return plan(problem.objective, model._ball(table, problem))

    # ------------------------------------------------------------------ run

    def _settings(self, seed: int, prepared: PreparedFit) -> dict[str, Any]:
        return {
            "solver": checked_solver(self.solver),
            "tol": self.tol,
            "max_iter": self.max_iter,
            "time_limit": prepared.left(),
            "seed": seed,
        }

    def _fit_table(self, table: Table, start: Array | None = None) -> Any:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        prepared = self._prepared(table, start)
        callbacks: list[Any] = [*shown_by(self.verbose), *given_callbacks(self.callbacks)]
        f, ball, settings = prepared.problem.objective, prepared.ball, self._settings(seed, prepared)
        settings |= {"start": prepared.start, "callbacks": callbacks, "check_start": prepared.start_is_solution}
        result = minimize(f, ball, **settings)
        self._adopt(prepared, result)
        raise_if_interrupted(result)  # with all that was found kept, Ctrl-C ends whatever has asked for this fit
        asked = result.status.name == "CALLBACK"
        warn_if_short(self, result, self.tol, expected=asked, unsolved=prepared.unsolved)
        return self

    def _data_params(self, scaling: Scaling | None) -> dict[str, Any]:
        """The settings that say how a fit reads its rows, which `verify` uses even if they are changed later."""
        given = {name: getattr(self, name) for name in ("fit_intercept", "free", "task")}
        return {**given, "standardize": scaling or False}

    def _adopt(self, prepared: PreparedFit, result: Result, loss: Loss | None = None) -> None:
        """Take over what a run found; ``loss`` is that of the rows where the objective has only their moments."""
        problem, ball = prepared.problem, prepared.ball
        for name, value in self._shaped(*problem.raw(result.w, result.intercept)).items():
            setattr(self, name, value)
        self.loss_, self.ball_, self.radius_ = loss or problem.objective.loss, ball, radius_of(ball)
        self.standardize_ = problem.scaling is not None
        self.fit_params_ = self._data_params(problem.scaling)
        self.result_, self.n_iter_ = result, max(1, result.n_iter)
        self.multiplier_ = result.multiplier
