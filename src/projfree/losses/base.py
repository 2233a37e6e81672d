"""What a loss is: a function of one sample's prediction and target, knowing neither data nor set."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from projfree.checks import Array, all_finite, first_index, plain_array, real_array, shown

_ENCODE = "encode the classes first, e.g. with `names, y = np.unique(y, return_inverse=True)`"


class Loss(ABC):
    r"""A smooth function :math:`\ell(u, y)` of a prediction :math:`u \in R^k` and a target.

    ``u`` has shape ``(n,)`` or ``(n, k)``. A loss that acts on each entry by itself returns arrays of the shape
    of ``u`` and is summed over outputs by the objective; one that couples the outputs (`coupled`) returns one
    value a row. Sample weights never appear here. Inputs are finite and never modified; results have the dtype
    that NumPy gives to ``u`` and ``y`` together (float32 with float32 stays float32), and that of ``u`` where
    targets are class indices.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Loss, Squared
    >>> loss, u, y = Squared(), np.array([1.0, 4.0]), np.array([0.0, 2.0])
    >>> isinstance(loss, Loss), loss.value(u, y), loss.derivative(u, y)
    (True, array([1., 4.]), array([2., 4.]))
    """

    #: Whether the loss is convex in ``u``.
    convex: bool = True
    #: Whether the outputs of one row are coupled.
    coupled: bool = False
    #: Whether targets are class labels, so that an intercept needs more than one class.
    labels: bool = False
    #: A number that no value is below.
    lower_bound: float = -math.inf
    #: Relative error of values and derivatives in units of the dtype's eps, for the ``u`` and ``y`` held in memory. The
    #: largest count is that of softmax (26, see there), where NumPy's exp and log1p err by at most 4 ulp. The absolute
    #: error of a result below the smallest normal number is at most that number.
    rounding: float = 32.0
    #: ``kernel(parameters, u, y, value, slope)``, a static method that numba compiles for large tables, and which may
    #: call functions that numba compiled. All arrays are flat float64: ``parameters`` are the numbers among the fields
    #: of the loss, a dataclass; ``u``, ``slope`` and the losses ``value`` have k entries a row, ``value`` one for a
    #: coupled loss, and ``y`` has k or, for class indices, one.
    kernel: ClassVar[Callable[..., None] | None] = None

    def __init_subclass__(cls, **settings: Any) -> None:
        """Inherit no constant and no kernel of the parent where a subclass of a loss is another function."""
        super().__init_subclass__(**settings)
        if any(name in vars(cls) for name in ("value", "derivative", "second")):
            for name in ("lower_bound", "rounding", "kernel", "smoothing_error", "lipschitz"):
                first = next((base for base in reversed(cls.__mro__) if name in vars(base)), cls)
                if first is not cls and name not in vars(cls):
                    setattr(cls, name, vars(first)[name])

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """The smallest constant that bounds the second derivative (largest eigenvalue) everywhere.

        A loss that has none derives from `LogLinkLoss`.
        """

    @abstractmethod
    def value(self, u: Array, y: Array) -> Array:
        """The loss of each entry, or of each row where the outputs are coupled, accurate relative to its size."""

    @abstractmethod
    def derivative(self, u: Array, y: Array) -> Array:
        """The derivative in ``u``, of the shape of ``u``, accurate relative to its own size."""

    @abstractmethod
    def second(self, u: Array, y: Array) -> Array:
        """The second derivative: of the shape of ``u``, or ``(n, k, k)`` where the outputs are coupled."""

    def mean(self, u: Array) -> Array:
        """The mean of the target that the prediction ``u`` stands for, for losses with a link."""
        return u

    def targets(self, y: Array) -> Array:
        """The targets in the form that the other methods take, or an error that says what is wrong with them."""
        return signs(y) if self.labels else reals(y)

    def outputs(self, y: Array) -> tuple[int, ...]:
        """The trailing shape of ``u`` that goes with the targets: ``()`` or ``(k,)``."""
        return tuple(int(k) for k in np.shape(y)[1:])


class LogLinkLoss(Loss):
    """A loss whose mean is the exponential of the prediction, and whose second derivative has no bound.

    Step rules that need a largest curvature refuse it. The second derivative and the size of the first are at most
    3 (value + floor): what rounding does to sums is bounded by these.
    """

    smoothness = math.inf

    @abstractmethod
    def floor(self, y: Array) -> Array:
        """What the error of a value is relative to besides the value, which is a difference of larger terms.

        A value errs by at most `rounding` eps times the sum of value and floor, and a derivative is, up to `rounding`
        eps times itself, that of a prediction which differs by at most `rounding` eps.
        """

    def mean(self, u: Array) -> Array:
        return np.exp(u)


class SmoothedLoss(Loss):
    """A smooth loss below one with corners, whose values are reported."""

    #: The exact loss exceeds this one by at most so much, and its derivative is at most so large.
    smoothing_error: float = 0.0
    lipschitz: float = math.inf

    @abstractmethod
    def exact(self, u: Array, y: Array) -> Array:
        """The values of the loss that this one is a smoothed form of."""


def reals(y: Any) -> Array:
    """`y` as finite floats; integers and booleans become float64."""
    return all_finite("y", real_array("y", y))


def within(y: Any, low: float, high: float, rule: str) -> Array:
    """`y` as finite floats of an interval, or a sentence that states the rule."""
    out = reals(y)
    wrong = (out < low) | (out > high)
    if wrong.any():
        value = out[at := first_index(wrong)]
        way = "rescale them" if value > high or 0 < value < low else "drop or move such rows, or use another loss"
        raise ValueError(f"`y` must lie between {low:g} and {high:g}, got {shown(value)} at index {at}: {rule}; {way}.")
    return out


def signs(y: Any) -> Array:
    """`y` as floats that are all -1 or +1, or a sentence on how to get there."""
    out = plain_array("y", y)
    if out.dtype.kind not in "iubf":
        raise TypeError(
            f"`y` must hold the labels -1 and +1, got dtype {out.dtype}; "
            "encode them first, e.g. with `np.where(y == positive, 1, -1)`."
        )
    out = real_array("y", out)
    wrong = np.abs(out) != 1
    if wrong.any():
        value = out[at := first_index(wrong)]
        way = "`2 * y - 1`" if value == 0 else "`np.where(y == positive, 1, -1)`"
        kind = "0/1 labels" if value == 0 else "other labels"
        raise ValueError(
            f"`y` must hold the labels -1 and +1, got {shown(value)} at index {at}; encode {kind} as {way}."
        )
    return out


def indices(y: Any, classes: int | None) -> Array:
    """`y` as integers 0, ..., classes - 1; without `classes` the largest index decides."""
    out = plain_array("y", y)
    if out.dtype.kind not in "iubf":
        raise TypeError(f"`y` must hold class indices 0, ..., k - 1, got dtype {out.dtype}; {_ENCODE}.")
    if out.ndim != 1:
        raise ValueError(
            f"`y` must be one class index a sample, got an array of shape {out.shape}; "
            "turn one-hot rows into indices with `y.argmax(axis=1)`."
        )
    # Written so that NaN, which compares false with everything, counts as wrong. No model has 2^31 outputs.
    wrong = ~((out >= 0) & (out < (2**31 if classes is None else classes)))
    if out.dtype.kind == "f":
        wrong |= np.floor(out) != out
    if wrong.any():
        value = out[at := first_index(wrong)]
        last = "k" if classes is None else classes
        raise ValueError(
            f"`y` must hold class indices 0, ..., {last} - 1, got {shown(value)} at index {at}; {_ENCODE}."
        )
    if classes is None and int(out.max(initial=0)) == 0:
        raise ValueError(
            "`y` must hold at least two classes, got the index 0 only; "
            "give `Softmax(classes=...)` if this is a part of the data."
        )
    return out.astype(np.intp, copy=False)
