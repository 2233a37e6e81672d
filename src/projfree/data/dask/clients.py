"""The client of a cluster that data are made on."""

from __future__ import annotations

from typing import Any


def usable_client(client: Any) -> Any:
    """The client to use, None where there is none."""
    if client is None:
        try:
            from distributed import get_client

            client = get_client()
        except (ImportError, ValueError):
            return None
    if not hasattr(client, "asynchronous"):
        raise TypeError(
            f"`client` must be a `distributed.Client`, got {type(client).__name__}; for an address use "
            "`Client(address)`."
        )
    if client.asynchronous:
        raise TypeError(
            "`client` must be synchronous, because a fit waits for its rounds, got an asynchronous one; use "
            "`Client(address)` in a thread of its own, e.g. with `asyncio.to_thread`."
        )
    if client.status in ("closing", "closed"):
        raise ValueError("`client` must be open, got one that is closed; connect anew with `Client(address)`.")
    _leave_pool()
    return client


def _leave_pool() -> None:
    """Leave the thread to others where a task of Dask asks for data: else it waits for tasks that wait for it."""
    from distributed import secede
    from distributed.threadpoolexecutor import thread_state

    if getattr(thread_state, "proceed", False):  # a task that has not left already, as `Client.get` tells it
        secede()
