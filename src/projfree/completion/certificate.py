"""Certificates of completed matrices, and the convex solver that reduces their gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from projfree.algebra import Point
from projfree.completion.model import Factors
from projfree.completion.problem import CompletionProblem
from projfree.deadline import MIN_TIME_LIMIT, deadline, remaining
from projfree.run import Result, minimize
from projfree.run.certificate import refuse_contradiction
from projfree.run.loop import LEAST_SCALE
from projfree.runtime import single_blas_thread
from projfree.sets import schatten

#: Largest ``min(shape)`` for which a tight bound is computed by default; it takes about a second.
MAX_SHARP_SIZE = 3000
#: Rounding error of a value relative to that of the zero matrix; a bound above it reveals another problem.
ROUNDING = 1e-12


class CertifiedModel(NamedTuple):
    """A model inside the ball, its value, a lower bound on the minimum over the ball, and the relative gap."""

    factors: Factors
    value: float = math.nan
    bound: float = math.nan
    relative_gap: float = math.nan


def certify(f: CompletionProblem, model: Factors, radius: float, sharp: bool) -> CertifiedModel:
    """Scale a model into the ball, optimise its offsets, and compute its certificate.

    The bound is always valid. With ``sharp``, and for small matrices, it uses all singular values of the gradient (the
    largest one for p = 1); else its Frobenius norm, which costs a few products.
    """
    ball, sharp = f.ball(radius), sharp or min(f.shape) <= MAX_SHARP_SIZE
    with single_blas_thread():
        here = f.open().evaluate(model.scaled_into_ball(f.p, radius).point(f))
        gradient: Any = here.slope.gradient
        bound, allowance = here.slope.minimum(ball, schatten.structured_support(gradient, f.p, radius, sharp))
    refuse_contradiction(f, ball, here.value, bound, allowance)
    bound = max(bound, f.structure.least)
    factors = model.scaled_into_ball(f.p, radius).with_offsets(np.asarray(here.intercept))
    return CertifiedModel(factors, here.value, bound, relative_gap(f, here.value, bound))


def relative_gap(f: CompletionProblem, value: float, bound: float) -> float:
    """Return the gap relative to the value, or to a millionth of the value at zero if that is larger."""
    return (value - bound) / max(abs(value), 1e-6 * (f.entries.value_without_offsets + f.side.zero_value), LEAST_SCALE)


def reduce_gap(
    f: CompletionProblem, current: CertifiedModel, radius: float, tol: float, callbacks: Sequence[Any], max_iter: int
) -> tuple[CertifiedModel, Result]:
    """Continue by accelerated projected gradients; the value does not increase, and the bound does not decrease."""
    time_left = remaining()
    with deadline(None, ignore_outer=True):  # the time limit does not include the final verification
        result = minimize(
            f,
            f.ball(radius),
            f.solver,
            tol=tol,
            max_iter=max_iter,
            time_limit=None if time_left == math.inf else max(time_left, MIN_TIME_LIMIT),
            start=current.factors.scaled_into_ball(f.p, radius * (1.0 - 1e-12)).point(f).w,
            callbacks=callbacks,
        )
    assert result.bound is not None
    model, value, bound = current.factors, current.value, max(result.bound, current.bound)
    if result.value <= value:
        model, value = Factors.of_point(f, Point(result.w, result.intercept)), result.value
    rounding = ROUNDING * (f.entries.value_without_offsets + f.side.zero_value)
    refuse_contradiction(f, f.ball(radius), value, bound, rounding)
    return CertifiedModel(model, value, bound, relative_gap(f, value, bound)), result
