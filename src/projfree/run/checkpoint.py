"""`Checkpoint`: a run on disk, from which it goes on bit for bit."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from projfree import persist
from projfree.algebra import Minorant, Point, Structured, pack, unpack
from projfree.callers import outside
from projfree.checks import all_finite, count, real_array
from projfree.objectives.base import SmoothFunction
from projfree.run.averages import Rung
from projfree.run.fingerprints import ANEW, refuse_other
from projfree.run.progress import Run
from projfree.run.solver_record import rebuild, record
from projfree.run.trace import Trace
from projfree.solvers.base import Solver
from projfree.solvers.restoring import counted, number

#: The version is raised whenever runs keep something else than before.
KIND, VERSION = "projfree checkpoint", 5
BOOKS = (
    *("seconds", "first_iteration", "work", "value", "first_value", "latest_gap", "centre_value"),
    *("next_check", "next_confirm"),
)
LADDER = ("count", "due", "evaluated", "bound", "allowance", "witnessed")


@dataclass(frozen=True)
class Checkpoint:
    """A callback that writes the run to a folder, atomically, every so many iterations.

    Go on with ``minimize(objective, ball, state=path)``; the checkpoint names its solver, and a solver of the user's
    own is given again. It holds parameters, scalars and averages, never images: after writing one the running solver
    goes on in a fresh workspace, so that the resumed run and the one that wrote it take the same steps to the last bit.
    Where a later one cannot be written, because the disk is full, the earlier one stays and the run goes on with a
    warning; a first one that cannot be written ends the run.

    Parameters
    ----------
    path : str or path
        The folder to write; an earlier checkpoint there is replaced, and stays intact until then.
    every : int
        Iterations between two checkpoints.
    note : dict, optional
        Names and numbers that whoever goes on wants to know, as `Written.note`.

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
        """Write the run if its iteration is due."""
        if run.iteration % self.every == 0:
            tree = self._tree(run)
            try:
                self._save(tree)
            except OSError as error:
                if not persist.exists(self.path):
                    raise
                if not run.warned:
                    _warn_of_an_older_one(run, error)
                run.warned = True
            _apply(run, tree)

    def _tree(self, run: Run) -> dict[str, Any]:
        return snapshot(run) | {"note": self.note}

    def _save(self, tree: dict[str, Any]) -> None:
        persist.save(self.path, tree, kind=KIND)

    def rows_lost(self, run: Run) -> None:
        """Write the run as it stands, because its rows are out of reach."""
        self._save(self._tree(run))


def _warn_of_an_older_one(run: Run, error: OSError) -> None:
    """Say that a run goes on although its checkpoint could not be written; an earlier one is there."""
    warnings.warn(
        f"The checkpoint of iteration {run.iteration} is missing: {error.strerror} The run goes on; after a stop it "
        "would go on from the last one that was written, so make room on the disk.",
        RuntimeWarning,
        stacklevel=outside(),
    )


@dataclass(frozen=True)
class Written:
    """What a checkpoint holds, as it was read from the disk."""

    name: str
    tree: dict[str, Any]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Written:
        """The checkpoint at ``path``."""
        name, tree = f"the checkpoint at {os.fspath(path)}", persist.load(path, kind=KIND)
        if not isinstance(tree, dict) or "version" not in tree or not isinstance(tree.get("problem", {}), dict):
            raise ValueError(f"{name} is damaged: it holds no run; {ANEW}.")
        if tree["version"] != VERSION:
            raise ValueError(
                f"{name} has the version {tree['version']}, and this projfree goes on from version {VERSION}; finish "
                f"it with the projfree that wrote it, or {ANEW}."
            )
        return cls(name, tree)

    @property
    def problem(self) -> dict[str, str]:
        """What it belongs to."""
        problem: dict[str, str] = self.tree.get("problem", {})
        return problem

    @property
    def note(self) -> dict[str, Any]:
        """What its writer has noted."""
        note: dict[str, Any] = self.tree.get("note", {})
        return note

    def solver(self) -> Solver:
        """The solver that wrote it, or a sentence that asks for it."""
        return rebuild(self.tree.get("solver"), self.name)

    def restore(self, run: Run) -> None:
        """Put a fresh run where the checkpoint stands, or say that it is of another problem."""
        refuse_other(self.name, self.problem, run.state.problem, ANEW)
        try:
            _apply(run, self.tree)
        except Exception as error:  # a file may hold anything
            raise ValueError(
                f"{self.name} is damaged ({type(error).__name__}: {error}); restore it from a copy, or {ANEW}."
            ) from error


