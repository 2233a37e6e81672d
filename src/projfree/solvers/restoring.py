"""What the members of a state are, and the one reader that checks those of a file: a checkpoint may hold anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from projfree.algebra import Minorant, Point
from projfree.checks import all_finite, count, real_array

#: Counts that a file gives lie below this: so far floats hold all whole numbers.
MOST_COUNTED = 2**53
#: Other whole numbers lie below this: larger ones may have no float.
LARGEST = 2**1023


class MemberRule(NamedTuple):
    """What a member of a state is, besides its type.

    Attributes
    ----------
    shape : tuple of str
        The sizes of an array: ``d`` features, ``k`` outputs, ``D`` entries of a parameter, or any other letter for a
        size that several members share; ``v+1`` is one more than ``v``, ``w`` alone is the shape of a parameter, and
        ``...`` any, which the state itself looks at.
    least : float
        The least that numbers may be.
    below : str
        The size that whole numbers lie below, from zero on.
    unknown : bool
        Whether a number may be NaN or infinite, as one may whose default is.
    """

    shape: tuple[str, ...] = ()
    least: float = -math.inf
    below: str = ""
    unknown: bool = False


def member(*shape: str, least: float = -math.inf, below: str = "", unknown: bool = False) -> dict[str, Any]:
    """What a field of a state says of itself as metadata; see `MemberRule`."""
    return {"member": MemberRule(shape, least, below, unknown)}


def number(name: str, value: Any, least: float = -math.inf, *, nan: bool = False) -> Any:
    """A real number as it is; flags and text are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"`{name}` must be a number, got {value!r}")
    if isinstance(value, int) and abs(value) >= LARGEST:
        raise ValueError(f"`{name}` must be a number that a float can hold, got {value!r:.40}")
    if value < least or (math.isnan(value) and not nan):
        raise ValueError(f"`{name}` must be {'at least ' + str(least) if value < least else 'a number'}, got {value!r}")
    return value


def counted(name: str, value: Any) -> int:
    """A count of something that was done: iterations, or rows that were read."""
    found = count(name, value, lowest=0)
    if found >= MOST_COUNTED:
        raise ValueError(f"`{name}` must be below {MOST_COUNTED:,}, got {found!r:.40}")
    return found


def read_members(state: type, kept: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The members of a state as a file gives them, each of the type, shape and range that the state declares.

    Those that a state from outside of the package adds, or declares anew, are taken as they are: their solver knows
    what they mean.
    """
    ours = [each for c in state.__mro__ if c.__module__.startswith("projfree.") for each in _fields_of(c)]
    own = {each.name: each for each in _fields_of(state) if any(each is other for other in ours)}
    sizes = {"d": shape[0], "k": math.prod(shape[1:]), "D": math.prod(shape)}
    sizes |= {f"w{axis}": size for axis, size in enumerate(shape)}
    return {name: _read(own[name], kept[name], sizes) if name in own else kept[name] for name in kept}


def _read(each: Field[Any], value: Any, sizes: dict[str, int]) -> Any:
    kinds, said = str(each.type).split(" | "), each.metadata.get("member", MemberRule())
    if value is None and "None" in kinds:
        return None
    if isinstance(each.default, float) and not math.isfinite(each.default):
        said = said._replace(unknown=True)
    if each.metadata.get("transient") or kinds[0] not in READERS:
        raise ValueError(f"`{each.name}` is no member that a file keeps")
    return READERS[kinds[0]](each.name, value, said, sizes)


def _count(name: str, value: Any, said: MemberRule, sizes: dict[str, int]) -> int:
    found = count(name, value, lowest=0)
    if said.below and found >= int(said.below):
        raise ValueError(f"`{name}` must be below {said.below}, got {found!r:.40}")
    return found


def _number(name: str, value: Any, said: MemberRule, sizes: dict[str, int]) -> Any:
    found = number(name, value, said.least, nan=said.unknown)
    if not (math.isfinite(found) or said.unknown):
        raise ValueError(f"`{name}` must be finite, got {found!r}")
    return found


def _array(name: str, value: Any, said: MemberRule, sizes: dict[str, int]) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in ("iu" if said.below else "fiu"):
        raise ValueError(f"`{name}` must be an array of {'whole ' if said.below else ''}numbers, got {value!r:.80}")
    _fit(name, value.shape, said.shape, sizes)
    array = all_finite(name, real_array(name, value))
    least = 0.0 if said.below else said.least
    if array.size and (array.min() < least or (said.below and array.max() >= sizes[said.below])):
        raise ValueError(f"`{name}` must lie from {least:g} to below {sizes.get(said.below, math.inf)}")
    return value


def _fit(name: str, shape: tuple[int, ...], wanted: tuple[str, ...], sizes: dict[str, int]) -> None:
    """Raise unless the shape is the wanted one; letters that are new get their sizes from it."""
    if wanted == ("w",):
        wanted = tuple(letter for letter in sizes if letter.startswith("w"))
    fits = len(shape) == len(wanted) or wanted == ("...",)
    for size, letters in () if wanted == ("...",) else zip(shape, wanted, strict=False):
        letter, _, more = letters.partition("+")
        fits = fits and sizes.setdefault(letter, size - int(more or 0)) == size - int(more or 0) >= 0
    if not fits:
        raise ValueError(f"`{name}` must have the shape ({', '.join(wanted)}) with {sizes}, got {shape}")


def _instance(kind: type) -> Callable[..., Any]:
    def read(name: str, value: Any, said: MemberRule, sizes: dict[str, int]) -> Any:
        if not isinstance(value, kind):
            raise ValueError(f"`{name}` must be a {kind.__name__.lower()}, got {value!r:.80}")
        return value

    return read


#: How a member is read, by the type that its class declares.
READERS: dict[str, Callable[..., Any]] = {
    "int": _count,
    "float": _number,
    "Array": _array,
    "Point": _instance(Point),
    "Minorant": _instance(Minorant),
}


def _fields_of(cls: Any) -> tuple[Any, ...]:
    return fields(cls) if is_dataclass(cls) else ()
