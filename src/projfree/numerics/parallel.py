"""Threads over the rows of a sparse pattern; rows are independent, so answers do not depend on how many there are."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np

from projfree.checks import Array

#: Pieces for each thread, so that one heavy piece does not keep the others waiting.
PIECES = 16
#: With fewer stored entries than this the work is done before a thread has started.
WORTHWHILE = 20_000


def cores() -> int:
    """As many threads as this process may use: its cores, or fewer where ``OMP_NUM_THREADS`` says so."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(own, int(asked)) if asked.isdigit() and int(asked) > 0 else own


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="projfree-rows")


def over_rows(work: Callable[[int, int], None], indptr: Array) -> None:
    """Call ``work(start, stop)`` on ranges of rows that hold about equally many stored entries and cover all rows."""
    rows, threads = len(indptr) - 1, cores()
    if threads <= 1 or indptr[-1] < WORTHWHILE:
        work(0, rows)
        return
    marks = np.linspace(0, int(indptr[-1]), PIECES * threads + 1)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(indptr, marks[1:-1]), [rows]])).tolist()
    list(_pool(threads).map(lambda cut: work(*cut), pairwise(cuts)))