def snapshot(run: Run) -> dict[str, Any]:
    """The run as a tree of arrays and scalars."""
    ladder = run.ladder
    return {
        "version": VERSION,
        "problem": dict(run.state.problem),
        "solver": record(run.solver),
        "state": {f.name: _encode(getattr(run.state, f.name)) for f in _kept(run.state)},
        "iteration": run.iteration,
        "books": {name: getattr(run, name) for name in BOOKS},
        "smallest_gap": list(run.smallest_gap),
        "best": _encode(run.best),
        "rows": {str(t): row for t, row in run.rows.items()},
        "trace": run.trace.columns(),
        "ladder": {name: getattr(ladder, name) for name in LADDER},
        "witness": _plain(ladder.witness),
        "rungs": [{"m": _encode(rung.m), "z": rung.z} for rung in ladder.rungs],
    }


def _apply(run: Run, tree: dict[str, Any]) -> None:
    f, ladder = run.f, run.ladder
    run.unproved = True  # and takes nobody's word for a bound
    kept = {name: _decode(value, f) for name, value in tree["state"].items()}
    restored = run.solver.restored(f, run.ball, run.state, kept)
    run.state = replace(restored, problem=run.state.problem, solver=run.solver)
    books = {name: _like(getattr(run, name), name, tree["books"][name]) for name in BOOKS}
    work = books.pop("work")
    for name, value in books.items():
        setattr(run, name, value)
    if run.iteration != tree["iteration"]:
        raise ValueError(f"its state is of iteration {run.iteration}, its books are of {tree['iteration']!r}")
    run.opened = f.reopened(work)  # the resumed run remembers nothing either
    run.work_before = work - run.opened.work
    gap, iteration = tree["smallest_gap"]
    run.smallest_gap = (number("smallest_gap", gap), counted("smallest_gap", iteration))
    run.best = _read(tree["best"], f, Point)
    run.trace = Trace.read(tree["trace"])
    run.rows = {counted("rows", int(t)): run.trace.place(row, int(t)) for t, row in tree["rows"].items()}
    for name in LADDER:
        setattr(ladder, name, _like(getattr(ladder, name), name, tree["ladder"][name]))
    ladder.witness = _place(tree["witness"], f)
    rungs = [Rung(_read(rung["m"], f, Minorant), _place(rung["z"], f)) for rung in tree["rungs"]]
    if len(rungs) != len(ladder.ells) or any((rung.z is None) is not ladder.factored for rung in rungs):
        raise ValueError(f"it has {len(rungs)} averages of tangents with their places, not {len(ladder.ells)}")
    ladder.rungs = rungs


def _kept(state: Any) -> list[Any]:
    return [f for f in fields(state) if not f.metadata.get("transient")]


def _encode(value: Any) -> Any:
    if isinstance(value, Point):
        b = value.intercept
        return {"type": "point", "w": _plain(value.w), "intercept": None if b is None else np.asarray(b)}
    if isinstance(value, Minorant):
        return {"type": "minorant", **{f.name: _plain(getattr(value, f.name)) for f in fields(value)}}
    return value


def _decode(value: Any, f: SmoothFunction) -> Any:
    if not isinstance(value, dict):
        return value
    rest = {name: part for name, part in value.items() if name != "type"}
    if value["type"] == "point":
        b = rest["intercept"]
        return f.point(_as_parameter(rest["w"], f), None if b is None else _intercept(b, f))
    gradient = _as_parameter(rest.pop("gradient"), f)
    return Minorant(gradient=gradient, **{name: number(name, part) for name, part in rest.items()})


def _read(value: Any, f: SmoothFunction, kind: type) -> Any:
    found = _decode(value, f)
    if not isinstance(found, kind):
        raise ValueError(f"a {kind.__name__.lower()} was expected, got {value!r:.80}")
    return found


def _like(now: Any, name: str, value: Any) -> Any:
    """A count where the run has one, else a number; NaN is one where the run does not know it yet."""
    return counted(name, value) if isinstance(now, int) else number(name, value, nan=name == "centre_value")


def _intercept(b: Any, f: SmoothFunction) -> Any:
    found = all_finite("intercept", real_array("intercept", b))
    if f.intercept_shape is not None and found.shape != f.intercept_shape:
        raise ValueError(f"an intercept has the shape {found.shape}, not {f.intercept_shape}")
    return found


def _plain(w: Any) -> Any:
    """A parameter as arrays."""
    return pack(w) if isinstance(w, Structured) else w


def _as_parameter(w: Any, f: SmoothFunction) -> Any:
    """A parameter from its arrays; one on the pattern of the data gets that very pattern."""
    found = unpack(w, f.pattern) if isinstance(w, dict) else w
    if found.shape != f.shape:
        raise ValueError(f"a parameter has the shape {found.shape}, not {f.shape}")
    return found if isinstance(found, Structured) else all_finite("w", real_array("w", found))


def _place(w: Any, f: SmoothFunction) -> Any:
    """Where a tangent was taken, None where that is not known."""
    return None if w is None else _as_parameter(w, f)
