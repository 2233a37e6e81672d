"""`Checkpoint`: save a run to disk, to resume it with identical results."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, is_dataclass
from numbers import Real
from typing import Any, cast

from projfree import losses, persist, sampling, sets, solvers, steps
from projfree.algebra import Minorant, Point, Structured, pack, unpack
from projfree.checks import count, instance
from projfree.run.loop import RESTART, Run, fingerprint, refuse_other
from projfree.run.result import Trace
from projfree.solvers.base import Solver
from projfree.solvers.pairwise import ActiveSet

KIND = "projfree checkpoint"
#: Attributes of a run and of its lower bound that are stored, in addition to the state of the solver and the trace.
RUN = (
    *("best", "first_iteration", "passes", "seconds", "value", "first_value", "latest_gap", "centre_value"),
    *("next_tangent", "next_certificate"),
)
LOWER_BOUND = ("averages", "witness", "count", "due", "bound", "allowance", "witnessed")
#: Classes that a file may contain: losses, sets, solvers, their settings, and the parts of states.
CLASSES: dict[str, Any] = {
    name: value
    for module in (losses, sets, solvers, steps, sampling)
    for name, value in ((name, getattr(module, name)) for name in dir(module))
    if isinstance(value, type) and is_dataclass(value)
} | {"Point": Point, "Minorant": Minorant, "ActiveSet": ActiveSet}


@dataclass(frozen=True)
class Checkpoint:
    """A callback that saves the run to a folder every few iterations, atomically.

    Continue with ``minimize(objective, ball, state=path)``. The checkpoint names its solver; a user-defined solver must
    be passed again. It contains parameters, scalars and averages, but no predictions: after saving, the running solver
    continues in a new workspace, so that a resumed run takes exactly the same steps. If saving fails, for example
    because the disk is full, the run ends and the earlier checkpoint remains.

    Parameters
    ----------
    path : str or path
        Folder to write to; it replaces an earlier checkpoint atomically.
    every : int
        Number of iterations between two checkpoints.
    note : dict, optional
        Additional names and numbers, available as `SavedRun.note`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from projfree import Checkpoint, LpBall, PrimalAveraging, QuadraticForm, minimize
    >>> f, ball = QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(1.5, radius=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stopped = minimize(f, ball, PrimalAveraging(), tol=0.0, max_iter=20, callbacks=[Checkpoint(folder, 10)])
    ...     resumed = minimize(f, ball, tol=0.0, max_iter=30, state=folder)
    >>> resumed.n_iter, resumed.solver
    (30, PrimalAveraging())
    """

    path: str | os.PathLike[str]
    every: int = 100
    note: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count("Checkpoint(every=...)", self.every)

    def __call__(self, run: Run) -> None:
        """Save the run if its iteration number is a multiple of ``every``."""
        if run.iteration % self.every:
            return
        tree = _snapshot(run)
        persist.save(self.path, tree | {"note": self.note}, kind=KIND)
        _restore(run, tree)


@dataclass(frozen=True)
class SavedRun:
    """The content of a checkpoint: the run, the problem it belongs to, and the note of its writer."""

    name: str
    tree: dict[str, Any]
    problem: dict[str, str]
    note: dict[str, Any]

    @classmethod
    def load(cls, path: Any) -> SavedRun:
        """Load the checkpoint at ``path``."""
        if not isinstance(path, str | os.PathLike):
            kind = type(path).__name__
            raise TypeError(f"`state` must be the `state` of a result or the path of a checkpoint, got {kind}.")
        name, tree = f"the checkpoint at {os.fspath(path)}", persist.load(path, kind=KIND)
        if not isinstance(tree, dict) or not all(isinstance(tree.get(part), dict) for part in ("problem", "note")):
            raise ValueError(f"{name} is damaged: it holds no run; {RESTART}.")
        return cls(name, tree, tree["problem"], tree["note"])

    @property
    def solver(self) -> Solver:
        """The solver that wrote the checkpoint; raises ValueError if it must be passed by the user."""
        tree = self.tree.get("solver")
        try:
            solver = persist.unpack(tree, CLASSES)
            instance("solver", solver, Solver, "FrankWolfe()")
        except Exception as error:  # a file may hold anything
            name = tree.get("class") if isinstance(tree, dict) else None
            raise ValueError(
                f"{self.name} was written by the solver {name}, which this projfree cannot make again ({error}); give "
                f"the solver as `solver={name}(...)`."
            ) from error
        return cast("Solver", solver)

    def restore(self, run: Run) -> None:
        """Restore the checkpoint into a new run; raise ValueError if it belongs to another problem."""
        refuse_other(self.name, self.problem, fingerprint(run.f, run.ball, run.solver))
        try:
            _restore(run, self.tree)
        except Exception as error:  # a file may hold anything
            raise ValueError(
                f"{self.name} is damaged ({type(error).__name__}: {error}); restore it from a copy, or {RESTART}."
            ) from error


def _snapshot(run: Run) -> dict[str, Any]:
    """Return the run as a tree of arrays and scalars."""
    return {
        "problem": fingerprint(run.f, run.ball, run.solver),
        "solver": persist.pack(run.solver, CLASSES),
        "class": type(run.state).__name__,
        "state": _members(run.state, run.state.stored_fields()),
        "run": _members(run, RUN),
        "lower_bound": _members(run.lower_bound, LOWER_BOUND),
        "trace": run.trace.columns(),
    }


def _members(owner: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: persist.pack(getattr(owner, name), CLASSES, _packed_matrix) for name in names}


def _packed_matrix(value: Any) -> Any:
    return {"class": "Structured", **pack(value)} if isinstance(value, Structured) else value


def _restore(run: Run, tree: dict[str, Any]) -> None:
    """Set a run to the state of a snapshot; also the running one, so that its caches are those of a resumed run."""
    kind, f = cast("Any", type(run.state)), run.f
    if tree["class"] != kind.__name__:
        raise ValueError("its state is of another class")
    makers = CLASSES | {
        "Point": f.point,
        "ActiveSet": lambda **arrays: ActiveSet.checked(tuple(f.shape), **arrays),
        "Structured": lambda **parts: unpack(parts, f.structure.pattern),
    }
    run.state = kind(**_restored(run.state, kind.stored_fields(), tree["state"], makers), solver=run.solver)
    vars(run.lower_bound).update(_restored(run.lower_bound, LOWER_BOUND, tree["lower_bound"], makers))
    saved = _restored(run, RUN, tree["run"], makers)
    run.opened, run.passes_before = f.open(), saved.pop("passes")
    vars(run).update(saved)
    count("iteration", run.iteration, lowest=0)
    run.trace = Trace(tree["trace"])
    run.unproved = True  # bounds of a file are not trusted


def _restored(owner: Any, names: Iterable[str], tree: dict[str, Any], makers: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a run or a state, after checking that they have the types of those in ``owner``."""
    members = {name: persist.unpack(tree[name], makers) for name in names}
    for name, value in members.items():
        own = getattr(owner, name)
        wrong = own is not None and not isinstance(value, Real if isinstance(own, Real) else type(own))
        if wrong or (isinstance(own, list) and len(value) != len(own)):
            raise ValueError(f"`{name}` is {value!r:.80}")
    return members
