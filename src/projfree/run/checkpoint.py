"""`Checkpoint`: a run on disk, from which it continues bit for bit."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, is_dataclass
from typing import Any, cast

import numpy as np

import projfree.sampling as sampling
import projfree.steps as steps
from projfree import persist
from projfree.algebra import Minorant, Point, Structured, pack, unpack
from projfree.checks import all_finite, count, instance, stacklevel
from projfree.objectives.base import SmoothFunction
from projfree.run.loop import REMEDY, Run, fingerprint, kept_fields, refuse_other
from projfree.run.lower_bound import AveragedMinorant
from projfree.run.result import Trace
from projfree.solvers import SOLVERS
from projfree.solvers.base import Solver
from projfree.solvers.pairwise import ActiveSet

KIND = "projfree checkpoint"
#: What is stored of a run and of its lower bound, beside the state of the solver and the trace.
RUN = (
    *("best", "first_iteration", "passes", "seconds", "value", "first_value", "latest_gap", "centre_value"),
    *("next_tangent", "next_certificate"),
)
LOWER_BOUND = ("averages", "witness", "count", "due", "bound", "allowance", "witnessed")


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
            solver = _decode(tree)
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
    return {
        "problem": fingerprint(run.f, run.ball, run.solver),
        "solver": _encode(run.solver),
        "state": {"class": type(run.state).__name__} | _members(run.state, kept_fields(type(run.state))),
        "run": _members(run, RUN),
        "lower_bound": _members(run.lower_bound, LOWER_BOUND),
        "trace": run.trace.columns(),
    }


def _restore(run: Run, tree: dict[str, Any]) -> None:
    """Put a run where a snapshot is; the running one too, so that it remembers no more than a resumed one."""
    kind = cast("Any", type(run.state))
    run.unproved = True  # and trusts no bound of the file
    saved = dict(tree["state"])
    if saved.pop("class") != kind.__name__:
        raise ValueError("its state is of another class")
    run.state = kind(**_restored(run.state, kept_fields(kind), saved, run.f), solver=run.state.solver)
    vars(run.lower_bound).update(_restored(run.lower_bound, LOWER_BOUND, tree["lower_bound"], run.f))
    found = _restored(run, RUN, tree["run"], run.f)
    run.opened, run.passes_before = run.f.open(), found.pop("passes")
    vars(run).update(found)
    count("iteration", run.iteration, lowest=0)
    run.trace = Trace(tree["trace"])


def _members(owner: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: _encode(getattr(owner, name)) for name in names}


def _restored(owner: Any, names: Collection[str], tree: dict[str, Any], f: SmoothFunction) -> dict[str, Any]:
    """The members of a run or a state as they were, each of the kind that it has in ``owner``."""
    if tree.keys() != set(names):
        raise ValueError(f"it has other members: {', '.join(map(str, sorted(tree.keys() ^ set(names))))}")
    return {name: _like(getattr(owner, name), _decode(tree[name], f)) for name in names}


def _like(own: Any, value: Any) -> Any:
    """The value, if it is of the kind that the run has in its place: a count, a number or an array."""
    if isinstance(own, list):
        return [_like(mine, each) for mine, each in zip(own, value, strict=True)]
    if isinstance(own, int):
        return count("number", value, lowest=0)
    kinds = int | float | np.integer | np.floating if isinstance(own, float) else type(own)
    if own is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
        raise ValueError(f"{type(own).__name__} was expected, got {value!r:.80}")
    return value


def _encode(value: Any) -> Any:
    """A tree: objects by the name of their class and their fields, those of classes of the user's by the name alone."""
    if isinstance(value, list):
        return [_encode(each) for each in value]
    if isinstance(value, Structured):
        return pack(value)
    if not is_dataclass(value):
        return value
    name = type(value).__name__
    return {"class": name} | (_members(value, _fields(type(value))) if _classes().get(name) is type(value) else {})


def _decode(value: Any, f: SmoothFunction | None = None) -> Any:
    """Undo `_encode`; only classes of the package are made, and points, minorants and vertices are those of ``f``."""
    if isinstance(value, list):
        return [_decode(each, f) for each in value]
    if not isinstance(value, dict):
        return value
    if "class" not in value:  # on the very pattern of the data
        return unpack(value, None if f is None else f.structure.pattern)
    kind = _classes().get(value["class"])
    if kind is None:
        raise ValueError(f"{value['class']} is not a class of projfree")
    found = {name: _decode(each, f) for name, each in value.items() if name != "class"}
    if kind is Point and f is not None:
        b, shape = found["intercept"], f.structure.intercept_shape
        if b is not None and shape not in (None, b.shape):
            raise ValueError(f"an intercept of shape {shape} was expected, got {b!r:.80}")
        return f.point(found["w"], None if b is None else all_finite("intercept", b))
    if kind is Minorant and f is not None:
        g = found.pop("gradient")
        if g.shape != f.shape:
            raise ValueError(f"a gradient of shape {f.shape} was expected, got {g.shape}")
        return Minorant(gradient=g, **{name: float(number) for name, number in found.items()})
    if kind is ActiveSet and f is not None:
        active = ActiveSet(tuple(f.shape), **found)
        active.check()
        return active
    return kind(**found)


def _fields(kind: Any) -> tuple[str, ...]:
    """The fields of a class that are stored; a point is no longer a mixture."""
    return ("w", "intercept") if kind is Point else tuple(kept_fields(kind))


def _classes() -> dict[str, Any]:
    """The classes that are stored with their fields: the package's solvers, step rules, samplings and algebra."""
    parts = [getattr(part, name) for part in (steps, sampling) for name in dir(part)]
    every = (*SOLVERS, Point, Minorant, ActiveSet, AveragedMinorant, *parts)
    return {kind.__name__: kind for kind in every if isinstance(kind, type) and is_dataclass(kind)}
