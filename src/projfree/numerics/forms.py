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


def no_parameters(loss: Any) -> tuple[float, ...]:
    """What a loss without parameters gives to its form."""
    return ()


class Form(NamedTuple):
    """What a compiler needs to know about a loss.

    Attributes
    ----------
    tile : callable
        ``tile(parameters, u, y, value, slope)`` writes the losses and derivatives of some predictions. For a loss that
        acts on each prediction by itself all arrays are flat and of one length. For a coupled loss ``u`` and ``slope``
        have the shape ``(rows, k)`` and ``value`` the shape ``(rows,)``, and ``y`` is an array of labels of shape
        ``(rows,)`` or of numbers of shape ``(rows, k)``. A function at the level of a module, in what numba compiles;
        functions that it calls are compiled with it.
    slopes : callable or None
        ``slopes(parameters, u, y, slope, second)`` writes first and second derivatives.
    parameters : callable
        From the loss to the numbers in ``parameters``, an array.
    """

    tile: Callable[..., None]
    slopes: Callable[..., None] | None = None
    parameters: Callable[[Any], tuple[float, ...]] = no_parameters


_FORMS: dict[type, Form] = {}


def register(
    loss: type,
    *,
    tile: Callable[..., None],
    slopes: Callable[..., None] | None = None,
    parameters: Callable[[Any], tuple[float, ...]] = no_parameters,
) -> None:
    """Say how losses of exactly this type are compiled; see `Form`."""
    _FORMS[loss] = Form(tile, slopes, parameters)


def form_of(loss: Any) -> Form | None:
    """The compiled form of a loss, None where its exact type has none."""
    return _FORMS.get(type(loss))
