"""Laws of losses and Hypothesis strategies for them, for those who add one.

A law is a function that raises `AssertionError` where a loss breaks it. `LAWS` take ``(loss, u, y)`` and `PAIR_LAWS`
take ``(loss, u, v, y)`` with two predictions for the same targets; `samples` and `pairs` draw the arguments::

    @given(samples(MyLoss()))
    def test_derivative(sample):
        derivative_is_the_slope_of_the_value(MyLoss(), *sample)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from projfree.checks import Array
from projfree.losses import Loss

_STEP = 2.0**-17
_MODERATE = (0.0, 1e-30, -1e-9, 1.0, -1.0, 36.0, -37.0)
_EXTREME = {
    np.dtype(np.float64): (0.0, 1e-300, 300.0, -709.0, 710.0, -745.0, 1e4, -1e4, 1e300, -1e300),
    np.dtype(np.float32): (0.0, 1e-30, 36.0, -88.0, 89.0, -104.0, 1e4, -1e4, 1e30, -1e30),
}


@st.composite
def samples(draw: Any, loss: Loss, dtype: Any = np.float64, extreme: bool = False) -> tuple[Array, Array]:
    """Predictions and targets that fit `loss`; `extreme` ones reach the ends of the floating-point range."""
    u, _, y = draw(pairs(loss, dtype, extreme))
    return u, y


@st.composite
def pairs(draw: Any, loss: Loss, dtype: Any = np.float64, extreme: bool = False) -> tuple[Array, Array, Array]:
    """Two predictions and the targets that go with both."""
    n, k = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    shape = (n, k) if loss.coupled or draw(st.booleans()) else (n,)
    width = 8 * np.dtype(dtype).itemsize
    special = _MODERATE + (_EXTREME[np.dtype(dtype)] if extreme else ())
    bound = 1000.0 if extreme else 40.0
    numbers = st.sampled_from(special) | st.floats(-bound, bound, width=width)
    u, v = (draw(arrays(dtype, shape, elements=numbers)) for _ in range(2))
    if loss.coupled and loss.labels:
        classes = loss.outputs(np.array([k - 1]))[0]
        u, v = (np.resize(w, (n, classes)) for w in (u, v))
        y = draw(arrays(np.intp, n, elements=st.integers(0, classes - 1)))
    elif loss.labels:
        y = draw(arrays(dtype, shape, elements=st.sampled_from([-1.0, 1.0])))
    else:
        low, high = loss.domain
        least = 2.0**-20 if low > 0.0 else max(low, -40.0)
        y = draw(arrays(dtype, shape, elements=st.floats(least, min(high, 40.0), width=width)))
    return u, v, y


def derivative_is_the_slope_of_the_value(loss: Loss, u: Array, y: Array) -> None:
    """A central difference of the value is a mean of derivatives, so it lies in their range (kinks included)."""
    u, y = _wide(u), _wide(y)
    for a in _directions(loss, u):
        ends = [u - _STEP * a, u, u + _STEP * a]
        low, _, high = values = [loss.value(x, y) for x in ends]
        slopes = [_along(loss, loss.derivative(x, y), a) for x in ends]
        size = np.max(np.abs(values), axis=0) + _floor(loss, y)
        rounding = loss.rounding * np.finfo(u.dtype).eps * size / _STEP
        _within((high - low) / (2 * _STEP), slopes, rounding + 0.01 * _STEP * _scale(loss))


def second_is_the_slope_of_the_derivative(loss: Loss, u: Array, y: Array) -> None:
    """The same one order higher, for every column of the second derivative."""
    u, y = _wide(u), _wide(y)
    for a in _directions(loss, u):
        ends = [u - _STEP * a, u, u + _STEP * a]
        low, _, high = slopes = [loss.derivative(x, y) for x in ends]
        seconds = [np.einsum("nij,nj->ni", loss.second(x, y), a) if loss.coupled else loss.second(x, y) for x in ends]
        # Where the loss has a floor, a derivative may be that of a prediction which is moved by rounding.
        size = np.max(np.abs(slopes), axis=0) + (np.max(seconds, axis=0) if loss.floor(y) is not None else 0.0)
        rounding = loss.rounding * np.finfo(u.dtype).eps * size / _STEP
        _within((high - low) / (2 * _STEP), seconds, rounding + 1e-6 * _scale(loss))


def majorant_times_is_the_majorant_applied(loss: Loss, u: Array, y: Array) -> None:
    """`majorant_times(u, y, a)` is the majorant times a, whichever way it is computed."""
    a, bend = np.cos(u), loss.majorant(u, y)
    expected = np.einsum("nij,nj->ni", bend, a) if loss.coupled else bend * a
    found = loss.majorant_times(u, y, a)
    slack = 64 * np.finfo(u.dtype).eps
    assert np.allclose(found, expected, rtol=slack, atol=slack * _scale(loss))


def diagonal_majorant_bounds_the_majorant(loss: Loss, u: Array, y: Array) -> None:
    """The diagonal majorant minus the majorant has no negative eigenvalue, up to rounding."""
    bend, diagonal = loss.majorant(u, y), loss.diagonal_majorant(u, y)
    slack = 64 * np.finfo(u.dtype).eps * _scale(loss)
    if loss.coupled:
        rest = diagonal[:, :, None] * np.eye(diagonal.shape[1]) - bend
        assert np.all(np.linalg.eigvalsh(rest) >= -slack)
    else:
        assert np.all(diagonal >= bend - slack)


def summed_second_is_the_sum(loss: Loss, u: Array, y: Array) -> None:
    """`summed_second` is the weighted sum of `second` over rows, up to rounding of the largest that it can be."""
    s = np.linspace(0.0, 1.0, len(u))
    expected = np.tensordot(s, loss.second(u, y), axes=1)
    slack = 64.0 * float(np.finfo(u.dtype).eps) * (_scale(loss) * len(u) + np.abs(expected))
    assert np.all(np.abs(loss.summed_second(u, y, s) - expected) <= slack)


def smoothness_bounds_the_second(loss: Loss, u: Array, y: Array) -> None:
    """No eigenvalue of the second derivative exceeds `smoothness`, and none is negative if the loss is convex.

    Where there is no largest one, value and floor bound it, and the derivative, instead.
    """
    eigenvalues = _eigenvalues(loss, u, y)
    slack = 16 * np.finfo(u.dtype).eps * _scale(loss)
    if not np.isfinite(loss.smoothness):
        most = 3.0 * (1.0 + slack) * (loss.value(u, y).astype(np.float64) + _floor(loss, y))
        assert np.all(eigenvalues <= most)
        assert np.all(np.abs(loss.derivative(u, y)) <= most)
    assert np.all(eigenvalues <= loss.smoothness + slack)
    assert not loss.convex or np.all(eigenvalues >= -slack)
    assert not loss.quadratic or np.all(eigenvalues == loss.smoothness)


def value_and_derivative_is_both(loss: Loss, u: Array, y: Array) -> None:
    """The joint call gives what the single ones give, with their shapes and dtype."""
    value, derivative = loss.value_and_derivative(u, y)
    assert value.shape == (u.shape[:1] if loss.coupled else u.shape)
    assert derivative.shape == u.shape
    assert value.dtype == derivative.dtype == loss.second(u, y).dtype == u.dtype
    np.testing.assert_array_equal(value, loss.value(u, y))
    np.testing.assert_array_equal(derivative, loss.derivative(u, y))


def results_are_accurate(loss: Loss, u: Array, y: Array) -> None:
    """Value and derivative agree with the next wider type to `rounding` eps relative to their own size.

    For a value this size includes the `floor`, where there is one, and for the derivative the second derivative.
    """
    wide = np.float64 if u.dtype == np.float32 else np.longdouble
    info = np.finfo(u.dtype)
    u_wide, y_wide = _wide(u, wide), _wide(y, wide)
    for method in (loss.value, loss.derivative):
        found, exact = method(u, y), method(u_wide, y_wide)
        size = np.abs(exact)
        if loss.floor(y) is not None:
            size = size + (_floor(loss, y_wide) if method == loss.value else loss.second(u_wide, y_wide))
        fits = np.abs(exact) <= info.max
        error = np.abs(found[fits] - exact[fits])
        assert np.all(error <= loss.rounding * info.eps * size[fits] + info.tiny), (method, found, exact)
        assert np.all(np.isinf(found[~fits]))


def nothing_overflows(loss: Loss, u: Array, y: Array) -> None:
    """No floating-point warning, no NaN and finite derivatives, as far as predictions are finite."""
    with np.errstate(all="raise", under="ignore"):
        value, derivative = loss.value_and_derivative(u, y)
        assert not np.isnan(value).any()
        assert np.isfinite(derivative).all()
        assert np.isfinite(loss.second(u, y)).all()


def inputs_are_kept(loss: Loss, u: Array, y: Array) -> None:
    """No method writes to its arguments: read-only ones, in Fortran order, give the same results."""
    frozen = [np.array(x, order="F") for x in (u, y)]
    for x in frozen:
        x.flags.writeable = False
    slack = 2 * loss.rounding * np.finfo(u.dtype).eps
    for found, expected in zip(_everything(loss, *frozen), _everything(loss, u, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=slack, atol=slack * _scale(loss))


def tangents_lie_below(loss: Loss, u: Array, v: Array, y: Array) -> None:
    """l(v) >= l(u) + l'(u) (v - u) for a convex loss, up to rounding."""
    slope = loss.derivative(u, y) * (v - u)
    rise = slope.sum(axis=-1) if loss.coupled else slope
    size = np.abs(slope).sum(axis=-1) if loss.coupled else np.abs(slope)
    low, high = loss.value(u, y), loss.value(v, y)
    slack = _slack(loss, np.abs(low) + np.abs(high) + size + _floor(loss, y))
    assert not loss.convex or np.all(high >= low + rise - slack)


