"""`OffsetModel`: what is known of users and items without a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.completion.alternating import offsets_alone
from projfree.completion.offsets import OffsetObjective


@dataclass(frozen=True)
class OffsetModel:
    """The best offsets without a matrix, and how many ratings each user and each item has."""

    rows: Array
    cols: Array
    shift: float
    row_counts: Array
    col_counts: Array

    @classmethod
    def of(cls, e: OffsetObjective) -> OffsetModel:
        """The offsets of some ratings."""
        now, at = offsets_alone(e), e.data.pattern
        return cls(now.rows, now.cols, now.shift, np.diff(at.indptr), np.bincount(at.indices, minlength=e.shape[1]))
