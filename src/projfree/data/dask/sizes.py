"""Warnings about how a table is cut into partitions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from projfree.data.dask.cluster import ClusterRounds

#: More partitions than this on one worker bring back more sums than they have to.
MOST_PARTITIONS = 64
#: Partitions of fewer bytes take less time than the task that works on them, where there are more than a few.
TINY, FEW = 1 << 20, 8
#: The share of a worker's memory that Dask fills with results before it moves some to the disk, by default.
FILLED = 0.6


def warn_about_sizes(rounds: ClusterRounds) -> None:
    """Say how to rechunk where partitions are tiny, too many, or too large for a worker, or all of them for all."""
    facts, most = rounds.facts, rounds.most_on_one_worker()
    mean = sum(one.nbytes for one in facts) / max(1, len(facts))
    rows = max(1, sum(one.n for one in facts) // max(1, 4 * len(rounds.limits())))
    way = f"rechunk, e.g. `X.rechunk(({rows}, -1))` or `X.repartition(npartitions={4 * len(rounds.limits())})`"
    if most > MOST_PARTITIONS:
        _warn(f"a worker has {most} partitions, and up to so many sums come back from it in each round; {way}.")
    elif len(facts) > FEW and mean < TINY:
        _warn(f"the {len(facts)} partitions have {mean / 1e3:,.0f} kB on average, which is little for a task; {way}.")
    limits, size = rounds.limits().values(), sum(one.nbytes for one in facts)
    limit, largest = min(limits, default=0), max(facts, key=lambda one: one.nbytes, default=None)
    if largest is not None and 0 < limit < largest.nbytes:
        _warn(
            f"partition {largest.number} takes {largest.nbytes / 1e6:,.1f} MB, and a worker has {limit / 1e6:,.1f} MB "
            f"of memory; {way}, or start workers with more memory."
        )
    elif limit > 0 and size > FILLED * sum(limits):
        _warn(
            f"the partitions take {size / 1e6:,.1f} MB, and Dask keeps about {FILLED * sum(limits) / 1e6:,.1f} MB in "
            "the memory of the workers, so that every round reads from the disk; start more workers, or some with more "
            "memory."
        )


def _warn(text: str) -> None:
    warnings.warn(f"Dask data: {text}", UserWarning, stacklevel=4)
