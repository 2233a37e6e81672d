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
from projfree.losses.base import LogLinkLoss, Loss

#: The step of difference quotients: a power of two, about the root of the rounding of extended precision.
STEP = 2.0**-17
#: Predictions of special interest for both types, and the ends of the range of each.
MODERATE = (0.0, 1e-30, -1e-9, 1.0, -1.0, 36.0, -37.0)
EXTREME_DOUBLE = (1e-300, 300.0, -709.0, 710.0, -745.0, 1e4, -1e4, 1e300, -1e300)
EXTREME_SINGLE = (-88.0, 89.0, -104.0, 1e4, -1e4, 1e30, -1e30)


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
    ends, bound = (EXTREME_SINGLE if width == 32 else EXTREME_DOUBLE, 1000) if extreme else ((), 40)
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


def derivative_is_the_slope_of_the_value(loss: Loss, u: Array, y: Array) -> None:
    """A central difference of the value is a mean of derivatives, so it lies in their range (kinks included)."""

    def slope(u: Array, y: Array, a: Array) -> Array:
        return _sum(loss, loss.derivative(u, y) * a)

    _check_slope(loss, u, y, loss.value, slope, _floor(loss, _wide(y)))


def second_is_the_slope_of_the_derivative(loss: Loss, u: Array, y: Array) -> None:
    """The same one order higher, for every column of the second derivative."""

    def slope(u: Array, y: Array, a: Array) -> Array:
        return np.einsum("nij,nj->ni", loss.second(u, y), a) if loss.coupled else loss.second(u, y)

    # Where the loss has a floor, a derivative may be that of a prediction which is moved by rounding.
    moved = loss.second(_wide(u), _wide(y)) if isinstance(loss, LogLinkLoss) else 0.0
    _check_slope(loss, u, y, loss.derivative, slope, moved)


def _check_slope(
    loss: Loss, u: Array, y: Array, function: Callable[..., Array], slope: Callable[..., Array], floor: Array | float
) -> None:
    """Whether differences of a function lie between its slopes at their ends, up to rounding and curvature."""
    u, y = _wide(u), _wide(y)
    for a in _directions(loss, u):
        ends = [u - STEP * a, u, u + STEP * a]
        low, _, high = values = [function(x, y) for x in ends]
        slopes = [slope(x, y, a) for x in ends]
        slack = _rounding(loss, np.max(np.abs(values), axis=0) + floor) / STEP + STEP / 8 * _scale(loss)
        found = (high - low) / (2 * STEP)
        least, most = np.min(slopes, axis=0) - slack, np.max(slopes, axis=0) + slack
        assert np.all((least <= found) & (found <= most)), (found, slopes)


def smoothness_bounds_the_second(loss: Loss, u: Array, y: Array) -> None:
    """No eigenvalue of the second derivative exceeds `smoothness`, and none is negative if the loss is convex.

    Where there is no largest one, value and floor bound it, and the derivative, instead.
    """
    eigenvalues = _eigenvalues(loss, u, y)
    slack = 16 * np.finfo(u.dtype).eps * _scale(loss)
    if not np.isfinite(loss.smoothness):
        most = 3 * (1 + slack) * (loss.value(u, y).astype(np.float64) + _floor(loss, y))
        assert np.all(eigenvalues <= most)
        assert np.all(np.abs(loss.derivative(u, y)) <= most)
    assert np.all(eigenvalues <= loss.smoothness + slack)
    assert not loss.convex or np.all(eigenvalues >= -slack)


def results_are_in_the_form_of_predictions(loss: Loss, u: Array, y: Array) -> None:
    """Values and derivatives have the shape and the dtype of the predictions, and none is below `lower_bound`."""
    value, derivative = loss.value(u, y), loss.derivative(u, y)
    assert value.shape == (u.shape[:1] if loss.coupled else u.shape)
    assert derivative.shape == u.shape
    assert value.dtype == derivative.dtype == loss.second(u, y).dtype == u.dtype
    assert np.all(value >= loss.lower_bound)


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
        if isinstance(loss, LogLinkLoss):
            size = size + (_floor(loss, y_wide) if method == loss.value else loss.second(u_wide, y_wide))
        fits = np.abs(exact) <= info.max
        error = np.abs(found[fits] - exact[fits])
        assert np.all(error <= loss.rounding * info.eps * size[fits] + info.tiny), (method, found, exact)
        assert np.all(np.isinf(found[~fits]))


def nothing_overflows(loss: Loss, u: Array, y: Array) -> None:
    """No floating-point warning, no NaN and finite derivatives, as far as predictions are finite."""
    with np.errstate(all="raise", under="ignore"):
        value, derivative = loss.value(u, y), loss.derivative(u, y)
        assert not np.isnan(value).any()
        assert np.isfinite(derivative).all()
        assert np.isfinite(loss.second(u, y)).all()


