"""Columns by number, by name or by mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import shown


def free_columns(free: Any, d: int, model: Any) -> tuple[int, ...]:
    """The numbers of the columns of a fit that the ball does not hold, in increasing order."""
    names = getattr(model, "feature_names_in_", None)
    chosen = np.atleast_1d(np.asarray(free))
    if chosen.dtype.kind in "OUT":
        known = {} if names is None else {str(name): j for j, name in enumerate(names)}
        missing = [str(name) for name in chosen if str(name) not in known]
        if missing:
            raise ValueError(f"`free` must name columns of `X`, got {shown(missing[0])}.")
        places = np.array([known[str(name)] for name in chosen])
    elif chosen.dtype == bool:
        if chosen.shape != (d,):
            raise ValueError(f"`free` as a mask must have one entry for each of the {d} columns, got {chosen.shape}.")
        places = np.flatnonzero(chosen)
    else:
        if (
            chosen.dtype.kind not in "iu"
            or chosen.ndim != 1
            or (len(chosen) and not -d <= chosen.min() <= chosen.max() < d)
        ):
            raise ValueError(f"`free` must be numbers of columns below {d}, their names or a mask, got {shown(free)}.")
        places = chosen % d
    out = tuple(int(j) for j in np.unique(places))
    if len(out) == d:
        raise ValueError(
            "`free` must leave at least one column for the ball; without one there is nothing to constrain."
        )
    return out
