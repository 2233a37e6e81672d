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
from projfree.checks import all_finite, count, instance, real_array, stacklevel
from projfree.objectives.base import SmoothFunction
from projfree.run.loop import REMEDY, Run, fingerprint, kept_fields, refuse_other
from projfree.run.result import Trace
from projfree.solvers import SOLVERS
from projfree.solvers.base import Solver
from projfree.solvers.pairwise import ActiveSet

KIND = "projfree checkpoint"
#: What is stored of a run, of its lower bound and of the averages in it, and the types that are read back.
RUN = {"best": "Point", "first_iteration": "int"} | dict.fromkeys(
    ("passes", "seconds", "value", "first_value", "latest_gap", "centre_value", "next_tangent", "next_certificate"),
    "float",
)
LOWER_BOUND = {"witness": "Array | None", "count": "int", "due": "int"} | dict.fromkeys(
    ("bound", "allowance", "witnessed"), "float"
)
AVERAGE = {"m": "Minorant", "z": "Array | None"}


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
            warnings.warn(
                f"A checkpoint is missing: {error.strerror} The run goes on; after a stop it would go on from the last "
                "one that was written, so make room on the disk.",
                RuntimeWarning,
                stacklevel=stacklevel(),
            )
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
    kind = type(run.state)
    return {
        "problem": fingerprint(run.f, run.ball, run.solver),
        "solver": _record(run.solver),
        "state": {"class": kind.__name__} | _encode_members(run.state, kept_fields(kind)),
        "run": _encode_members(run, RUN),
        "lower_bound": _encode_members(run.lower_bound, LOWER_BOUND),
        "averages": [_encode_members(average, AVERAGE) for average in run.lower_bound.averages],
        "trace": run.trace.columns(),
    }


def _restore(run: Run, tree: dict[str, Any]) -> None:
    """Put a run where a snapshot is; the running one too, so that it remembers no more than a resumed one."""
    f, kind = run.f, cast("Any", type(run.state))
    run.unproved = True  # and trusts no bound of the file
    saved = dict(tree["state"])
    if saved.pop("class") != kind.__name__:
        raise ValueError("its state is of another class")
    run.state = kind(**_decode_members(saved, kept_fields(kind), f), solver=run.state.solver)
    numbers = _decode_members(tree["run"], RUN, f)
    run.opened, run.passes_before = f.open(), numbers.pop("passes")
    vars(run).update(numbers)
    vars(run.lower_bound).update(_decode_members(tree["lower_bound"], LOWER_BOUND, f))
    for average, found in zip(run.lower_bound.averages, tree["averages"], strict=True):
        vars(average).update(_decode_members(found, AVERAGE, f))
    count("iteration", run.iteration, lowest=0)
    run.trace = Trace(tree["trace"])


def _encode_members(owner: Any, kinds: dict[str, str]) -> dict[str, Any]:
    return {name: _encode(getattr(owner, name)) for name in kinds}


def _decode_members(tree: dict[str, Any], kinds: dict[str, str], f: SmoothFunction) -> dict[str, Any]:
    if tree.keys() != kinds.keys():
        raise ValueError(f"it has other members: {', '.join(map(str, sorted(tree.keys() ^ kinds.keys())))}")
    return {name: _decode(kind, tree[name], f) for name, kind in kinds.items()}


def _encode(value: Any) -> Any:
    """A point, a minorant or a parameter as arrays and scalars; other values as they are."""
    if isinstance(value, Point):
        b = value.intercept
        return {"w": _encode(value.w), "intercept": None if b is None else np.asarray(b)}
    if isinstance(value, Minorant | ActiveSet):
        return _encode_members(value, kept_fields(type(value)))
    return pack(value) if isinstance(value, Structured) else value


def _decode(kind: str, value: Any, f: SmoothFunction) -> Any:
    """Undo `_encode` for a value of a declared type, with the type, shapes and finite numbers checked."""
    kind, _, optional = kind.partition(" | ")
    if value is None and optional:
        return None
    if kind == "Point":
        found = _decode_members(value, {"w": "Array", "intercept": "Array | None"}, f)
        w, b, shape = found["w"], found["intercept"], f.structure.intercept_shape
        if b is not None and shape not in (None, b.shape):
            raise ValueError(f"an intercept of shape {shape} was expected, got {b!r:.80}")
        return f.point(w, b)
    if kind == "Minorant":
        found = _decode_members(value, kept_fields(Minorant), f)
        if found["gradient"].shape != f.shape:
            raise ValueError(f"a gradient of shape {f.shape} was expected, got {found['gradient'].shape}")
        return Minorant(**found)
    if kind == "ActiveSet":
        active = ActiveSet(tuple(f.shape), **_decode_members(value, kept_fields(ActiveSet), f))
        active.check()
        return active
    if kind == "Array":
        if isinstance(value, dict):
            return unpack(value, f.structure.pattern)  # on the very pattern of the data
        if not isinstance(value, np.ndarray):
            raise ValueError(f"an array was expected, got {value!r:.80}")
        return all_finite("array", value if value.dtype.kind == "i" else real_array("array", value))
    if kind == "int":
        return count("number", value, lowest=0)
    if kind == "float" and (isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating)):
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
