"""Running experiments: task after task, each stored when it is complete, all of them or one part of several."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from projfree.runtime import single_blas
from reproduction import machine
from reproduction.base import Experiment, Mode, Row, Task
from reproduction.sources import release
from reproduction.store import DONE, FAILED, Store

Planned = tuple[Experiment, Task]


@dataclass(frozen=True)
class Progress:
    """Where a run stands, for whoever shows it."""

    experiment: Experiment
    task: Task
    done: int
    total: int
    #: About the seconds that the tasks still to come take on an idle machine.
    left: float


def planned(experiments: Sequence[Experiment], mode: Mode, part: tuple[int, int] = (1, 1)) -> list[Planned]:
    """The tasks of the ``part[0]``-th of ``part[1]`` parts of about equal time, in the order of the report."""
    every = [(experiment, task) for experiment in experiments for task in experiment.tasks(mode)]
    k, parts = part
    total, before, out = sum(task.seconds for _, task in every), 0.0, []
    for experiment, task in every:
        middle = before + task.seconds / 2
        if (k - 1) / parts <= middle / total < k / parts:
            out.append((experiment, task))
        before += task.seconds
    return out


def key_of(planned: Planned) -> str:
    """The name of a task in the table."""
    return f"{planned[0].name}/{planned[1].key}"


def run(
    experiments: Sequence[Experiment],
    mode: Mode,
    store: Store,
    show: Callable[[Progress], None] | None = None,
    part: tuple[int, int] = (1, 1),
) -> list[str]:
    """Measure what the store does not hold yet; return the tasks that failed, each with its reason.

    A failure is recorded and does not stop the others. An interruption loses the running task alone.
    """
    import scipy.linalg  # noqa: F401 - before the limit is set, which holds for libraries that are loaded by then

    store.order = store.order or [key_of(one) for one in planned(experiments, mode)]
    plan = planned(experiments, mode, part)
    finished, failures = store.done(), list[str]()
    with single_blas():  # its threads wait for each other where another process has a core, and times would say so
        for place, (experiment, task) in enumerate(plan):
            if key_of(plan[place]) not in finished:
                if show is not None:
                    left = sum(other.seconds for _, other in plan[place:])
                    show(Progress(experiment, task, place, len(plan), left))
                failure = _measure(experiment, task, key_of(plan[place]), store)
                failures += [failure] if failure else []
            if place + 1 == len(plan) or plan[place + 1][0] is not experiment:
                release()
    return failures


def _measure(experiment: Experiment, task: Task, key: str, store: Store) -> str:
    begun, rows = time.perf_counter(), list[Row]()
    place = {"experiment": experiment.name, "task": key}
    try:
        rows = [{**row, **place} for row in task.run()]
        failure = ""
    except Exception as error:
        failure = f"{key}: {type(error).__name__}: {error}"
        rows = [{**place, "measure": FAILED, "value": 1.0, "note": failure}]
    else:
        rows.append({**place, "measure": DONE, "value": time.perf_counter() - begun, "note": machine.load()})
    store.add(rows)
    return failure
