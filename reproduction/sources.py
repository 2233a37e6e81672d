"""The data of the experiments: real where they can be had, else a stand-in that says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from projfree.checks import Array
from projfree.datasets import (
    Ratings,
    load_adult,
    load_movielens,
    load_year,
    load_year_sample,
    movielens_stand_in,
    year_stand_in,
)
from reproduction.base import Mode

#: Rows of Adult in quick runs, the first ones; as many as the packaged sample of YearPredictionMSD has.
QUICK_ROWS = 7_000
#: Rows of Adult that the paper has, and ratings of the smaller of its two tables.
ADULT_ROWS, RATINGS = 48_842, 100_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Features and targets with the name that figures carry."""

    X: Array
    y: Array
    name: str
    stand_in: bool = False


@cache
def year(mode: Mode, standardize: bool = True) -> Sample:
    """The packaged sample (quick), or all rows, from the original file or as a stand-in (full)."""
    if mode == "quick":
        sample = load_year_sample(standardize=standardize)
        return Sample(sample.X, sample.y, "YearPredictionMSD sample, 7,000 x 90")
    try:
        whole = load_year(standardize=standardize, download=False)
        return Sample(whole.X, whole.y, "YearPredictionMSD, 515,345 x 90")
    except FileNotFoundError:
        return year_like(515_345, standardize)


@cache
def year_like(n: int, standardize: bool = True) -> Sample:
    """Rows that look like YearPredictionMSD."""
    made = year_stand_in(n, standardize=standardize)
    return Sample(made.X, made.y, f"stand-in for YearPredictionMSD, {n:,} x 90", stand_in=True)


@cache
def adult(mode: Mode) -> Sample:
    """Adult, one-hot; its first 7,000 rows in quick runs."""
    data = load_adult()
    rows = slice(QUICK_ROWS) if mode == "quick" else slice(None)
    return Sample(data.X[rows], data.y[rows], f"Adult, {len(data.y[rows]):,} x 108")


@cache
def ratings(size: Literal["100k", "1m"]) -> tuple[Ratings, bool]:
    """MovieLens where it is at hand, else ratings of the same shape that were generated; and whether they were."""
    try:
        return load_movielens(size, download=False), False
    except FileNotFoundError:
        return movielens_stand_in(size), True


def dense_block(size: Literal["100k", "1m"], users: int, films: int) -> tuple[Ratings, bool]:
    """The ratings of the most active users for the most rated films, renumbered."""
    whole, stand_in = ratings(size)
    keep = []
    for index, side, most in ((whole.rows, 0, users), (whole.cols, 1, films)):
        keep.append(np.sort(np.argsort(-np.bincount(index, minlength=whole.shape[side]), kind="stable")[:most]))
    inside = np.isin(whole.rows, keep[0]) & np.isin(whole.cols, keep[1])
    return replace(
        whole,
        rows=np.searchsorted(keep[0], whole.rows[inside]),
        cols=np.searchsorted(keep[1], whole.cols[inside]),
        values=whole.values[inside],
        shape=(users, films),
        row_ids=whole.row_ids[keep[0]],
        col_ids=whole.col_ids[keep[1]],
        name=f"{whole.name}, densest {users} x {films}",
    ), stand_in


def release() -> None:
    """Forget all data, to free the memory between experiments."""
    for loader in (year, year_like, adult, ratings):
        loader.cache_clear()


def part(table: Sample, share: float, seed: int = 0) -> Sample:
    """A random share of the rows."""
    n = max(50, round(share * len(table.y)))
    rows = np.sort(np.random.default_rng(seed).choice(len(table.y), size=min(n, len(table.y)), replace=False))
    return Sample(table.X[rows], table.y[rows], f"{table.name}, {share:.0%}", table.stand_in)
