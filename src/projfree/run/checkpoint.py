"""`Checkpoint`: a run on disk, from which it continues bit for bit."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, cast

import numpy as np

import projfree.sampling as sampling
import projfree.steps as steps
from projfree import persist
from projfree.algebra import Minorant, Point, Structured, pack, unpack
from projfree.checks import all_finite, at_least, count, instance, real_array, stacklevel
from projfree.objectives.base import SmoothFunction
from projfree.run.loop import REMEDY, Run, fingerprint, refuse_other
from projfree.run.lower_bound import AveragedMinorant
from projfree.run.result import Trace
from projfree.solvers import SOLVERS
from projfree.solvers.base import Solver, State

KIND = "projfree checkpoint"
#: The numbers that a run and its lower bound keep.
RUN = ("seconds", "value", "first_value", "latest_gap", "centre_value", "next_tangent", "next_recomputation")
LOWER_BOUND = ("bound", "allowance", "witnessed")


@dataclass(frozen=True)
class Checkpoint:
    """A callback that writes the run to a folder, atomically, every so many iterations.

    Continue with ``minimize(objective, ball, state=path)``; the checkpoint names its solver, and a solver of the
    user's own is given again. It holds parameters, scalars and averages, never predictions: after writing one the
    running solver continues in a fresh workspace, so that the resumed run and the one that wrote it take the same steps
    to the last bit. If a later one cannot be written, because the disk is full, the earlier one stays and the run
    continues with a warning; a first one that cannot be written ends the run.

    Parameters
    ----------
    path : str or path
        The folder to write; an earlier checkpoint there is replaced, and stays intact until then.
    every : int
        Iterations between two checkpoints.
    note : dict, optional
        Names and numbers that whoever continues wants to know, as `SavedRun.note`.

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
        if run.iteration % self.every:
            return
        tree = _snapshot(run)
        try:
            persist.save(self.path, tree | {"note": self.note}, kind=KIND)
        except OSError as error:
            if not persist.exists(self.path):
                raise
            if not run.warned:
                warnings.warn(
                    f"The checkpoint of iteration {run.iteration} is missing: {error.strerror} The run goes on; after "
                    "a stop it would go on from the last one that was written, so make room on the disk.",
                    RuntimeWarning,
                    stacklevel=stacklevel(),
                )
            run.warned = True
        _restore(run, tree)

    def rows_lost(self, run: Run) -> None:
        """Write the run as it is, because its rows are out of reach."""
        persist.save(self.path, _snapshot(run) | {"note": self.note}, kind=KIND)


@dataclass(frozen=True)
class SavedRun:
    """What a checkpoint holds, as it was read from the disk: what it belongs to, and what its writer has noted."""

    name: str
    tree: dict[str, Any]
    problem: dict[str, str]
    note: dict[str, Any]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedRun:
        """The checkpoint at ``path``."""
        name, tree = f"the checkpoint at {os.fspath(path)}", persist.load(path, kind=KIND)
        if not isinstance(tree, dict) or not all(isinstance(tree.get(part), dict) for part in ("problem", "note")):
            raise ValueError(f"{name} is damaged: it holds no run; {REMEDY}.")
        return cls(name, tree, tree["problem"], tree["note"])

    @property
    def solver(self) -> Solver:
        """The solver that wrote it, or a ValueError that asks for it."""
        tree = self.tree.get("solver")
        try:
            solver = _rebuild(tree)
            instance("solver", solver, Solver, "FrankWolfe()")
        except Exception as error:  # a file may hold anything
            name = tree.get("class") if isinstance(tree, dict) else None
            raise ValueError(
                f"{self.name} was written by the solver {name}, which this projfree cannot make again ({error}); give "
                f"the solver as `solver={name}(...)`."
            ) from error
        return cast("Solver", solver)

    def restore(self, run: Run) -> None:
        """Put a fresh run where the checkpoint is, or raise ValueError if it is of another problem."""
        refuse_other(self.name, self.problem, fingerprint(run.f, run.ball, run.solver), REMEDY)
        try:
            _restore(run, self.tree)
        except Exception as error:  # a file may hold anything
            raise ValueError(
                f"{self.name} is damaged ({type(error).__name__}: {error}); restore it from a copy, or {REMEDY}."
            ) from error


def _snapshot(run: Run) -> dict[str, Any]:
    """The run as a tree of arrays and scalars."""
    lower, state = run.lower_bound, run.state
    return {
        "problem": fingerprint(run.f, run.ball, run.solver),
        "solver": _record(run.solver),
        "state": {"class": type(state).__name__} | {name: _encode(getattr(state, name)) for name in _kept(type(state))},
        "run": {name: getattr(run, name) for name in RUN},
        "first_iteration": run.first_iteration,
        "passes": run.passes,
        "smallest_gap": list(run.smallest_gap),
        "best": _encode(run.best),
        "trace": run.trace.columns(),
        "lower_bound": {name: getattr(lower, name) for name in LOWER_BOUND} | {"count": lower.count, "due": lower.due},
        "witness": _encode(lower.witness),
        "averages": [[_encode(average.m), _encode(average.z)] for average in lower.averages],
    }


