"""The first adoption of partitions: one task for each worker asks which of them were made there."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

from projfree.data.dask.calling import POLL, Call, Caller
from projfree.data.dask.partition import Facts
from projfree.data.dask.shelf import adopt_made
from projfree.data.dask.standstill import Standstill
from projfree.deadline import stopper

#: The worker that has a partition, and what there is to know about it.
Adopted = tuple[str, Facts | None]


def adopted_where_made(caller: Caller, name: str, futures: list[Any]) -> dict[int, Adopted]:
    """Partitions that are found on the workers that have made them, by their numbers.

    It takes what is easy: a task that has failed, a worker that has died or a partition that has travelled leaves out
    some, which are then adopted one by one.
    """
    _wait(caller, futures)
    numbers = {future.key: number for number, future in enumerate(futures) if future.status == "finished"}
    groups: dict[str, list[tuple[int, str]]] = {}
    for key, addresses in caller.client.who_has([futures[number] for number in numbers.values()]).items():
        for address in addresses[:1]:
            groups.setdefault(address, []).append((numbers[key], key))
    calls = []
    for address, own in groups.items():
        sent = pickle.dumps((name, own, caller.inbox.topic), protocol=5)
        calls.append(Call(partial(tuple, (sent,)), address))
    found: dict[int, Adopted] = {}
    for answer in caller.answers("projfree-adopt", adopt_made, calls):
        address, facts = pickle.loads(answer)
        found |= {number: (address, one) for number, one in facts.items()}
    return found


def _wait(caller: Caller, futures: list[Any]) -> None:
    """Wait until all tasks have ended, or something has gone wrong."""
    from distributed import CancelledError, wait

    async def look() -> None:
        await caller.look_for_workers()
        with caller.client.as_current():
            await wait(futures, timeout=POLL)

    stop, standstill = stopper(), Standstill(caller.client, caller.patience)
    while any(future.status == "pending" for future in futures):
        try:
            caller.client.sync(look)
        except TimeoutError:
            pass
        except CancelledError:
            return
        stop()
        wrong = not caller.workers or standstill.paused()
        if wrong or any(future.status in ("error", "lost") for future in futures):
            return
