"""The compiled forms of losses: plain Python loops that a loss registers in its own file, next to its NumPy form.

Nothing here imports a compiler. A form is looked up by the exact type of the loss, so that a subclass, which may
compute something else, never inherits one. A loss from outside the package registers its form in the same way::

    def _tile(parameters, u, y, value, slope):
        for i in range(len(u)):
            r = u[i] - y[i]
            value[i] = parameters[0] * r**4
            slope[i] = 4.0 * parameters[0] * r**3

    register(Quartic, tile=_tile, parameters=lambda loss: (loss.factor,))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Form(NamedTuple):
    """What a compiler needs to know about a loss.

    Attributes
    ----------
    tile : callable
        ``tile(parameters, u, y, value, slope)`` writes the losses and derivatives of some predictions. All arrays are
        flat float64, k predictions a row. ``value`` has k entries a row too, one for a coupled loss, and ``y`` has k
        or, for labels, one. A function of a module in what numba compiles, as are the functions that it calls.
    parameters : callable
        From the loss to the numbers in ``parameters``, an array.
    """

    tile: Callable[..., None]
    parameters: Callable[[Any], tuple[float, ...]]


_FORMS: dict[type, Form] = {}


def register(
    loss: type, *, tile: Callable[..., None], parameters: Callable[[Any], tuple[float, ...]] = lambda loss: ()
) -> None:
    """Say how losses of exactly this type are compiled; see `Form`."""
    _FORMS[loss] = Form(tile, parameters)


def form_of(loss: Any) -> Form | None:
    """The compiled form of a loss, None where its exact type has none."""
    return _FORMS.get(type(loss))
