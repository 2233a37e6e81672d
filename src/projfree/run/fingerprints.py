"""Which problem a state or a checkpoint belongs to: averages of tangents of one function bound no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver


class Fingerprint(Mapping[str, str]):
    """`fingerprint`, computed when somebody looks at it first: a run that keeps nothing needs none."""

    def __init__(self, f: SmoothFunction, ball: ConstraintSet, solver: Solver) -> None:
        self._of = f, ball, solver

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._parts,)

    @cached_property
    def _parts(self) -> dict[str, str]:
        return fingerprint(*self._of)

    def __getitem__(self, part: str) -> str:
        return self._parts[part]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def fingerprint(f: SmoothFunction, ball: ConstraintSet, solver: Solver) -> dict[str, str]:
    """The parts of a problem, each as a string that tells it from others."""
    return {
        "objective": f.fingerprint(),
        "set": _describe(ball),
        "solver": _describe(solver),
        "shape": str(f.shape),
    }


def refuse_other(name: str, theirs: Mapping[str, str], mine: Mapping[str, str]) -> None:
    """Raise a sentence that names the first part in which the problems differ."""
    for part, own in mine.items():
        if theirs.get(part) != own:
            raise ValueError(
                f"{name} is of another problem: its {part} is {theirs.get(part)}, this one is {own}; give the same "
                f"{part}, or begin anew with `start=`."
            )


def _describe(thing: Any) -> str:
    if isinstance(thing, ConstraintSet) and (own := thing.fingerprint()):
        return own
    if is_dataclass(thing) and not isinstance(thing, type):
        inside = ", ".join(f"{f.name}={_describe(getattr(thing, f.name))}" for f in fields(thing))
        return f"{type(thing).__name__}({inside})"
    if isinstance(thing, np.ndarray):
        return f"array {thing.shape} {short_hash('', thing)}"
    return getattr(thing, "__qualname__", None) or repr(thing)
