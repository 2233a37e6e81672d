"""`Certificate`: data that allows others to verify a result in one pass, without trusting the solver."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import UNIT, Point, is_frozen, same
from projfree.checks import Array
from projfree.data import as_data
from projfree.losses.base import Loss
from projfree.objectives import Objective, SmoothFunction
from projfree.objectives.base import Evaluation
from projfree.objectives.blackbox import NotFiniteError
from projfree.objectives.rounding import FEW, ROUNDING, Rounding, reported_value
from projfree.sets.base import ConstraintSet, NormBall, frank_wolfe_gap
from projfree.sets.constrained import Constrained, with_best_multipliers
from projfree.sets.unpenalized import WithUnpenalized

if TYPE_CHECKING:
    from projfree.run.loop import Run

#: Relative tolerance for numbers that are recomputed in another order, in addition to the bounds on rounding.
AGREEMENT = 1e-10


@dataclass(frozen=True)
class Verification:
    """Outcome of `Certificate.verify`.

    Attributes
    ----------
    feasible : bool or None
        Whether the point is in the set; None if the set has no membership test.
    value : float
        The recomputed objective at the point.
    bound : float or None
        The recomputed lower bound from the tangent at the witness; None for a non-convex objective.
    gap : float
        The difference of value and bound (for a non-convex objective the Frank-Wolfe gap).
    ok : bool
        Whether the point is feasible, its value is as claimed, the recomputed bound is at least the claimed one, and
        the gap is at most the claimed one, all up to the rounding of sums in another order.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> result = minimize(Objective(Squared(), as_data(X, y)), LpBall(1.5, radius=1.0))
    >>> result.certificate.verify(X, y).feasible
    True
    """

    feasible: bool | None
    value: float
    bound: float | None
    gap: float
    ok: bool


@dataclass(frozen=True, eq=False)
class Certificate:
    """A point, its value, a lower bound on the optimum, and the witness, whose tangent gives the bound.

    The tangent of a convex f at the witness is a minorant of f; its minimum over the set is a lower bound on the
    optimum. One pass over the data recomputes the value at the point and this tangent.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> result = minimize(Objective(Squared(), as_data(X, y)), LpBall(1.5, radius=1.0))
    >>> result.certificate.verify(X, y).ok
    True
    >>> result.certificate.verify(X, y + 1.0).ok
    False
    """

    ball: ConstraintSet
    w: Array
    intercept: Array | None
    value: float
    bound: float | None
    gap: float
    tolerance: float
    witness: Array
    witness_intercept: Array | None
    loss: Loss | None = None

    def __repr__(self) -> str:
        bound = "none, not convex" if self.bound is None else f"{self.bound:.8g}"
        return f"Certificate(value={self.value:.8g}, bound={bound}, gap={self.gap:.3g}, ball={self.ball!r})"

    @property
    def multipliers(self) -> Array | None:
        """The multipliers of the constraints of a `Constrained` set; positive where an upper bound is active."""
        return self.ball.multipliers if isinstance(self.ball, Constrained) else None

    def verify(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, objective: SmoothFunction | None = None
    ) -> Verification:
        """Verify feasibility, value and bound.

        Parameters
        ----------
        X, y, sample_weight
            The data, as for `as_data`.
        objective : SmoothFunction, optional
            The objective instead of the data, if it is not a mean of losses or if the data were centred or scaled.
        """
        if objective is None:
            if self.loss is None or X is None:
                raise TypeError(
                    "`verify` needs the data as `verify(X, y)`, or `verify(objective=...)` where there is none."
                )
            objective = Objective(self.loss, as_data(X, y, sample_weight), fit_intercept=self.intercept is not None)
        f, ball = objective.reported, self.ball
        rounding, opened, least = f.structure.rounding, f.open(), f.structure.least
        x = f.point(self.w, self.intercept)
        z = opened.evaluate(f.point(self.witness, self.witness_intercept), (x,), near=True)
        here = z.also[0] if z.also else opened.evaluate(x, tangent=False)
        value, m, support = reported_value(opened, here), z.slope, ball.support(-z.slope.gradient)
        lower, allowance = m.minimum(ball, support)
        size, fits = abs(m.constant) + abs(support), True
        # Tolerances of the value and of the bound; functions without rows return the same numbers at each evaluation.
        of_value, of_bound = AGREEMENT * max(abs(value), abs(self.value)), min(allowance, AGREEMENT * size)
        if rounding is None:
            of_value += of_bound
            of_bound = 0.0
        else:
            sums = _sum_rounding(ball, f, here, z, rounding)
            # The error of the support, twice; an approximate support is still a function of its argument.
            of_support = 2.0 * (ball.support_error(m.gradient, support) + ROUNDING * size)
            of_value, of_bound = of_value + sums[0], sums[1] + min(of_support, AGREEMENT * size)
            # The witness must be in the set or near it, and have the optimal intercept of a point of the set: the
            # rounding allowance of a distant one would justify any claim. Accelerated methods evaluate x + b (x - y)
            # with x and y in the set and b < 1, which is within three times the ball.
            fits = _contains(ball, self.witness, 2.0) is not False and _intercept_fits(self, f, z, rounding)
        bound, noise, inside = None, 2.0 * of_value + of_bound, _contains(ball, self.w)
        if self.bound is None:
            gap = frank_wolfe_gap(ball, m.gradient, self.w)
        else:
            # A bound above the value is no proof; the least value of the loss needs none.
            bound = max(lower, least)
            gap = value - bound
            fits = fits and self.bound <= max(lower + of_value + of_bound, least) and gap >= -noise
        agrees = abs(value - self.value) <= of_value
        good = inside is not False and agrees and fits and gap <= self.gap + noise < math.inf
        return Verification(inside, value, bound, gap, bool(good))


def _sum_rounding(
    ball: ConstraintSet, f: SmoothFunction, x: Evaluation, z: Evaluation, rounding: Rounding
) -> tuple[float, float]:
    """Return twice the rounding errors of the value at ``x`` and of the bound from the tangent at ``z``.

    They are doubled because both were computed twice. They cover the sums only: the allowance of the bound may also
    include the effect of a suboptimal intercept, which would accept a witness that belongs to other data.
    """
    mean, most = rounding.extents(ball, f.shape)
    far = mean + rounding.intercept_range(z.intercept, most)
    of_value = rounding.value(x.value, x.point.w, x.intercept)
    apart = rounding.apart(ball, z.point.w)
    return 2.0 * of_value, 2.0 * rounding.bound(z.value, z.point.w, z.intercept, far, apart)


def _contains(ball: ConstraintSet, w: Array, *slack: float) -> bool | None:
    """Return whether a point is in the set, up to a relative slack if given; None without a membership test."""
    try:
        return ball.contains(w, *slack)
    except NotImplementedError:
        return None


def _intercept_fits(claim: Certificate, f: SmoothFunction, z: Evaluation, rounding: Rounding) -> bool:
    """Return whether the claimed intercept is optimal: for squares at the witness, else at some feasible point."""
    given, best = claim.witness_intercept, z.intercept
    if given is None or best is None:
        return True
    scale = rounding.extent(z.point.w) + math.sqrt(abs(z.value))
    known = bool(np.all(np.abs(best - given) <= AGREEMENT * (np.abs(best) + scale)))
    return known and rounding.may_be_best(given, rounding.extents(claim.ball, f.shape)[1])


# ---------------------------------------------------------------- the certificate of a run


def recompute_certificate(run: Run) -> Certificate:
    """Recompute the value at the best point and a lower bound from stored points only.

    If the run itself has evaluated the best point from its parameter, no new evaluation is needed. The tangent at the
    best point is used first; if its bound does not meet the tolerance, the tangent at the witness of the averages costs
    one more pass.
    """
    ball, lower, f = run.ball, run.lower_bound, run.opened.reported.open()  # with an empty cache
    w, found = run.best.w, None
    if lower.factored and isinstance(ball, NormBall) and (norm := ball.norm(w)) > ball.radius:
        w = w * (ball.radius / norm * (1.0 - FEW * UNIT))  # truncated factors may leave the ball
    elif not run.unproved and run.f.reported is run.f:
        found = recomputed(run.opened, run.best)
    if found is None:
        found = f.evaluate(f.point(w, run.best.intercept))
    run.best, run.value, m = found.point, reported_value(f, found), found.slope
    if run.unproved:  # do not trust bounds of a file; its averages only suggest where to evaluate
        lower.reset()
        if run.scale > abs(run.value):
            run.centre_value = math.nan
        if _contains(ball, w) is False:
            raise ValueError(f"the checkpoint leads to a point outside {ball!r}; begin anew with `start=`.")
    bound, at, support, least = None, run.best, None, run.f.structure.least
    known = None if run.state.bound is None else run.state.bound.multipliers
    ball = with_best_multipliers(run.ball, m.gradient, run.best.w, known)
    if run.convex:
        if not run.unproved:
            lower.offer_averages(run.state.oracle_result)
        support = ball.support(-m.gradient)
        bound, witness = lower.offer(m, run.best.w, support), lower.witness
        if run.value - bound > run.tol * run.scale and witness is not None and not same(witness, run.best.w):
            with suppress(NotFiniteError):
                there = f.evaluate(f.point(witness, run.best.intercept))
                tight = with_best_multipliers(run.ball, there.slope.gradient, there.point.w)
                other = lower.offer(there.slope, there.point.w, tight.support(-there.slope.gradient))
                at, bound, ball = (there.point, other, tight) if other > bound else (at, bound, ball)
        if bound < least:  # rounding can hide the minimum
            bound, lower.bound = least, max(lower.bound, least)
        if f.structure.contradicted is not None and (run.iteration <= 1 or not m.gradient.any()):
            _evaluate_elsewhere(run, f)
        run.convex = not f.structure.contradicted
    run.passes_before += f.passes
    if run.convex:
        refuse_contradiction(run.f, ball, run.value, lower.bound, lower.allowance)
    else:
        at, bound, support, run.latest_gap = run.best, None, None, frank_wolfe_gap(ball, m.gradient, run.best.w)
    if run.f.convex and not run.convex:
        lower.reset()
        for row in run.trace.rows:
            row["bound"] = row["gap"] = math.nan
    # The multiplier is the dual norm of the gradient; for convex f it uses the support of the bound.
    run.multiplier = multiplier(ball, m.gradient, support)
    x, gap, loss = run.best, run.latest_gap if bound is None else run.value - bound, run.f.reported.structure.loss
    run.certificate = Certificate(
        ball, x.w, x.intercept, run.value, bound, gap, run.tol * run.scale, at.w, at.intercept, loss
    )
    return run.certificate


def recomputed(f: SmoothFunction, x: Point) -> Evaluation | None:
    """Return the cached evaluation of a point if it is as reliable as one in a new workspace; else None."""
    found = f.evaluate(x, read=False)
    # The caller may have modified the array of a point since, unless it is read-only.
    return found if found.fresh and found.rest is None and is_frozen(x.w) else None


def _evaluate_elsewhere(run: Run, f: SmoothFunction) -> None:
    """Evaluate a user's function at three random points of the set.

    Otherwise a maximum or a saddle point of a function that was declared convex would not be detected.
    """
    rng, centre = np.random.default_rng(run.state.seed), run.ball.centre(f.shape)
    for share in (1.0, 1.0, 0.5):  # two vertices and a midpoint, which fit into the cache with the best point
        vertex = run.ball.lmo(rng.standard_normal(f.shape))
        with suppress(NotFiniteError):  # an infinite value contradicts no tangent
            f.evaluate(f.point(centre + share * (vertex - centre)))


def multiplier(ball: ConstraintSet, gradient: Array, support: float | None = None) -> float | None:
    r"""Return the penalty :math:`\mu` for which a minimiser with this gradient also minimises :math:`f + \mu \|w\|`.

    It is the support of the negative gradient divided by the radius; None if the set has no radius. Unpenalised
    features do not count.
    """
    if isinstance(ball, WithUnpenalized):
        return multiplier(ball.ball, ball.split(gradient)[0])
    if isinstance(ball, Constrained):
        return multiplier(ball.ball, ball.relaxed(gradient))
    radius = getattr(ball, "radius", None)
    if radius is None:
        return None
    return float((ball.support(-gradient) if support is None else support) / radius)


def refuse_contradiction(f: SmoothFunction, ball: ConstraintSet, value: float, bound: float, allowance: float) -> None:
    """Raise ValueError if a lower bound exceeds a value, because f or the set violates what the user declared."""
    if bound > value + 10.0 * AGREEMENT * max(abs(value), abs(bound)) + 4.0 * allowance:
        raise ValueError(
            f"the lower bound {bound:.10g} exceeds the value {value:.10g}: {type(f.reported).__name__} is not convex, "
            f"or `support` of {ball!r} is too small, or either is less accurate than it says (`rtol=`, "
            "`support_rtol=`); `check_gradient(f, w)` says whether the gradient is right."
        )
