"""What every result of a convex problem must satisfy, given feasible points that others have found."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
from agreement.exact import Array
from agreement.inside import pulled
from agreement.problems import Problem

from projfree import Objective, QuadraticForm, Result
from projfree.losses.base import LogLinkLoss, SmoothedLoss

EPS = float(np.finfo(np.float64).eps)


def lowest(problem: Problem, points: Iterable[Array]) -> Decimal:
    """The lowest value among the points, each pulled into the set; all in exact arithmetic."""
    assert problem.exact is not None
    values = []
    for w in points:
        inside = pulled(problem.ball, w)
        values.append(problem.exact(inside, _intercept(problem, inside.astype(np.float64))))
    return min(values)


def _intercept(problem: Problem, w: Array) -> Any:
    """A good intercept for ``w``; any at all would give a value that no bound may exceed."""
    if not problem.intercept:
        return None
    f = problem.f.reported
    return f.evaluate(f.point(w), tangent=False).intercept


def judge(problem: Problem, result: Result, least: Decimal, tol: float) -> None:
    """Hold a result against ``least``, the value of some feasible point; the comparison of bounds has no tolerance."""
    assert result.bound is not None
    assert problem.ball.contains(result.w)
    assert Decimal(result.bound) <= least, f"bound above a feasible value by {Decimal(result.bound) - least:.3e}"
    _judge_trace(result)
    _judge_value(problem, result, least)
    assert result.gap == result.value - result.bound
    assert result.gap >= 0.0
    if result.status.converged:
        assert result.relative_gap <= tol
    _judge_certificate(problem, result, least)


def _judge_trace(result: Result) -> None:
    bounds = result.trace["bound"]
    assert len(bounds) == result.n_iter
    assert not np.isnan(bounds).any()
    assert np.all(bounds[1:] >= bounds[:-1])
    assert result.bound is not None
    assert bounds[-1] <= result.bound  # so that all of them lie below the feasible value


def _judge_value(problem: Problem, result: Result, least: Decimal) -> None:
    assert problem.exact is not None
    f = problem.f.reported
    true, rounding = problem.exact(result.w, result.intercept), Decimal(value_rounding(problem, result))
    assert abs(Decimal(result.value) - true) <= rounding
    assert true - least <= Decimal(result.gap) + rounding
    unbounded = isinstance(f, Objective) and not np.isfinite(problem.loss.smoothness)
    first = np.zeros(f.shape) if unbounded else problem.ball.centre(f.shape)  # exponentials are compared with w = 0
    scale = max(abs(result.value), 1e-6 * abs(f(f.point(first))))
    if scale > 1e6 * float(rounding):  # where both values are zero up to rounding, so is the scale
        assert abs(result.relative_gap * scale - result.gap) <= 1e-5 * result.gap


def _judge_certificate(problem: Problem, result: Result, least: Decimal) -> None:
    if isinstance(problem.f.reported, Objective) and problem.table.places is None:
        t = problem.table
        found = result.certificate.verify(t.X, t.y, t.weight)
    else:
        found = result.certificate.verify(objective=problem.f)
    rounding, noise = value_rounding(problem, result), image_noise(problem, result)
    assert found.feasible
    assert found.bound is not None
    assert Decimal(found.bound) <= least
    assert abs(found.value - result.value) <= rounding
    assert found.gap <= max(result.certificate.gap, result.certificate.tolerance) * (1.0 + 1e-6) + noise
    if noise <= 1e-11 * abs(result.value):  # where the value has digits enough to compare
        assert found.ok


def value_rounding(problem: Problem, result: Result) -> float:
    """What forming the image, the losses and their sum in float64 may cost the value."""
    w, f = np.abs(result.w), problem.f
    if isinstance(f, QuadraticForm):
        size = float(np.sum(w * (np.abs(f.H) @ w)) + np.sum(np.abs(f.b) * w) + abs(f.c))
        return 4.0 * EPS * (len(f.b) + 4) * size
    moved, values, slopes = _moved(problem, result)
    terms = np.abs(slopes) * moved + 0.5 * _curvature(problem, result) * moved**2
    if isinstance(problem.loss, SmoothedLoss):  # the loss that is reported has a corner
        terms = problem.loss.lipschitz * moved
    if problem.loss.coupled:
        terms = terms.sum(axis=1)
    s = np.ones(len(moved)) if problem.table.weight is None else problem.table.weight
    total = (_unit(problem) * values + terms).reshape(len(s), -1).sum(axis=1)
    return float(s @ total / s.sum())


def image_noise(problem: Problem, result: Result) -> float:
    """What an image formed in another order may cost the bound: another tangent, and its support over the set."""
    f, rounding = problem.f, value_rounding(problem, result)
    reach = problem.ball.reach(result.w.shape)
    if isinstance(f, QuadraticForm):
        return rounding + 8.0 * EPS * len(f.b) * float(np.linalg.norm(f.H)) * reach**2
    X = problem.table.X if problem.table.places is None else np.ones((1, 1))
    moved = float(_moved(problem, result)[0].max()) + _unit(problem) * float(np.linalg.norm(X, axis=1).max()) * reach
    return (
        rounding
        + 4.0 * float(np.max(_curvature(problem, result))) * moved * float(np.linalg.norm(X, axis=1).max()) * reach
    )


def _unit(problem: Problem) -> float:
    return 4.0 * EPS * (len(problem.table.y) + int(np.prod(problem.f.shape)) + 8)


def _predictions(problem: Problem, result: Result) -> Array:
    t, w = problem.table, result.w
    u = w[t.places] if t.places is not None else t.X @ w
    return np.asarray(u + (0.0 if result.intercept is None else result.intercept), dtype=np.float64)


def _curvature(problem: Problem, result: Result) -> Any:
    """The largest second derivative; where there is none, those at the predictions, twice for what is near them."""
    loss = problem.loss
    if np.isfinite(loss.smoothness):
        return loss.smoothness
    return 2.0 * loss.second(_predictions(problem, result), problem.table.y)


def _moved(problem: Problem, result: Result) -> tuple[Array, Array, Array]:
    """How far rounding may move each argument u + b - y of the loss; the losses and their derivatives."""
    t, loss, w = problem.table, problem.loss, result.w
    sizes = np.abs(w[t.places]) if t.places is not None else np.abs(t.X) @ np.abs(w)
    b = 0.0 if result.intercept is None else result.intercept
    u = _predictions(problem, result)
    values = loss.exact(u, t.y) if isinstance(loss, SmoothedLoss) else loss.value(u, t.y)
    slopes = loss.derivative(u, t.y)
    if isinstance(loss, LogLinkLoss):
        # What the loss states: its values err by `rounding` units of value and floor, and it is no steeper than this.
        size = values + loss.floor(t.y)
        values = size * (1.0 + 2.0 * EPS * loss.rounding / _unit(problem))
        return np.asarray(_unit(problem) * (sizes + np.abs(b) + 1.0)), values, 3.0 * size
    size = sizes + np.abs(b) + (0.0 if loss.labels else np.abs(t.y))
    return np.asarray(_unit(problem) * size), values, slopes
