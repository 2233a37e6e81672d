"""The referee: another method's answer to the same problem, through CVXPY and Clarabel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from agreement.exact import Array
from agreement.problems import Problem

from projfree import (
    Box,
    ConstraintSet,
    Gamma,
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    Poisson,
    QuadraticForm,
    Quantile,
    SchattenBall,
    Simplex,
    Softmax,
    SquaredHinge,
    Weighted,
)
from projfree.sets import Birkhoff, KSupportBall, OwlBall, Positive, Shifted, WithUnpenalized

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import cvxpy as cp

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 100}


def referee(problem: Problem) -> Array | None:
    """The referee's point, near the set but not in it; None where it has no model of the set or gives up."""
    W = cp.Variable(problem.f.shape)
    return _solved(_objective(problem, W), problem.ball, W)


def nearest(ball: ConstraintSet, a: Array) -> Array | None:
    """The referee's nearest point of the set."""
    W = cp.Variable(a.shape)
    return _solved(cp.sum_squares(W - a), ball, W)


def _solved(objective: Any, ball: ConstraintSet, W: Any) -> Array | None:
    constraints = _member(ball, W)
    if constraints is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": its point is judged by its value alone
        try:
            cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL, **TIGHT)
        except cp.error.SolverError:
            return None
    found = W.value
    return None if found is None or not np.isfinite(found).all() else np.asarray(found).reshape(W.shape)


def _member(ball: ConstraintSet, W: Any) -> list[Any] | None:
    if isinstance(ball, Simplex):
        return [W >= 0, cp.sum(W) == ball.radius]
    if isinstance(ball, Box):
        return [ball.lower <= W, ball.upper >= W]
    if isinstance(ball, WithUnpenalized):
        kept = np.setdiff1d(np.arange(W.shape[0]), ball.free)
        inside = _member(ball.ball, W[kept])
        return None if inside is None else [cp.abs(W[list(ball.free)]) <= ball.bound, *inside]
    if isinstance(ball, Positive):
        inside = _member(ball.ball, W)
        return None if inside is None else [W >= 0, *inside]
    if isinstance(ball, Shifted):
        return _member(ball.ball, W - np.broadcast_to(ball.offset, W.shape))
    if isinstance(ball, Birkhoff):
        return [W >= 0, cp.sum(W, axis=0) == 1, cp.sum(W, axis=1) == 1]
    if isinstance(ball, KSupportBall):
        x, shares = cp.vec(W, order="C"), cp.Variable(W.size)  # of the entries, at most one each and k together
        square = cp.sum(cp.hstack([cp.quad_over_lin(x[i], shares[i]) for i in range(W.size)]))
        return [square <= ball.radius**2, shares <= 1, cp.sum(shares) <= ball.k]
    norm = _norm(ball, W)
    return None if norm is None else [norm <= ball.radius]


def _norm(ball: ConstraintSet, W: Any) -> Any:
    if isinstance(ball, Weighted):
        return _norm(ball.ball, cp.multiply(np.broadcast_to(ball.weights, W.shape), W))
    if isinstance(ball, LpBall):
        return _lp(cp.vec(W, order="C"), ball.p)
    if isinstance(ball, GroupBall):
        labels = np.arange(W.shape[0]) if ball.groups is None else np.array(ball.groups)
        groups = [cp.vec(W[np.flatnonzero(labels == label)], order="C") for label in np.unique(labels)]
        return _lp(cp.hstack([_lp(group, ball.p) for group in groups]), ball.q)
    if isinstance(ball, OwlBall):
        falls = ball.weights - np.append(ball.weights[1:], 0.0)
        x = cp.abs(cp.vec(W, order="C"))
        return sum(c * cp.sum_largest(x, j) for j, c in enumerate(falls.tolist(), start=1) if c > 0.0)
    assert isinstance(ball, SchattenBall)
    if ball.p == 2.0:
        return cp.norm(W, "fro")
    return {1.0: cp.normNuc, np.inf: cp.sigma_max}.get(ball.p, lambda _: None)(W)


def _lp(x: Any, p: float) -> Any:
    return {1.0: cp.norm1, 2.0: cp.norm2, np.inf: cp.norm_inf}.get(p, lambda v: cp.pnorm(v, p))(x)


def _objective(problem: Problem, W: Any) -> Any:
    f, t, loss = problem.f, problem.table, problem.loss
    if isinstance(f, QuadraticForm):
        return 0.5 * sum(cp.quad_form(w, cp.psd_wrap(f.H)) for w in _columns(W)) - cp.sum(cp.multiply(f.b, W))
    if t.places is not None:
        u = cp.hstack([W[i, j] for i, j in zip(*t.places, strict=True)])
    else:
        u = t.X.astype(np.float64) @ W
    if problem.intercept:
        u = u + (cp.Variable() if u.ndim == 1 else np.ones((len(t.y), 1)) @ cp.Variable((1, u.shape[1])))
    s = np.ones(len(t.y)) if t.weight is None else t.weight
    return (s / s.sum()) @ _losses(loss, u, t.y)


def _losses(loss: Any, u: Any, y: Array) -> Any:
    """One loss a row."""
    if isinstance(loss, Softmax):
        return cp.log_sum_exp(u, axis=1) - cp.sum(cp.multiply(np.eye(u.shape[1])[y], u), axis=1)
    if isinstance(loss, Logistic):
        entries = cp.logistic(-cp.multiply(y, u))
    elif isinstance(loss, Quantile):
        entries = cp.maximum(loss.quantile * (y - u), (loss.quantile - 1.0) * (y - u))
    elif isinstance(loss, SquaredHinge):
        entries = cp.square(cp.pos(1.0 - cp.multiply(y, u)))
    elif isinstance(loss, Poisson):
        entries = cp.exp(u) - cp.multiply(y, u)
    elif isinstance(loss, Gamma):
        entries = cp.multiply(y, cp.exp(-u)) + u
    else:
        entries = cp.huber(u - y, loss.delta) if isinstance(loss, Huber) else cp.square(u - y)
    return entries if entries.ndim == 1 else cp.sum(entries, axis=1)


def _columns(W: Any) -> list[Any]:
    return [W] if W.ndim == 1 else [W[:, j] for j in range(W.shape[1])]
