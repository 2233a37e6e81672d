"""How much memory a plan may use: half of what the machine has, or what ``PROJFREE_MEMORY`` says."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path

#: The environment variable that replaces half of the machine's memory.
VARIABLE = "PROJFREE_MEMORY"
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
#: Where control groups of both versions tell their limits.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
#: What counts as the memory of a machine that does not tell: 4 GB.
UNKNOWN = 4 * 10**9


def budget() -> int:
    """Bytes that a solver chosen by the plan may use besides the data.

    Examples
    --------
    >>> import os
    >>> os.environ["PROJFREE_MEMORY"] = "1.5 GB"
    >>> budget()
    1500000000
    >>> del os.environ["PROJFREE_MEMORY"]
    """
    asked = os.environ.get(VARIABLE, "").strip()
    return machine() // 2 if not asked else _read(asked)


def _read(asked: str) -> int:
    """Bytes from a number with or without a unit."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)", asked)
    size = int(float(found[1]) * UNITS[found[2].upper()]) if found and found[2].upper() in UNITS else 0
    if size < 1:
        raise ValueError(
            f"the environment variable {VARIABLE} must be a positive number of bytes such as 4000000000 or 4GB (units "
            f"are B, KB, MB, GB, TB, KiB, MiB, GiB and TiB), got {asked!r}; correct it or unset it."
        )
    return size


@cache
def machine() -> int:
    """Bytes of memory of this machine, or of the container where that has less."""
    return min(_physical(), *_limits())


def _physical() -> int:
    if sys.platform == "win32":
        return _windows()
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def _limits() -> list[int]:
    """The limits of control groups, where there are any."""
    found = [sys.maxsize]
    for name in LIMITS:
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        found += [int(text)] if text.isdigit() and int(text) > 0 else []
    return found


def _windows() -> int:
    import ctypes

    kilobytes = ctypes.c_ulonglong(0)
    library = getattr(ctypes, "windll").kernel32  # noqa: B009 - it exists on one system only
    return kilobytes.value * 1024 if library.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)) else UNKNOWN
