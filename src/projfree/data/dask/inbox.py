"""Short answers that arrive together with the news that their tasks have ended, and need not be fetched."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

#: Bytes of an answer that is short. Dask remembers the last thousand events of a topic, and as many messages.
SHORT = 1 << 14


def answered(worker: Any, topic: str, answer: Any) -> bytes:
    """The result of the task that runs, which is sent at once if it is short.

    It is pickled here, because many small arrays cost Dask a message each.
    """
    result = pickle.dumps(answer, protocol=5)
    if len(result) <= SHORT:
        worker.log_event(topic, {"key": worker.get_current_task(), "answer": result})
    return result


class Inbox:
    """Answers that have come as events of Dask.

    To gather the result of a task takes four messages, one after the other, as many as to have it run. An event travels
    with the message that the task has ended. Where it is lost, with a connection for instance, the result is gathered.

    Parameters
    ----------
    client : distributed.Client
        Which hears of the events.
    """

    def __init__(self, client: Any) -> None:
        self.topic, self._answers = f"projfree-{client.id}", dict[str, bytes | None]()
        client.subscribe_topic(self.topic, self._take)

    def expect(self, keys: Iterable[str]) -> None:
        """Keep the answers of these tasks from now on."""
        self._answers |= dict.fromkeys(keys)

    def forget(self, key: str) -> None:
        """Keep the answer of this task no longer."""
        self._answers.pop(key, None)

    def __getitem__(self, key: str) -> bytes | None:
        """The answer of a task, None where none has come."""
        return self._answers.get(key)

    def _take(self, event: tuple[float, dict[str, Any]]) -> None:
        key = event[1]["key"]
        if key in self._answers:
            self._answers[key] = event[1]["answer"]


#: One for each client: topics stay where they are until the scheduler ends.
_INBOXES: WeakKeyDictionary[Any, Inbox] = WeakKeyDictionary()


def inbox_of(client: Any) -> Inbox:
    """The inbox of a client."""
    found = _INBOXES.get(client)
    if found is None:
        found = _INBOXES[client] = Inbox(client)
    return found