def derivative_is_monotone_and_lipschitz(loss: Loss, u: Array, v: Array, y: Array) -> None:
    """0 <= <l'(v) - l'(u), v - u> <= L |v - u|^2; the first inequality for a convex loss only."""
    first, last, step = loss.derivative(u, y), loss.derivative(v, y), v - u
    change, square = (last - first) * step, step * step
    size = (np.abs(first) + np.abs(last)) * np.abs(step)
    if loss.coupled:
        change, square, size = (x.sum(axis=-1) for x in (change, square, size))
    slack = _slack(loss, size + _scale(loss) * square)
    if loss.floor(y) is not None:  # derivatives may be those of predictions that are moved by rounding
        slack = slack + _slack(loss, (loss.second(u, y) + loss.second(v, y)) * np.abs(step))
    if np.isfinite(loss.smoothness):
        assert np.all(change <= loss.smoothness * square + slack)
    assert not loss.convex or np.all(change >= -slack)


def smoothness_is_attained(loss: Loss, tol: float = 1e-7) -> None:
    """`smoothness` is the smallest possible constant: a fine grid comes within `tol` of it, relatively.

    An infinite one is passed by any number, one after the other.
    """
    if not np.isfinite(loss.smoothness):
        far, ones = np.array([-60.0, 60.0]), np.ones(2)
        assert _eigenvalues(loss, far, ones).max() > 1e18
        return
    grid = np.linspace(-4, 4, 80_001)
    if loss.coupled:  # two classes that share all probability, the others far below
        y = np.array([0])
        u = np.full((1, *loss.outputs(np.array([1]))), -100.0)
        u[:, :2] = 0
    else:
        u, y = grid, np.ones_like(grid)
    largest = _eigenvalues(loss, u, y).max()
    assert abs(largest - loss.smoothness) <= tol * loss.smoothness, (largest, loss.smoothness)


