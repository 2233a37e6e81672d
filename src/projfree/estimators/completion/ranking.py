"""The best of many scores: items for users, and users or items that are alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from projfree.checks import Array
from projfree.estimators.completion.cold import Completed
from projfree.estimators.completion.observed import Observed

#: Scores that are held at once, of some rows and all columns.
BLOCK = 1 << 22


def _blocks(rows: Array, width: int) -> Iterator[Array]:
    """Some of the rows at a time, so many as scores are held at once; a block without rows where there are none."""
    size = max(1, BLOCK // max(width, 1))
    for start in range(0, max(len(rows), 1), size):
        yield rows[start : start + size]


def best(scores: Array, n: int) -> Array:
    """The places of the ``n`` highest scores of each row, from high to low; of equal scores the first places."""
    n = min(n, scores.shape[1])
    if not 0 < n < scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")[:, :n]
    some = np.sort(np.argpartition(-scores, n - 1, axis=1)[:, :n], axis=1)
    found = np.take_along_axis(scores, some, axis=1)
    least = found.min(axis=1, keepdims=True)
    # Of scores that are equal to the least of the best, a partition takes any.
    tied = (scores == least).sum(axis=1) > (found == least).sum(axis=1)
    order = np.take_along_axis(some, np.argsort(-found, axis=1, kind="stable"), axis=1)
    order[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :n]
    return order


def ranked(model: Completed, rows: Array, n: int, seen: Observed | None) -> Iterator[tuple[Array, Array]]:
    """For each row the columns of its ``n`` highest entries and these, a block of rows at a time.

    Entries that were observed are left out where ``seen`` is given; what stands in place of missing ones has the score
    NaN.
    """
    for block in _blocks(rows, len(model.items.counts)):
        u = model.block(block)
        if seen is not None:
            u[seen.of_rows(block)] = -np.inf
        top = best(u, n)
        scores = np.take_along_axis(u, top, axis=1)
        yield top, np.where(np.isneginf(scores), np.nan, scores)


def alike(table: Array, other: Array, rows: Array, n: int) -> tuple[Array, Array]:
    r"""For each row the ``n`` others with the largest cosine, and the cosines.

    Rows are compared as those of ``table @ other.T``: by :math:`a^T G b` with :math:`G = O^T O`, which does not depend
    on how the matrix was factored. The cosine with zero is zero.
    """
    values, vectors = np.linalg.eigh(other.T @ other)
    whole = table @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    lengths = np.linalg.norm(whole, axis=1, keepdims=True)
    whole = np.divide(whole, lengths, out=np.zeros_like(whole), where=lengths > 0.0)
    found = []
    for block in _blocks(rows, len(table)):
        cosines = whole[block] @ whole.T
        cosines[np.arange(len(block)), block] = -np.inf
        top = best(cosines, min(n, len(table) - 1))
        found.append((top, np.clip(np.take_along_axis(cosines, top, axis=1), -1.0, 1.0)))
    every, sizes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return every, sizes
