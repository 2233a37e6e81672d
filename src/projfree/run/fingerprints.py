"""Which problem a state or a checkpoint belongs to: averages of tangents of one function bound no other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver

#: What to do where a checkpoint is of no use.
ANEW = "begin anew with this folder removed, or with another one"
#: What `short_hash` makes of arrays: it tells them apart, and nobody can read it.
HASH = re.compile(r"\b[0-9a-f]{16}\b")


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


def refuse_other(
    name: str, theirs: Mapping[str, str], mine: Mapping[str, str], anew: str = "begin anew with `start=`"
) -> None:
    """Raise a sentence that names the first part in which the problems differ, and what to do otherwise."""
    for part, own in mine.items():
        if theirs.get(part) != own:
            its, this = (HASH.sub("", str(text)).strip() for text in (theirs.get(part), own))
            differ = "has other numbers" if its == this else f"is {its}, this one is {this}"
            raise ValueError(f"{name} is of another problem: its {part} {differ}; give the same {part}, or {anew}.")


def _describe(thing: Any) -> str:
    if isinstance(thing, ConstraintSet) and (own := thing.fingerprint()):
        return own
    if is_dataclass(thing) and not isinstance(thing, type):
        inside = ", ".join(f"{f.name}={_describe(getattr(thing, f.name))}" for f in fields(thing))
        return f"{type(thing).__name__}({inside})"
    if isinstance(thing, np.ndarray):
        return f"array {thing.shape} {short_hash('', thing)}"
    return getattr(thing, "__qualname__", None) or repr(thing)