#: Laws of one prediction, for moderate u; the second group holds at every finite u and in float32 as well.
LAWS: tuple[Callable[[Loss, Array, Array], None], ...] = (
    derivative_is_the_slope_of_the_value,
    second_is_the_slope_of_the_derivative,
    majorant_times_is_the_majorant_applied,
    diagonal_majorant_bounds_the_majorant,
    summed_second_is_the_sum,
)
UNIVERSAL_LAWS: tuple[Callable[[Loss, Array, Array], None], ...] = (
    smoothness_bounds_the_second,
    value_and_derivative_is_both,
    results_are_accurate,
    nothing_overflows,
    inputs_are_kept,
)
PAIR_LAWS: tuple[Callable[[Loss, Array, Array, Array], None], ...] = (
    tangents_lie_below,
    derivative_is_monotone_and_lipschitz,
)


def _wide(x: Array, dtype: Any = np.longdouble) -> Array:
    """Reals in more digits; class indices as they are."""
    return x.astype(dtype) if x.dtype.kind == "f" else x


def _directions(loss: Loss, u: Array) -> Iterator[Array]:
    """All entries at once where they do not interact, else one output after the other."""
    if not loss.coupled:
        yield np.ones_like(u)
        return
    for row in np.eye(u.shape[1], dtype=u.dtype):
        yield np.tile(row, (len(u), 1))


def _along(loss: Loss, x: Array, a: Array) -> Array:
    return np.asarray((x * a).sum(axis=-1)) if loss.coupled else x


def _within(found: Array, ends: list[Array], slack: Array) -> None:
    low, high = np.min(ends, axis=0) - slack, np.max(ends, axis=0) + slack
    assert np.all((low <= found) & (found <= high)), (found, ends)


def _floor(loss: Loss, y: Array) -> Array | float:
    """The floor of the errors of values, zero where there is none."""
    floor = loss.floor(y)
    return 0.0 if floor is None else floor


def _scale(loss: Loss) -> float:
    """The size of second derivatives, where there is a largest one."""
    return loss.smoothness if np.isfinite(loss.smoothness) else 1.0


def _slack(loss: Loss, size: Array) -> Array:
    """Rounding of a sum of terms whose sizes add up to `size`, and of what underflows."""
    info = np.finfo(size.dtype)
    return np.asarray(2 * loss.rounding * info.eps * size + info.tiny)


def _eigenvalues(loss: Loss, u: Array, y: Array) -> Array:
    second = loss.second(u, y)
    return np.linalg.eigvalsh(second) if loss.coupled else second


def _everything(loss: Loss, u: Array, y: Array) -> tuple[Array, ...]:
    both = loss.value_and_derivative(u, y)
    return (*both, loss.value(u, y), loss.derivative(u, y), loss.second(u, y))
