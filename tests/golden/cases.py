"""What the recorded runs have in common: a name, a run, and how closely it must be met again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree import Result, minimize

#: Parameters with more entries than this are recorded by their products with as many fixed vectors as `PRODUCTS`.
MOST_ENTRIES, PRODUCTS = 40, 6


@dataclass(frozen=True)
class Case:
    """A run that was recorded.

    Attributes
    ----------
    run : callable
        Runs it anew and returns what is compared, see `seen`.
    fixed : bool
        Whether every step is fixed beforehand, so that the numbers must be met to rounding. Searches (line searches,
        Newton steps, what the plan picks) may branch on the last digit; there the certificates must agree.
    """

    run: Callable[[], dict[str, Any]]
    fixed: bool


def fixed(f: Callable[[], Any], ball: Any, solver: Any, max_iter: int = 25, **settings: Any) -> Case:
    """A run of so many iterations whose steps are fixed beforehand."""
    return Case(lambda: seen(minimize(f(), ball, solver, tol=0.0, max_iter=max_iter, **settings)), True)


def searching(f: Callable[[], Any], ball: Any, solver: Any = "auto", tol: float = 1e-6, **settings: Any) -> Case:
    """A run to a tolerance whose steps depend on what it meets."""
    return Case(lambda: seen(minimize(f(), ball, solver, tol=tol, **settings)), False)


def seen(result: Result) -> dict[str, Any]:
    """What is recorded of a result."""
    return {
        "w": summary(np.asarray(result.w)),
        "intercept": None if result.intercept is None else summary(np.asarray(result.intercept)),
        "value": result.value,
        "bound": result.bound,
        "gap": result.gap,
        "passes": result.n_passes,
        "iterations": result.n_iter,
        "status": result.status.name,
    }


def summary(w: np.ndarray) -> list[float]:
    """All entries where they are few, else products with fixed vectors, whose entries have mean square one."""
    flat = np.asarray(w, dtype=np.float64).ravel()
    if flat.size > MOST_ENTRIES:
        flat = np.random.default_rng(flat.size).standard_normal((PRODUCTS, flat.size)) @ flat
    return [float(number) for number in flat]
