"""Checks of losses and Hypothesis strategies for their arguments, for authors of new losses.

A check is a function that raises `AssertionError` if a loss violates a property. `LAWS` take ``(loss, u, y)`` and
`PAIR_LAWS` take ``(loss, u, v, y)`` with two predictions for the same targets; `samples` and `pairs` draw the
arguments::

    @given(samples(MyLoss()))
    def test_derivatives(sample):
        derivatives_are_slopes(MyLoss(), *sample)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from projfree.checks import Array
from projfree.losses.base import LogLinkLoss, Loss

#: Step of difference quotients: a power of two, about the fourth root of the machine epsilon of extended precision.
STEP = 2.0**-17
#: Predictions of special interest: exp(36) is near the inverse of the machine epsilon, and exp(-37) is near it.
MODERATE = (0.0, 1e-30, -1e-9, 1.0, -1.0, 36.0, -37.0)


@st.composite
def samples(draw: Any, loss: Loss, dtype: Any = np.float64, extreme: bool = False) -> tuple[Array, Array]:
    """Draw predictions and targets that fit `loss`; ``extreme`` ones reach the limits of the floating-point range."""
    u, _, y = draw(pairs(loss, dtype, extreme))
    return u, y


@st.composite
def pairs(draw: Any, loss: Loss, dtype: Any = np.float64, extreme: bool = False) -> tuple[Array, Array, Array]:
    """Draw two arrays of predictions, and targets for both."""
    n, k = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    shape = (n, k) if loss.coupled or draw(st.booleans()) else (n,)
    width = 8 * np.dtype(dtype).itemsize
    ends, bound = (range_ends(dtype), 1000) if extreme else ((), 40)
    numbers = st.sampled_from(MODERATE + ends) | st.floats(-bound, bound, width=width)
    u, v = (draw(arrays(dtype, shape, elements=numbers)) for _ in range(2))
    if loss.coupled and loss.labels:
        classes = loss.outputs(np.array([k - 1]))[0]
        u, v = (np.resize(w, (n, classes)) for w in (u, v))
        return u, v, draw(arrays(np.intp, n, elements=st.integers(0, classes - 1)))
    if loss.labels:
        return u, v, draw(arrays(dtype, shape, elements=st.sampled_from([-1.0, 1.0])))
    least = next(low for low in (-40, 0, 2.0**-20) if _takes(loss, low))
    return u, v, draw(arrays(dtype, shape, elements=st.floats(least, 40, width=width)))


def range_ends(dtype: Any) -> tuple[float, ...]:
    """Return numbers whose exponentials are near the limits of the range of a dtype, and numbers near these limits."""
    info = np.finfo(dtype)
    largest, least = math.log(float(info.max)), math.log(float(info.smallest_subnormal))
    tops = math.ceil(largest), -math.floor(largest), math.floor(least), 10**4, -(10**4)
    return (*map(float, tops), 64 * float(info.tiny), 2.0**-26 * float(info.max), -(2.0**-26) * float(info.max))


def derivatives_are_slopes(loss: Loss, u: Array, y: Array) -> None:
    """Check that central differences of value and derivative lie between the derivatives at their ends."""
    u, y = _wide(u), _wide(y)
    entries: list[Any] = [(..., j) for j in range(u.shape[1])] if loss.coupled else [...]
    for (function, slope), entry in product(pairwise((loss.value, loss.derivative, loss.second)), entries):
        step = np.zeros_like(u)
        step[entry] = STEP
        ends = [u - step, u, u + step]
        values, slopes = [function(x, y) for x in ends], [slope(x, y)[entry] for x in ends]
        size = np.max(np.abs(values), axis=0) + _floor(loss, function, u, y)
        slack = _rounding(loss, size) / STEP + STEP / 8 * _scale(loss)
        ratio = (values[2] - values[0]) / (2 * STEP)
        assert np.all((np.min(slopes, axis=0) - slack <= ratio) & (ratio <= np.max(slopes, axis=0) + slack))


def smoothness_bounds_the_second(loss: Loss, u: Array, y: Array) -> None:
    """Check that second derivatives are at most `smoothness` (or 3 (value + floor)), and non-negative if convex."""
    eigenvalues = _eigenvalues(loss, u, y)
    slack = 16 * np.finfo(u.dtype).eps * _scale(loss)
    if not np.isfinite(loss.smoothness):
        most = 3 * (1 + slack) * (loss.value(u, y).astype(np.float64) + _floor(loss, loss.value, u, y))
        assert np.all(eigenvalues <= most)
        assert np.all(np.abs(loss.derivative(u, y)) <= most)
    assert np.all(eigenvalues <= loss.smoothness + slack)
    assert not loss.convex or np.all(eigenvalues >= -slack)


def results_are_in_the_form_of_predictions(loss: Loss, u: Array, y: Array) -> None:
    """Check the shape and dtype of values and derivatives, and that no value is below `lower_bound`."""
    value, derivative = loss.value(u, y), loss.derivative(u, y)
    assert value.shape == (u.shape[:1] if loss.coupled else u.shape)
    assert derivative.shape == u.shape
    assert value.dtype == derivative.dtype == loss.second(u, y).dtype == u.dtype
    assert np.all(value >= loss.lower_bound)


def results_are_accurate(loss: Loss, u: Array, y: Array) -> None:
    """Check value and derivative against a wider dtype, up to the rounding error that the loss declares."""
    info = np.finfo(u.dtype)
    wide = [_wide(x, np.float64 if u.dtype == np.float32 else np.longdouble) for x in (u, y)]
    for method in (loss.value, loss.derivative):
        result, exact = method(u, y), method(*wide)
        slack = loss.rounding * info.eps * (np.abs(exact) + _floor(loss, method, *wide)) + info.tiny
        fits = np.abs(exact) <= info.max
        assert np.all(np.abs(result - exact)[fits] <= slack[fits])
        assert np.all(np.isinf(result[~fits]))


def nothing_overflows(loss: Loss, u: Array, y: Array) -> None:
    """Check that finite predictions give finite derivatives, no NaN and no floating-point warning."""
    with np.errstate(all="raise", under="ignore"):
        assert not np.isnan(loss.value(u, y)).any()
        assert np.isfinite(loss.derivative(u, y)).all()
        assert np.isfinite(loss.second(u, y)).all()


def inputs_are_kept(loss: Loss, u: Array, y: Array) -> None:
    """Check that no method modifies its arguments: read-only arrays in Fortran order give the same results."""
    frozen = [np.array(x, order="F") for x in (u, y)]
    for x in frozen:
        x.flags.writeable = False
    slack = 2 * loss.rounding * np.finfo(u.dtype).eps
    for method in (loss.value, loss.derivative, loss.second):
        np.testing.assert_allclose(method(*frozen), method(u, y), rtol=slack, atol=slack * _scale(loss))


def tangents_lie_below(loss: Loss, u: Array, v: Array, y: Array) -> None:
    """Check l(v) >= l(u) + l'(u) (v - u) for a convex loss, up to rounding."""
    slope, low, high = loss.derivative(u, y) * (v - u), loss.value(u, y), loss.value(v, y)
    size = np.abs(low) + np.abs(high) + _sum(loss, np.abs(slope)) + _floor(loss, loss.value, u, y)
    assert not loss.convex or np.all(high >= low + _sum(loss, slope) - 2 * _rounding(loss, size))