def _restore(run: Run, tree: dict[str, Any]) -> None:
    """Put a run where a snapshot is; the running one too, so that it remembers no more than a resumed one."""
    f, lower = run.f, run.lower_bound
    run.unproved = True  # and trusts no bound of the file
    run.state = _read_state(tree["state"], f, run.state)
    vars(run).update({name: _number(tree["run"][name]) for name in RUN})
    run.first_iteration = count("first_iteration", tree["first_iteration"], lowest=0)
    count("iteration", run.iteration, lowest=0)
    run.opened, run.passes_before = f.open(), at_least("passes", _number(tree["passes"]), 0.0)
    gap, iteration = tree["smallest_gap"]
    run.smallest_gap = _number(gap), count("smallest_gap", iteration, lowest=0)
    run.best, run.trace = _decode("Point", tree["best"], f), Trace(tree["trace"])
    vars(lower).update({name: _number(tree["lower_bound"][name]) for name in LOWER_BOUND})
    lower.count, lower.due = (count(name, tree["lower_bound"][name], lowest=0) for name in ("count", "due"))
    lower.witness = None if tree["witness"] is None else _decode("Array", tree["witness"], f, f.shape)
    averages = [(_decode("Minorant", m, f), z) for m, z in tree["averages"]]
    if len(averages) != len(lower.averages) or any((z is None) is not lower.factored for _, z in averages):
        raise ValueError("its averages of tangents are of another kind of run")
    lower.averages = [AveragedMinorant(m, None if z is None else _decode("Array", z, f, f.shape)) for m, z in averages]


def _kept(kind: Any) -> dict[str, str]:
    """The fields of a class of states that a checkpoint keeps, with their declared types."""
    return {each.name: str(each.type) for each in fields(kind) if not each.metadata.get("transient")}


def _read_state(tree: dict[str, Any], f: SmoothFunction, first: State) -> State:
    """The state of a snapshot: of the class of the first one, with fields of the types that the class declares."""
    kind: Any = type(first)
    declared = _kept(kind)
    if tree["class"] != kind.__name__ or tree.keys() != declared.keys() | {"class"}:
        raise ValueError("its state is of another class or has other fields")
    values: dict[str, Any] = {}
    for name, declaration in declared.items():
        type_name, _, optional = declaration.partition(" | ")
        missing = tree[name] is None and optional == "None"
        values[name] = None if missing else _decode(type_name, tree[name], f)
    state: State = kind(**values, solver=first.solver)
    count("t", state.t, lowest=0)
    if state.active_set is not None:
        state.active_set.check()
    return state


def _encode(value: Any) -> Any:
    """A point, a minorant or a parameter as arrays and scalars; other values as they are."""
    if isinstance(value, Point):
        b = value.intercept
        return {"type": "Point", "w": _encode(value.w), "intercept": None if b is None else np.asarray(b)}
    if isinstance(value, Minorant):
        return {"type": "Minorant", **{each.name: _encode(getattr(value, each.name)) for each in fields(value)}}
    return pack(value) if isinstance(value, Structured) else value


def _decode(kind: str, value: Any, f: SmoothFunction, shape: Any = None) -> Any:
    """Undo `_encode` for a value of a declared type, with the type, shapes and finite numbers checked."""
    if isinstance(value, dict) and "type" in value and kind in ("Any", value["type"]):
        if value["type"] == "Minorant":
            gradient = _decode("Array", value["gradient"], f, f.shape)
            numbers = {name: _number(part) for name, part in value.items() if name not in ("type", "gradient")}
            return Minorant(gradient=gradient, **numbers)
        b = None if value["intercept"] is None else _decode("Array", value["intercept"], f, f.structure.intercept_shape)
        return f.point(_decode("Array", value["w"], f, f.shape), b)
    if kind in ("Point", "Minorant"):
        raise ValueError(f"a {kind} was expected, got {value!r:.80}")
    if kind == "Array":
        value = (
            unpack(value, f.structure.pattern) if isinstance(value, dict) else value
        )  # on the very pattern of the data
        if not isinstance(value, np.ndarray | Structured) or shape not in (None, value.shape):
            raise ValueError(f"an array of shape {shape} was expected, got {value!r:.80}")
        if isinstance(value, np.ndarray):
            all_finite("array", real_array("array", value))
    if kind == "float":
        return _number(value)
    if kind == "int" and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
        raise ValueError(f"a whole number was expected, got {value!r:.80}")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"a number was expected, got {value!r:.80}")
    return value


def _record(solver: Any) -> Any:
    """The solver as a tree of names and numbers; classes outside the package are recorded by their name alone."""
    if solver is None or isinstance(solver, bool | int | float | str | np.generic):
        return solver
    name, kind = type(solver).__name__, _classes().get(type(solver).__name__)
    if kind is not type(solver):
        return {"class": name}
    return {"class": name, "settings": {each.name: _record(getattr(solver, each.name)) for each in fields(kind)}}


def _rebuild(tree: Any) -> Any:
    """Undo `_record`; only classes of the package are made."""
    if not isinstance(tree, dict):
        return tree
    if tree["class"] not in _classes() or "settings" not in tree:
        raise ValueError(f"{tree['class']} is not a class of projfree")
    return _classes()[tree["class"]](**{name: _rebuild(value) for name, value in tree["settings"].items()})


def _classes() -> dict[str, Any]:
    """The classes that a record can name: the package's solvers, step rules and samplings."""
    parts = [getattr(part, name) for part in (steps, sampling) for name in dir(part)]
    return {kind.__name__: kind for kind in (*SOLVERS, *parts) if isinstance(kind, type) and is_dataclass(kind)}
