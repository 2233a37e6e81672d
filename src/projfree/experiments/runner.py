"""Running experiments: task after task within a budget, each stored when it is complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from projfree.experiments.base import Experiment, Mode, Row, Task
from projfree.experiments.sources import release
from projfree.experiments.store import DONE, FAILED, Store
from projfree.runtime import single_blas

#: A task may take this many fair shares of the time left, since others need less.
SHARES = 1.3


@dataclass(frozen=True)
class Progress:
    """Where a run stands, for whoever shows it."""

    experiment: Experiment
    task: Task
    done: int
    total: int
    #: Seconds that the tasks still to come may take at most.
    left: float


def run(
    experiments: Sequence[Experiment], mode: Mode, store: Store, show: Callable[[Progress], None] | None = None
) -> list[str]:
    """Measure what the store does not hold yet; return the tasks that failed, each with its reason.

    A failure is recorded and does not stop the others. An interruption loses the running task alone.
    """
    import scipy.linalg  # noqa: F401 - before the limit is set, which holds for libraries that are loaded by then

    with single_blas():  # its threads wait for each other where another process has a core, and times would say so
        return _run(experiments, mode, store, show)


def _run(
    experiments: Sequence[Experiment], mode: Mode, store: Store, show: Callable[[Progress], None] | None
) -> list[str]:
    plan = [(experiment, experiment.tasks(mode)) for experiment in experiments]
    finished, failures = store.done(), []
    done, total = 0, sum(len(tasks) for _, tasks in plan)
    for place, (experiment, tasks) in enumerate(plan):
        later = sum(other.budget[mode] for other, _ in plan[place + 1 :])
        begun = time.perf_counter()
        for k, task in enumerate(tasks):
            left = max(0.0, experiment.budget[mode] - (time.perf_counter() - begun))
            key = f"{experiment.name}/{task.key}"
            if key not in finished:
                if show is not None:
                    show(Progress(experiment, task, done, total, left + later))
                weights = sum(other.weight for other in tasks[k:])
                seconds = max(0.2, SHARES * left * task.weight / weights)
                failure = _measure(experiment, task, key, min(seconds, max(left, 0.2)), store)
                failures += [failure] if failure else []
            done += 1
        release()
    return failures


def _measure(experiment: Experiment, task: Task, key: str, seconds: float, store: Store) -> str:
    begun, rows = time.perf_counter(), list[Row]()
    place = {"experiment": experiment.name, "task": key}
    try:
        rows = [{**row, **place} for row in task.run(seconds)]
        failure = ""
    except Exception as error:
        failure = f"{key}: {type(error).__name__}: {error}"
        rows = [{**place, "measure": FAILED, "value": 1.0, "note": failure}]
    else:
        rows.append({**place, "measure": DONE, "value": time.perf_counter() - begun, "seconds": seconds})
    store.add(rows)
    return failure
