"""More than the sweeps prove: the convex solver goes on until the gap is small."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np

from projfree.estimators.completion.convex_gap import CertifiedModel
from projfree.estimators.completion.convex_problem import ConvexProblem
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.growth import grow, worth_growing
from projfree.estimators.completion.predictions import Predictor
from projfree.estimators.completion.prepared import PreparedRatings
from projfree.estimators.completion.stopping import watched
from projfree.estimators.solving import warn_if_short
from projfree.estimators.watching import given_callbacks
from projfree.numerics.subspace import EVERY_SIDE
from projfree.run import Result, Status, minimize
from projfree.run.callbacks import announce
from projfree.run.result import one_of_many
from projfree.solvers import FrankWolfe
from projfree.solvers.weighted_gradient import WeightedProjectedGradient
from projfree.steps import ShortStep


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
    result_: Result | None

    def certify_to(self, tol: float, *, time_limit: float | None = None) -> Self:
        """Go on until the relative gap is at most ``tol``, or a limit is reached.

        Large matrices get more components first, as many as sweeps can bear; where that is not enough, the convex
        solver goes on.
        """
        self._need_ratings("certify_to", "save it with `ratings=True`")
        problem, factors = self._problem(self._training()), self.factors_
        with watched(self.callbacks, time_limit):
            if worth_growing(problem):
                announce(given_callbacks(self.callbacks), "more components")
                given = (self.strength_, self.radius_, tol, given_callbacks(self.callbacks))
                factors, _, proof = grow(problem, factors, *given)
                if proof is not None and proof.relative_gap <= tol:
                    self._close(problem, proof, None)
                    return self
            announce(given_callbacks(self.callbacks), "convex solver")
            ball = problem.ball(self.radius_)
            result = minimize(
                problem.f,
                ball,
                self._convex_solver(problem),
                tol=tol,
                max_iter=self.max_iter,
                start=factors.inside(problem.p, self.radius_ * (1.0 - 1e-12)).point(problem.f).w,
                callbacks=given_callbacks(self.callbacks),
            )
        assert result.bound is not None
        factors = Factors.of_point(problem.f, ball, result.w, np.asarray(result.intercept))
        found = CertifiedModel(factors, result.value, result.bound, result.relative_gap, coarse=False)
        self._close(problem, found, result)
        one_of_many(result)
        warn_if_short(self, result, tol, expected=result.status is Status.CALLBACK)
        return self

    def _close(self, problem: ConvexProblem, found: CertifiedModel, result: Result | None) -> None:
        """The attributes of an answer, with the penalty that new users and further ratings get."""
        strength, norm = problem.strength_of(found.factors), found.factors.norm(problem.p)
        self._prove(found, strength_=strength, norm_=norm, result_=result)

    def _prove(self, found: CertifiedModel, **more: Any) -> None:
        """The attributes of a model and its certificate, and more, all at once: Ctrl-C must not come between them."""
        proved = {field.name: getattr(found, field.name) for field in fields(found)}
        vars(self).update({f"{name}_": value for name, value in proved.items()} | more)

    def _convex_solver(self, problem: ConvexProblem) -> Any:
        """The solver that was given; else one that takes whole spectra where they are cheap, or needs no images."""
        if self.solver is not None:
            return self.solver
        if min(problem.f.shape) <= EVERY_SIDE:
            return WeightedProjectedGradient()
        return None if problem.f.neighbours is None else FrankWolfe(ShortStep())
