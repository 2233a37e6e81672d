"""Base classes of losses, which are functions of the prediction and the target, and validation of targets."""

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

    ``u`` has shape ``(n,)`` or ``(n, k)``. An elementwise loss returns arrays of the shape of ``u``, and the
    objective sums over the outputs; a loss that couples the outputs (`coupled`) returns one value per row. Losses do
    not use sample weights. Inputs are finite and are not modified; results have the result type of ``u`` and ``y``
    in NumPy (float32 if both are float32), or the dtype of ``u`` if targets are class indices.

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
    #: Whether the loss couples the outputs of a row.
    coupled: bool = False
    #: Whether targets are class labels, so that an intercept needs more than one class.
    labels: bool = False
    #: Lower bound on all values.
    lower_bound: float = -math.inf
    #: Upper bound on the relative error of values and derivatives, in units of eps of the dtype, for given ``u`` and
    #: ``y``. The largest is that of softmax (26), if exp and log1p of NumPy have errors of at most 4 ulp. The absolute
    #: error of a result below the smallest normal number is at most that number.
    rounding: float = 32.0
    #: ``kernel(parameters, u, y, value, slope)``: static method that numba compiles for large tables. All arguments are
    #: flat float64 arrays. ``parameters``: numeric fields of the dataclass; ``u``, ``slope``: k entries per row;
    #: ``value``: k entries per row, or one for a coupled loss; ``y``: k entries per row, or one class index. It may
    #: call other compiled functions.
    kernel: ClassVar[Callable[..., None] | None] = None

    def __init_subclass__(cls, **settings: Any) -> None:
        """Reset the constants and the kernel if a subclass overrides the loss: those of its parent do not apply."""
        super().__init_subclass__(**settings)
        if any(name in vars(cls) for name in ("value", "derivative", "second")):
            for name in ("lower_bound", "rounding", "kernel", "smoothing_error", "lipschitz"):
                first = next((base for base in reversed(cls.__mro__) if name in vars(base)), cls)
                if first is not cls and name not in vars(cls):
                    setattr(cls, name, vars(first)[name])

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Smallest upper bound on the second derivative (on its largest eigenvalue).

        A loss without such a bound derives from `LogLinkLoss`.
        """

    @abstractmethod
    def value(self, u: Array, y: Array) -> Array:
        """Return the loss of each entry, or of each row for a coupled loss, with high relative accuracy."""

    @abstractmethod
    def derivative(self, u: Array, y: Array) -> Array:
        """Return the derivative in ``u``, of the shape of ``u``, with high relative accuracy."""

    @abstractmethod
    def second(self, u: Array, y: Array) -> Array:
        """Return the second derivative in ``u``: of the shape of ``u``, or ``(n, k, k)`` for a coupled loss."""

    def mean(self, u: Array) -> Array:
        """Return the expected target for the prediction ``u`` (the inverse link); the identity by default."""
        return u

    def targets(self, y: Array) -> Array:
        """Validate the targets and return them in the form that the other methods use."""
        return signs(y) if self.labels else reals(y)

    def outputs(self, y: Array) -> tuple[int, ...]:
        """Return the trailing shape of ``u`` for these targets: ``()`` or ``(k,)``."""
        return tuple(int(k) for k in np.shape(y)[1:])


class LogLinkLoss(Loss):
    """A loss with log link, whose expected target is ``exp(u)`` and whose second derivative is unbounded.

    Step rules that need a smoothness constant raise an error. The second derivative and the absolute first derivative
    are at most 3 (value + `floor`); the bounds on rounding errors of sums use this.
    """

    smoothness = math.inf

    @abstractmethod
    def floor(self, y: Array) -> Array:
        """Return the term of the error bound that accounts for cancellation in the value.

        The error of a value is at most `rounding` eps (value + floor). A derivative is, up to a relative error of
        `rounding` eps, the exact one at a prediction that differs by at most `rounding` eps.
        """

    def mean(self, u: Array) -> Array:
        return np.exp(u)


class SmoothedLoss(Loss):
    """A smooth lower bound of a nonsmooth (exact) loss; runs report the values of the exact loss."""

    #: Upper bounds on the exact loss minus this one, and on the absolute derivative of the exact loss.
    smoothing_error: float = 0.0
    lipschitz: float = math.inf

    @abstractmethod
    def exact(self, u: Array, y: Array) -> Array:
        """Return the values of the exact loss."""


def reals(y: Any) -> Array:
    """Return `y` as finite floats; integers and booleans become float64."""
    return all_finite("y", real_array("y", y))


def within(y: Any, low: float, high: float, rule: str) -> Array:
    """Return `y` as finite floats; raise ValueError with the text ``rule`` if any is not in ``[low, high]``."""
    out = reals(y)
    wrong = (out < low) | (out > high)
    if wrong.any():
        value = out[at := first_index(wrong)]
        way = "rescale them" if value > high or 0 < value < low else "drop or move such rows, or use another loss"
        raise ValueError(f"`y` must lie between {low:g} and {high:g}, got {shown(value)} at index {at}: {rule}; {way}.")
    return out


def signs(y: Any) -> Array:
    """Return `y` as floats; raise ValueError if any is not -1 or +1."""
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
    """Return `y` as integers 0, ..., classes - 1; by default, the largest index determines `classes`."""
    out = plain_array("y", y)
    if out.dtype.kind not in "iubf":
        raise TypeError(f"`y` must hold class indices 0, ..., k - 1, got dtype {out.dtype}; {_ENCODE}.")
    if out.ndim != 1:
        raise ValueError(
            f"`y` must be one class index a sample, got an array of shape {out.shape}; "
            "turn one-hot rows into indices with `y.argmax(axis=1)`."
        )
    # The negation also rejects NaN, for which every comparison is false. No model has 2^31 outputs.
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
