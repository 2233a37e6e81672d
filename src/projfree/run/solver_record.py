"""A solver as names and numbers, so that a checkpoint can say which one goes on from it; no pickle."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import projfree.sampling as sampling
import projfree.steps as steps
from projfree.solvers import SOLVERS
from projfree.solvers.base import Solver

#: What a setting may be as it is.
PLAIN = (bool, int, float, str, type(None))


def _known() -> dict[str, type]:
    """The classes that a record can name: the package's solvers, step rules and samplings."""
    parts = [getattr(part, name) for part in (steps, sampling) for name in dir(part)]
    return {kind.__name__: kind for kind in (*SOLVERS, *parts) if isinstance(kind, type) and is_dataclass(kind)}


def record(solver: Solver) -> dict[str, Any]:
    """The solver as a tree of names and numbers; under ``foreign`` the class in it that is none of the package's.

    Examples
    --------
    >>> from projfree import FrankWolfe, OpenLoop
    >>> record(FrankWolfe(OpenLoop(4.0)))["settings"]["step_rule"]
    {'class': 'OpenLoop', 'settings': {'ell': 4.0}}
    """
    try:
        return dict(_encode(solver))
    except _ForeignError as foreign:
        return {"class": type(solver).__name__, "foreign": str(foreign)}


def rebuild(tree: Any, name: str) -> Solver:
    """The solver of a record, or a sentence that asks for it.

    Parameters
    ----------
    tree : mapping or None
        From `record`; None where there is none.
    name : str
        What holds it, for the sentence.
    """
    if tree is None:
        raise ValueError(f"{name} does not say which solver wrote it; give the one that did as `solver=`.")
    if "foreign" in tree:
        raise ValueError(
            f"{name} was written by the solver {tree['class']}, and {tree['foreign']} is not a class of projfree; give "
            f"the solver as `solver={tree['class']}(...)`."
        )
    try:
        solver = _decode(tree)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} was written by the solver {tree.get('class')}, which this version of projfree cannot make again "
            f"({error}); give the same solver as `solver=`."
        ) from error
    assert isinstance(solver, Solver)
    return solver


class _ForeignError(Exception):
    """A class or value that is not of the package."""


def _encode(thing: Any) -> Any:
    if type(thing) in PLAIN or isinstance(thing, np.generic):
        return thing
    kind = type(thing)
    if _known().get(kind.__name__) is not kind:
        raise _ForeignError(kind.__qualname__)
    return {"class": kind.__name__, "settings": {f.name: _encode(getattr(thing, f.name)) for f in fields(thing)}}


def _decode(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    settings = {name: _decode(value) for name, value in tree["settings"].items()}
    return _known()[tree["class"]](**settings)
