"""Threads over blocks of rows, with sums that do not depend on how many there are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from projfree.checks import Array


def default_threads() -> int:
    """As many threads as this process may use: its cores, or fewer where ``OMP_NUM_THREADS`` says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(asked)) if asked.isdigit() and int(asked) > 0 else cores


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="projfree")


def over_blocks(work: Callable[[int], None], count: int, threads: int) -> None:
    """Call ``work(0), ..., work(count - 1)``, in any order, on so many threads; the first exception is raised."""
    if threads <= 1 or count <= 1:
        for k in range(count):
            work(k)
        return
    todo, lock = iter(range(count)), Lock()

    def take() -> Iterator[int]:
        while True:
            with lock:
                k = next(todo, None)
            if k is None:
                return
            yield k

    def worker(_: int) -> None:
        for k in take():
            work(k)

    list(_pool(threads).map(worker, range(min(threads, count))))


def tree_sum(parts: Array) -> Array:
    """The sum over the first axis as a binary tree, the same for any number of threads; ``parts`` is overwritten."""
    count = len(parts)
    while count > 1:
        half = (count + 1) // 2
        parts[: count - half] += parts[half:count]
        count = half
    total: Array = parts[0].copy()
    return total


@lru_cache(maxsize=2)
def _controller(with_scipy: bool) -> Any:
    """A handle on the BLAS libraries that are loaded; SciPy brings one of its own, and may come later than NumPy's."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_blas(wanted: bool = True) -> Iterator[None]:
    """Keep BLAS to one thread, if wanted: its threads would fight with ours, and add in another order."""
    if not wanted:
        yield
        return
    with _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
        yield
