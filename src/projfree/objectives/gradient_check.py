"""Whether a gradient is that of its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.objectives.base import SmoothFunction
from projfree.objectives.blackbox import BlackBox

#: Entries of a gradient that are looked at, drawn if there are more.
MOST = 100
#: A difference counts as wrong from so many times what rounding and the length of the steps explain.
FACTOR, RELATIVE = 10.0, 1e-6


@dataclass(frozen=True)
class GradientCheck:
    """What `check_gradient` found about the entry that is furthest from its difference quotient.

    Attributes
    ----------
    ok : bool
        Whether all entries agree as far as differences can tell.
    index : tuple of int
        The place of the worst entry.
    found, expected : float
        The entry there, and the difference quotient.
    error : float
        How far they are apart, relatively to the largest entry of the gradient.
    noise : float
        What rounding and the length of the steps explain of it.
    """

    ok: bool
    index: tuple[int, ...]
    found: float
    expected: float
    error: float
    noise: float

    def __str__(self) -> str:
        if self.ok:
            return f"the gradient agrees with differences of the value, to {self.error:.1e} of its largest entry."
        return (
            f"the gradient is wrong: its entry {self.index} is {self.found:.6g}, and differences of the value give "
            f"{self.expected:.6g}; they are {self.error:.1e} of the largest entry apart, of which {self.noise:.1e} can "
            "be rounding."
        )


def check_gradient(f: SmoothFunction | Callable[[Array], tuple[Any, Any]], w: Any, seed: int = 0) -> GradientCheck:
    """Compare the gradient of a function at a point with central differences of its value.

    Parameters
    ----------
    f : SmoothFunction or callable
        A `BlackBox` or another objective, or the function ``fun(w) -> (value, gradient)`` itself.
    w : array
        The point. One at random is better than zero, where many faults do not show.
    seed : int
        Draws 100 entries where the gradient has more. Each takes four calls.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import check_gradient
    >>> bool(check_gradient(lambda w: (w @ w, 2 * w), np.array([1.0, 2.0])).ok)
    True
    >>> print(check_gradient(lambda w: (w @ w, w), np.array([1.0, 2.0])))  # doctest: +ELLIPSIS
    the gradient is wrong: its entry (1,) is 2, and differences of the value give 4; ...
    """
    w = np.asarray(w, dtype=np.float64)
    g: SmoothFunction = f if isinstance(f, SmoothFunction) else BlackBox(f, w.shape, convex=False)
    here = g.evaluate(g.point(w))
    gradient, eps = here.slope.gradient, max(float(np.finfo(float).eps), getattr(g, "precision", 0.0))
    scale = max(float(np.abs(gradient).max(initial=0.0)), 1e-300)
    places = np.arange(w.size)
    if w.size > MOST:
        places = np.sort(np.random.default_rng(seed).choice(w.size, MOST, replace=False))
    worst: tuple[float, GradientCheck] | None = None
    for place in places:
        index = tuple(int(i) for i in np.unravel_index(place, w.shape))
        quotient, noise = _quotient(g, w, index, eps, abs(here.value))
        allowed = FACTOR * noise + RELATIVE * scale
        apart, entry = abs(quotient - float(gradient[index])), float(gradient[index])
        one = GradientCheck(apart <= allowed, index, entry, quotient, apart / scale, noise / scale)
        if worst is None or apart / allowed > worst[0]:
            worst = apart / allowed, one
    assert worst is not None
    return worst[1]


def _quotient(f: SmoothFunction, w: Array, index: tuple[int, ...], eps: float, size: float) -> tuple[float, float]:
    """A central difference in one entry, and how far off it may be."""
    h = eps ** (1.0 / 3.0) * max(1.0, abs(float(w[index])))
    found = []
    for step in (h, 2.0 * h):
        ends = []
        for sign in (1.0, -1.0):
            moved = w.copy()
            moved[index] += sign * step
            ends.append(f.value(f.point(moved)))
        found.append((ends[0] - ends[1]) / (2.0 * step))
    return found[0], eps * (size + abs(ends[0]) + abs(ends[1])) / h + abs(found[1] - found[0])
