"""Number of threads, thread pool, and limit on BLAS threads, all of which work after a fork.

OpenBLAS itself does not work after a fork that occurs while another thread is in a BLAS call: the child process hangs
in its first call.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from itertools import pairwise
from threading import RLock, get_ident
from typing import Any

import numpy as np

from projfree.checks import Array

#: For fewer stored entries than this, starting threads costs more than it saves.
MIN_PARALLEL_ENTRIES = 20_000

# Acquired while the state of this module changes, and during a fork, so that a child process has a consistent state.
_lock = RLock()
_pool: ThreadPoolExecutor | None = None
# The active limits on BLAS, each with its thread, and the previous thread numbers of the libraries.
_limit_holders: dict[object, int] = {}
_saved_limits: dict[Any, int] = {}


def default_threads() -> int:
    """Return the number of cores that this process may use, or ``OMP_NUM_THREADS`` if that is smaller."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # a list has a number for each level
    return min(cores, int(wanted)) if wanted.isdecimal() and int(wanted) > 0 else cores


def get_lock(owner: Any) -> Any:
    """Return the lock of an object, created on first use.

    A child process after a fork creates a new one, because the thread that acquired the old one may not exist there.
    """
    if owner.lock is None or owner.lock[0] != os.getpid():
        with _lock:
            if owner.lock is None or owner.lock[0] != os.getpid():
                owner.lock = os.getpid(), RLock()
    return owner.lock[1]


def parallel_for(work: Callable[[int], None], count: int, threads: int) -> None:
    """Call ``work(0), ..., work(count - 1)`` in any order on several threads; raise the first exception.

    The calling thread takes part and never waits for a call that has not started, so calls may be nested and
    concurrent. No call is running when this function returns or raises. Worker threads inherit the context of the
    calling thread, such as its deadline.
    """
    global _pool
    if min(threads, count) <= 1:
        for k in range(count):
            work(k)
        return
    remaining = iter(range(count))  # `next` is atomic: no number is used twice

    def run_remaining() -> None:
        try:
            for k in remaining:
                work(k)
        finally:
            deque(remaining, maxlen=0)  # after an exception no further call starts

    helpers: list[Future[None]] = []
    try:
        for _ in range(min(threads, count) - 1):
            with _lock:
                _pool = _pool or ThreadPoolExecutor(thread_name_prefix="projfree")
                helpers.append(_pool.submit(copy_context().run, run_remaining))
        run_remaining()
    finally:
        deque(remaining, maxlen=0)
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()


def parallel_for_rows(work: Callable[[int, int], None], indptr: Array) -> None:
    """Call ``work(start, stop)`` on ranges of rows of a compressed pattern with about equal numbers of entries.

    Rows must be independent, because the ranges depend on the number of threads.
    """
    threads = default_threads() if indptr[-1] >= MIN_PARALLEL_ENTRIES else 1
    inner = np.searchsorted(indptr, np.linspace(0, int(indptr[-1]), threads + 1)[1:-1])
    ranges = list(pairwise(np.unique([0, *inner, len(indptr) - 1]).tolist()))
    parallel_for(lambda k: work(*ranges[k]), len(ranges), threads)


@cache
def _blas_libraries() -> list[Any]:
    """Return the BLAS libraries of NumPy and SciPy; SciPy is imported, because only loaded libraries can be limited."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries


@contextmanager
def single_blas_thread(limit: bool = True) -> Iterator[None]:
    """Limit BLAS to one thread if ``limit``, against oversubscription and a varying order of summation.

    Blocks may be nested and concurrent: the limit applies to the whole process from the start of the first block to the
    end of the last one.
    """
    if not limit:
        yield
        return
    holder = object()
    try:  # also on KeyboardInterrupt
        with _lock:
            _limit_holders[holder] = get_ident()
            _update_limit()
        yield
    finally:
        with _lock:
            _limit_holders.pop(holder, None)
            _update_limit()


def _update_limit() -> None:
    """Limit BLAS if there are active limits; otherwise restore numbers that nobody else has changed meanwhile."""
    if bool(_limit_holders) == bool(_saved_limits):
        return
    if _limit_holders:
        _saved_limits.update({library: library.num_threads for library in _blas_libraries()})
        numbers = dict.fromkeys(_saved_limits, 1)
    else:
        numbers = {library: number for library, number in _saved_limits.items() if library.num_threads == 1}
        _saved_limits.clear()
    for library, number in numbers.items():
        # Since version 3.8 threadpoolctl allows only the thread that last set the number of OpenBLAS threads to change
        # it, but another thread may restore it.
        drop = getattr(library, "clear_controlling_thread", lambda force: None)
        drop(force=True)
        library.set_num_threads(number)
        drop(force=True)


def _reset_after_fork() -> None:
    """Discard the thread pool and the limits of other threads, which do not exist in the child process."""
    global _pool
    _pool = None
    for holder in [holder for holder, thread in _limit_holders.items() if thread != get_ident()]:
        del _limit_holders[holder]
    _update_limit()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_reset_after_fork)
