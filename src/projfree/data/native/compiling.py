"""How kernels are compiled: plain functions, which numba finds when a kernel that calls them is asked for.

`EXACT` keeps every rounding where it is written, but for products and sums that the machine rounds together; sums may
also be reassociated (`FAST`), which the rounding allowance covers for any order within a block. Neither assumes that
numbers are finite. Kernels divide as NumPy does (`error_model`): Python's test for zero would keep every loop with a
quotient from being vectorised, and costs the logistic loss a factor of four.

A kernel is a closure over plain functions of modules and numbers. Numba keys its cache on disk by these, so that the
next process finds the machine code; a function that is already compiled would have another identity there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.extending import lower_builtin, register_jitable, type_callable

from projfree.numerics import scalars
from projfree.numerics.compilation import watch

watch()

_LEAN = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_EXACT, _FAST = {"nsz", "contract"}, {"reassoc", "nsz", "contract"}


def exact(function):
    """A plain function that kernels may call, each rounding where it is written."""
    return register_jitable(fastmath=_EXACT, **_LEAN)(function)


def fast(function):
    """A plain function that kernels may call, whose sums may be taken in any order."""
    return register_jitable(fastmath=_FAST, **_LEAN)(function)


_KNOWN: set[FunctionType] = {scalars.bits, scalars.from_bits}  # type: ignore[arg-type]  # plain ones


def _as_bits(source: Any, kind: Any, function: Any, target: Any) -> None:
    """Make a function of `scalars` one instruction that takes the bits of a number as another kind of number."""

    @type_callable(function)
    def typed(context):
        return lambda x: target

    @lower_builtin(function, source)
    def lowered(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], kind)


_as_bits(types.float64, ir.IntType(64), scalars.bits, types.int64)
_as_bits(types.int64, ir.DoubleType(), scalars.from_bits, types.float64)


def kernel(function: Callable[..., None]) -> Any:
    """A closure as a compiled kernel, kept on disk where there is a folder that can be written to."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": _EXACT}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba has no place for its cache
        return njit(**options)(function)


def form(function: Callable[..., None] | None) -> int:
    """Prepare a loss's function, and those that it calls, for compilation; return a number that changes with them.

    Numba's cache on disk looks at the file of the kernel alone. With this number in its closure, machine code of an
    earlier version of the form, or of this package, is never used.
    """
    digest = hashlib.sha256(_package())
    for found in _reached(function, set()):
        if isinstance(found, FunctionType):
            digest.update(repr((found.__qualname__, found.__defaults__)).encode())
            _hash_code(found.__code__, digest)
            if found not in _KNOWN:
                _KNOWN.add(found)
                exact(found)
        else:
            digest.update(found.tobytes() if isinstance(found, np.ndarray) else repr(found).encode())
    return int.from_bytes(digest.digest()[:7], "little")


def _reached(function: Any, seen: set[int]) -> Iterator[Any]:
    """A function, the functions that it reaches by name, and the constants that it reads, each once."""
    if isinstance(function, Dispatcher):
        function = function.py_func
    if id(function) in seen:
        return
    seen.add(id(function))
    yield function
    if not isinstance(function, FunctionType):
        return
    names = set(_names(function.__code__))
    values = [function.__globals__[name] for name in sorted(names & function.__globals__.keys())]
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    for value in values:
        if isinstance(value, ModuleType):
            inside = [getattr(value, name) for name in sorted(names) if hasattr(value, name)]
            values += [own for own in inside if isinstance(own, (FunctionType, Dispatcher, int, float))]
        elif not str(getattr(value, "__module__", "")).startswith("numpy"):
            yield from _reached(value, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _hash_code(code: CodeType, digest: Any) -> None:
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _hash_code(constant, digest)
        else:
            digest.update(repr(constant).encode())


@lru_cache(maxsize=1)
def _package() -> bytes:
    """The text of the kernels, which are spread over several files."""
    return b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
