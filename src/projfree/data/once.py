"""`Once`: a value that is made when it is first asked for, and kept for all copies of what holds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from projfree.runtime import lock_of

T = TypeVar("T")


class Once(Generic[T]):
    """A value that one thread makes when it is first asked for, while others wait for it.

    Shallow copies of the object that holds it share it, so that the value is made once for all of them. What is pickled
    is the value where it is made already, and else the function, which must be one that can be pickled.

    Parameters
    ----------
    make : callable
        From nothing to the value, which must not be None.
    value : optional
        The value itself, where it is known beforehand.
    """

    __slots__ = ("__weakref__", "_lock", "_make", "_value")

    def __init__(self, make: Callable[[], T] | None, value: T | None = None) -> None:
        self._make, self._value, self._lock = make, value, lock_of(self)

    def get(self) -> T:
        """The value."""
        if self._value is None:
            with self._lock:
                if self._value is None:
                    self._value = cast("Callable[[], T]", self._make)()
        return self._value

    def __reduce__(self) -> tuple[Any, ...]:
        return Once, (self._make, None) if self._value is None else (None, self._value)
