r"""The intercept: an unconstrained offset, minimised out on the image.

For a convex loss the intercept of an image is its global minimiser, so that :math:`F(w) = \min_b f(w, b)` is
convex with the gradient of f in w (envelope theorem). For other losses it is a local minimiser reached by
monotone steps from where the last point had it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array
from projfree.losses.base import Loss, row_blocks
from projfree.numerics.newton_root import NoRootError, increasing_root
from projfree.objectives.tangent import weigh

LOCAL_STEPS = 50
#: The derivative in b counts as zero at this many units of rounding of its absolute terms.
NOISE = 16.0
#: Newton in several outputs is stuck if it ends with more than this part of the derivative's absolute terms.
STUCK, SWEEPS = 1e-8, 10


#: ``(u, b)`` to the weighted sums of first derivatives at ``u + b``, of second ones, and of the sizes of the first.
SlopeSums = Callable[[Array, float], tuple[float, float, float]]


def profile(
    loss: Loss, u: Array, y: Array, s: Array | float, start: Array | float | None, sums: SlopeSums | None = None
) -> Array:
    """The intercept of the image ``u``: shape ``()`` for one output, ``(k,)`` for several.

    Parameters
    ----------
    s : array of shape (n,) or float
        Normalised sample weights.
    start : array or float, optional
        Where the search begins; for losses that are not convex the result depends on it.
    sums : callable, optional
        Compiled sums for one output.
    """
    b = np.broadcast_to(np.asarray(0.0 if start is None else start, dtype=np.float64), u.shape[1:]).copy()
    if loss.quadratic:
        return b - _weighted(loss.derivative(u + b, y), s) / loss.smoothness
    if not loss.convex:
        return _local(loss, u, y, s, b)
    if loss.coupled:
        return _newton(loss, u, y, s, b)
    if u.ndim == 1:
        return np.asarray(_root(loss, u, y, s, float(b), sums))
    return np.array([_root(loss, u[:, j], y[:, j], s, float(b[j])) for j in range(u.shape[1])])


def no_minimum(y: Array) -> ValueError:
    """The sentence for targets that push the intercept to infinity."""
    return ValueError(
        f"`fit_intercept=True` needs targets of every class, got only {sorted(set(np.ravel(y).tolist()))[:3]}: "
        "the intercept has no finite minimum; use `fit_intercept=False`, or drop the loss."
    )


def _weighted(r: Array, s: Array | float) -> Array:
    weighted: Array = weigh(r, s).sum(axis=0)
    return weighted


def _root(loss: Loss, u: Array, y: Array, s: Array | float, start: float, sums: SlopeSums | None = None) -> float:
    def slope(b: float) -> tuple[float, float, float]:
        if sums is not None:
            first, second, size = sums(u, b)
            return first, second, NOISE * UNIT * size
        r, h = loss.slopes(u + b, y)
        r = r * s
        return float(r.sum()), float((h * s).sum()), NOISE * UNIT * float(np.abs(r).sum())

    try:
        return increasing_root(slope, start, bend=loss.bend)
    except NoRootError:
        raise no_minimum(y) from None


def _newton(loss: Loss, u: Array, y: Array, s: Array | float, b: Array) -> Array:
    def direction(b: Array, g: Array) -> Array:
        # The Hessian may be singular (softmax does not see a common shift), so steps have least norm.
        H = loss.summed_second(u + b, y, np.broadcast_to(s, len(u)))
        with np.errstate(over="ignore", invalid="ignore"):
            step: Array = -np.linalg.lstsq(H, g, rcond=1e-14)[0]
        return step

    for _ in range(SWEEPS):
        b = _descend(loss, u, y, s, b, direction)
        r = weigh(loss.derivative(u + b, y), s)
        if np.abs(r.sum(axis=0)).max() <= STUCK * np.abs(r).sum():
            break
        b = _sweep(loss, u, y, s, b)
    return b


def _sweep(loss: Loss, u: Array, y: Array, s: Array | float, b: Array) -> Array:
    """Minimise in one output after the other: slow, but out of any place where the curvature has vanished."""
    for j in range(len(b)):
        b = _along_output(loss, u, y, s, b, j)
    return b


def _along_output(loss: Loss, u: Array, y: Array, s: Array | float, b: Array, j: int) -> Array:
    unit = np.eye(len(b))[j]
    along = np.broadcast_to(unit, u.shape)

    def slope(c: float) -> tuple[float, float, float]:
        full = u + (b + (c - b[j]) * unit)
        r = loss.derivative(full, y)[:, j] * s
        bend = float(np.sum(loss.curvature(full, y, along, along) * s))
        return float(r.sum()), bend, NOISE * UNIT * float(np.abs(r).sum())

    try:
        moved: Array = b + (increasing_root(slope, float(b[j])) - b[j]) * unit
    except NoRootError:
        raise no_minimum(y) from None
    return moved


def _local(loss: Loss, u: Array, y: Array, s: Array | float, b: Array) -> Array:
    def direction(b: Array, g: Array) -> Array:
        # Newton with the size of the curvature, so that it descends, and moves where both have almost vanished; no
        # further than the loss is wide, so that it stays in its valley.
        h = np.abs(_weighted(loss.second(u + b, y), s))
        step: Array = np.clip(-g / np.maximum(h, UNIT * loss.smoothness), -wide, wide)
        return step

    wide = 4.0 / np.sqrt(loss.smoothness)
    return _descend(loss, u, y, s, b, direction)


def _descend(
    loss: Loss, u: Array, y: Array, s: Array | float, b: Array, direction: Callable[[Array, Array], Array]
) -> Array:
    """Monotone descent in b; ends at a derivative of rounding size, or where no step helps."""

    def evaluate(b: Array) -> tuple[float, Array, float]:
        value, r = loss.value_and_derivative(u + b, y)
        r = weigh(r, s)
        return float(_weighted(value, s).sum()), r.sum(axis=0), NOISE * UNIT * float(np.abs(r).sum())

    value, g, noise = evaluate(b)
    for _ in range(LOCAL_STEPS):
        if np.abs(g).max() <= noise:
            break
        step = direction(b, g)
        if not np.isfinite(step).all():  # no curvature left to speak of
            break
        for power in range(30):
            trial = b + step * 0.5**power
            new, g_new, noise_new = evaluate(trial)
            # Close to the minimum values agree to rounding; there the derivative decides.
            level = new <= value + 4.0 * UNIT * abs(value) and np.abs(g_new).max() < np.abs(g).max()
            if new < value or level:
                break
        else:
            break
        b, value, g, noise = trial, min(new, value), g_new, noise_new
    return b


def joint_curvature(loss: Loss, u: Array, y: Array, s: Array | float, directions: list[Array], free: bool) -> Array:
    """The Hessian in the coordinates of image directions and, if ``free``, of the intercept behind them."""
    if loss.coupled:
        return _coupled_curvature(loss, u, y, s, directions, free)
    h = weigh(loss.second(u, y), s)
    weighted = [h * d for d in directions]
    H = np.array([[np.vdot(a, b) for b in directions] for a in weighted])
    if not free:
        return H
    cross = np.array([np.ravel(a.sum(axis=0)) for a in weighted])
    return np.block([[H, cross], [cross.T, np.diag(np.ravel(h.sum(axis=0)))]])


def _coupled_curvature(loss: Loss, u: Array, y: Array, s: Array | float, directions: list[Array], free: bool) -> Array:
    H = np.array([[np.sum(loss.curvature(u, y, a, b) * s) for b in directions] for a in directions])
    if not free:
        return H
    weights, k = np.broadcast_to(s, len(u)), u.shape[1]
    cross = np.zeros((len(directions), k))
    for rows in row_blocks(len(u), k * k):
        second = loss.second(u[rows], y[rows])
        cross += [weights[rows] @ np.einsum("ijk,ik->ij", second, a[rows]) for a in directions]
    return np.block([[H, cross], [cross.T, loss.summed_second(u, y, weights)]])
