"""More than the sweeps prove: the convex solver goes on until the gap is small."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np

from projfree.checks import positive
from projfree.completion.weighted_gradient import WeightedProjectedGradient
from projfree.deadline import LEAST_LEFT, expired, ignore_deadline, remaining
from projfree.estimators.completion.convex_gap import CertifiedModel, certified, relative
from projfree.estimators.completion.convex_problem import ConvexProblem
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.predictions import Predictor
from projfree.estimators.completion.prepared import PreparedRatings
from projfree.estimators.completion.stopping import products, watched
from projfree.estimators.solving import warn_of_gap
from projfree.estimators.watching import given_callbacks
from projfree.run import Result, Status, minimize
from projfree.run.callbacks import announce
from projfree.run.certificate import refuse_contradiction
from projfree.run.result import raise_if_interrupted

#: What a value may err by, relative to that without a model: a bound above it by more belongs to another problem.
ROUNDING = 1e-12


class Certifying(Predictor, PreparedRatings):
    """The part of `MatrixCompletion` that closes the gap."""

    solver: Any
    max_iter: int
    callbacks: Any
    radius_: float
    norm_: float
    strength_: float
    value_: float
    bound_: float
    relative_gap_: float
    coarse_: bool
    n_sweeps_: int
    result_: Result | None

    def certify_to(self, tol: float, *, time_limit: float | None = None) -> Self:
        """Go on until the relative gap is at most ``tol``, or a limit is reached.

        The convex solver goes on from the model. However it ends, the value is no larger than before, and the bound no
        smaller.
        """
        self._need_ratings("certify_to", "save it with `ratings=True`")
        check_limit(time_limit)
        with watched(self.callbacks, time_limit):
            self._go_on_to(self._problem(self._training()), tol)
        return self

    def _go_on_to(self, problem: ConvexProblem, tol: float) -> None:
        """Go on with the convex solver; the value never rises and the bound never falls."""
        if not math.isfinite(self.value_):
            self._prove(problem, self._soon_certified(problem, self.factors_))
        if self.relative_gap_ <= tol:
            return
        if expired():
            warn_of_gap(self, Status.TIME_LIMIT, 0, self.relative_gap_, tol)
            return
        announce(given_callbacks(self.callbacks), "convex solver")
        self._solve(problem, tol)

    def _solve(self, problem: ConvexProblem, tol: float) -> None:
        """Run the convex solver from the model, and take over what it has found and proved."""
        ball, left = problem.ball(self.radius_), remaining()
        with ignore_deadline():  # the check at exit is outside of the limit, as that of every run
            result = minimize(
                problem.f,
                ball,
                WeightedProjectedGradient() if self.solver is None else self.solver,
                tol=tol,
                max_iter=self.max_iter,
                time_limit=None if left == math.inf else max(left, LEAST_LEFT),
                start=self.factors_.inside(problem.p, self.radius_ * (1.0 - 1e-12)).point(problem.f).w,
                callbacks=given_callbacks(self.callbacks),
            )
        assert result.bound is not None
        found = self.factors_
        if result.value <= self.value_:  # else its factors are of no use
            found = Factors.of_point(problem.f, ball, result.w, np.asarray(result.intercept))
        known = CertifiedModel(found, result.value, result.bound, result.relative_gap, coarse=False)
        self._improve(problem, known, result)
        raise_if_interrupted(result)
        if not (result.status.converged or result.status is Status.CALLBACK or self.relative_gap_ <= tol):
            warn_of_gap(self, result.status, result.n_iter, self.relative_gap_, tol)

    def _improve(self, problem: ConvexProblem, found: CertifiedModel, result: Result | None) -> None:
        """Take over a model whose value is no larger, and a bound that is larger; both are of the same ball."""
        more: dict[str, Any] = {"result_": result}
        if found.value <= self.value_:
            more["strength_"] = problem.strength_of(found.factors)  # which new users and further ratings get
        else:
            found = replace(found, factors=self.factors_, value=self.value_)
        if found.bound < self.bound_:
            found = replace(found, bound=self.bound_, coarse=self.coarse_)
        rounding = ROUNDING * (problem.f.entries.value_without_offsets + problem.f.known)
        refuse_contradiction(problem.f, problem.ball(self.radius_), found.value, found.bound, rounding)
        gap = relative(problem.f, found.value, found.bound)
        self._prove(problem, replace(found, relative_gap=gap), **more)

    def _prove(self, problem: ConvexProblem, found: CertifiedModel, **more: Any) -> None:
        """The attributes of a model and its certificate, and more, all at once: Ctrl-C must not come between them."""
        proved = {f"{field.name}_": getattr(found, field.name) for field in fields(found)}
        vars(self).update(proved | {"norm_": found.factors.norm(problem.p)} | more)

    def _soon_certified(self, problem: ConvexProblem, model: Factors) -> CertifiedModel:
        """The certificate of a model for what can be had when time is up: the products of the sweeps so far."""
        with ignore_deadline():
            most = products(self.n_sweeps_, problem, len(model.sigma))
            return certified(problem, model.inside(problem.p, self.radius_), self.radius_, most)


def check_limit(time_limit: float | None) -> None:
    """Raise where a limit of `certify_to` is none."""
    if time_limit is not None:
        positive("certify_to(time_limit=...)", time_limit)
