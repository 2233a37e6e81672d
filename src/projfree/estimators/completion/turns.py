"""Tasks that share a time limit, one after the other or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from projfree.deadline import deadline, ends, remaining, until


def in_turns(tasks: Sequence[Callable[[], Any]], n_jobs: int | None) -> list[Any]:
    """The results of tasks, each of which has its share of the time that is left.

    All of them end by the deadline of the caller. A task that begins has what is left until then, divided by the number
    of tasks that its process still has to do, itself included; who ends sooner leaves the others more.
    """
    processes, end = effective_n_jobs(n_jobs), ends()
    rounds = -(-len(tasks) // processes)
    given = (delayed(_in_turn)(end, rounds - k // processes, task) for k, task in enumerate(tasks))
    return list(Parallel(n_jobs=n_jobs)(given))


def _in_turn(end: float, rounds: int, task: Callable[[], Any]) -> Any:
    with until(end), deadline(remaining() / rounds):
        return task()