def derivative_is_monotone_and_lipschitz(loss: Loss, u: Array, v: Array, y: Array) -> None:
    """Check 0 <= <l'(v) - l'(u), v - u> <= L |v - u|^2; the first inequality for convex losses only."""
    first, last, step = loss.derivative(u, y), loss.derivative(v, y), v - u
    change, square = _sum(loss, (last - first) * step), _sum(loss, step * step)
    floors = _floor(loss, loss.derivative, u, y) + _floor(loss, loss.derivative, v, y)
    size = _sum(loss, (np.abs(first) + np.abs(last) + floors) * np.abs(step)) + _scale(loss) * square
    slack = 2 * _rounding(loss, size)
    assert not np.isfinite(loss.smoothness) or np.all(change <= loss.smoothness * square + slack)
    assert not loss.convex or np.all(change >= -slack)


def smoothness_is_attained(loss: Loss) -> None:
    """Check that the largest second derivative on a fine grid is `smoothness`, or is huge if that is infinite."""
    if not np.isfinite(loss.smoothness):
        assert _eigenvalues(loss, np.linspace(-60, 60, 2), np.ones(2)).max() > 10**18
        return
    u: Array = np.linspace(-4, 4, 80_001)
    y = np.ones_like(u)
    if loss.coupled:  # two classes with all the probability
        y, u = np.array([0]), np.zeros((1, *loss.outputs(np.array([1])))) - 100
        u[:, :2] = 0
    assert abs(_eigenvalues(loss, u, y).max() / loss.smoothness - 1) <= 10**-7


Law = Callable[..., None]
#: Checks of one prediction: `LAWS` for moderate predictions, `UNIVERSAL_LAWS` for all finite ones and in float32 as
#: well.
LAWS: tuple[Law, ...] = (derivatives_are_slopes,)
UNIVERSAL_LAWS: tuple[Law, ...] = (
    smoothness_bounds_the_second,
    results_are_in_the_form_of_predictions,
    results_are_accurate,
    nothing_overflows,
    inputs_are_kept,
)
PAIR_LAWS: tuple[Law, ...] = (tangents_lie_below, derivative_is_monotone_and_lipschitz)


def _takes(loss: Loss, target: float) -> bool:
    """Return whether a loss accepts a target of this value."""
    try:
        return loss.targets(np.array([target], dtype=np.float64)) is not None
    except ValueError:
        return False


def _wide(x: Array, dtype: Any = np.longdouble) -> Array:
    """Convert floats to a wider dtype; leave class indices unchanged."""
    return x.astype(dtype) if x.dtype.kind == "f" else x


def _sum(loss: Loss, x: Array) -> Array:
    """Sum over the outputs if the loss couples them."""
    return np.asarray(x.sum(axis=-1)) if loss.coupled else x


def _floor(loss: Loss, method: Callable[..., Array], u: Array, y: Array) -> Array | float:
    """Return the size that errors are relative to, in addition to values or derivatives (`LogLinkLoss.floor`)."""
    if not isinstance(loss, LogLinkLoss):
        return 0.0
    return loss.floor(y) if method == loss.value else loss.second(u, y)


def _scale(loss: Loss) -> float:
    """Return `smoothness` if it is finite, else one."""
    return loss.smoothness if np.isfinite(loss.smoothness) else 1.0


def _rounding(loss: Loss, size: Array) -> Array:
    """Return the error bound of a sum of terms with absolute sum `size`, including underflow."""
    info = np.finfo(size.dtype)
    return np.asarray(loss.rounding * info.eps * size + info.tiny)


def _eigenvalues(loss: Loss, u: Array, y: Array) -> Array:
    second = loss.second(u, y)
    return np.linalg.eigvalsh(second) if loss.coupled else second
