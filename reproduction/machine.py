"""What the figures of a run depend on: the machine and the versions."""

from __future__ import annotations

import os
import platform
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from projfree.runtime import default_threads

PACKAGES = ("projfree", "numpy", "scipy", "numba", "cvxpy", "clarabel")


def facts() -> dict[str, str]:
    """Machine and versions, each as a short text."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "processor": _processor(),
        "cores": str(default_threads()),
        "memory": _memory(),
        "commit": _commit(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": f"{blas['name']} {blas['version']}, one thread",
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def load() -> str:
    """How many programs wanted a core in the last minute, as the system counts them; empty where it does not."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    """The commit of the clone; empty where there is none.

    It is called dirty where the code was changed since; the results of an earlier run, say, are no part of it.
    """
    import subprocess

    git = ["git", "-C", str(Path(__file__).parents[1])]
    try:
        found, changed = (
            subprocess.run([*git, *words], capture_output=True, text=True, timeout=10, check=False)
            for words in (["rev-parse", "--short=12", "HEAD"], ["diff", "--quiet", "HEAD", "--", "src", "reproduction"])
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() + ("-dirty" if changed.returncode else "") if found.returncode == 0 else ""


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown"