def inputs_are_kept(loss: Loss, u: Array, y: Array) -> None:
    """No method writes to its arguments: read-only ones, in Fortran order, give the same results."""
    frozen = [np.array(x, order="F") for x in (u, y)]
    for x in frozen:
        x.flags.writeable = False
    slack = 2 * loss.rounding * np.finfo(u.dtype).eps
    for method in (loss.value, loss.derivative, loss.second):
        np.testing.assert_allclose(method(*frozen), method(u, y), rtol=slack, atol=slack * _scale(loss))


def tangents_lie_below(loss: Loss, u: Array, v: Array, y: Array) -> None:
    """l(v) >= l(u) + l'(u) (v - u) for a convex loss, up to rounding."""
    slope, low, high = loss.derivative(u, y) * (v - u), loss.value(u, y), loss.value(v, y)
    size = np.abs(low) + np.abs(high) + _sum(loss, np.abs(slope)) + _floor(loss, y)
    assert not loss.convex or np.all(high >= low + _sum(loss, slope) - 2 * _rounding(loss, size))


def derivative_is_monotone_and_lipschitz(loss: Loss, u: Array, v: Array, y: Array) -> None:
    """0 <= <l'(v) - l'(u), v - u> <= L |v - u|^2; the first inequality for a convex loss only."""
    first, last, step = loss.derivative(u, y), loss.derivative(v, y), v - u
    change, square = _sum(loss, (last - first) * step), _sum(loss, step * step)
    size = _sum(loss, (np.abs(first) + np.abs(last)) * np.abs(step)) + _scale(loss) * square
    if isinstance(loss, LogLinkLoss):  # derivatives may be those of predictions that are moved by rounding
        size = size + (loss.second(u, y) + loss.second(v, y)) * np.abs(step)
    slack = 2 * _rounding(loss, size)
    if np.isfinite(loss.smoothness):
        assert np.all(change <= loss.smoothness * square + slack)
    assert not loss.convex or np.all(change >= -slack)


def smoothness_is_attained(loss: Loss) -> None:
    """`smoothness` is the smallest possible constant: on a fine grid the second derivative comes close to it.

    An infinite one is passed by any number, one after the other.
    """
    if not np.isfinite(loss.smoothness):
        assert _eigenvalues(loss, np.linspace(-60, 60, 2), np.ones(2)).max() > 10**18
        return
    u: Array = np.linspace(-4, 4, 80_001)
    y = np.ones_like(u)
    if loss.coupled:  # two classes that share all probability, the others far below
        y, u = np.array([0]), np.zeros((1, *loss.outputs(np.array([1])))) - 100
        u[:, :2] = 0
    assert abs(_eigenvalues(loss, u, y).max() / loss.smoothness - 1) <= 10**-7


#: Laws of one prediction, for moderate u; the second group holds at every finite u and in float32 as well.
LAWS: tuple[Callable[[Loss, Array, Array], None], ...] = (
    derivative_is_the_slope_of_the_value,
    second_is_the_slope_of_the_derivative,
)
UNIVERSAL_LAWS: tuple[Callable[[Loss, Array, Array], None], ...] = (
    smoothness_bounds_the_second,
    results_are_in_the_form_of_predictions,
    results_are_accurate,
    nothing_overflows,
    inputs_are_kept,
)
PAIR_LAWS: tuple[Callable[[Loss, Array, Array, Array], None], ...] = (
    tangents_lie_below,
    derivative_is_monotone_and_lipschitz,
)


def _takes(loss: Loss, target: float) -> bool:
    """Whether a loss takes a target of this size."""
    try:
        loss.targets(np.array([target], dtype=np.float64))
    except ValueError:
        return False
    return True


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


def _sum(loss: Loss, x: Array) -> Array:
    """The sum over the outputs of a loss that couples them."""
    return np.asarray(x.sum(axis=-1)) if loss.coupled else x


def _floor(loss: Loss, y: Array) -> Array | float:
    """The floor of the errors of values, zero where there is none."""
    return loss.floor(y) if isinstance(loss, LogLinkLoss) else 0.0


def _scale(loss: Loss) -> float:
    """The size of second derivatives, where there is a largest one."""
    return loss.smoothness if np.isfinite(loss.smoothness) else 1.0


def _rounding(loss: Loss, size: Array) -> Array:
    """Rounding of a sum of terms whose sizes add up to `size`, and of what underflows."""
    info = np.finfo(size.dtype)
    return np.asarray(loss.rounding * info.eps * size + info.tiny)


def _eigenvalues(loss: Loss, u: Array, y: Array) -> Array:
    second = loss.second(u, y)
    return np.linalg.eigvalsh(second) if loss.coupled else second
