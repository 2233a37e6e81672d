"""Ids of users and items in text files: whole numbers where these say the same, else text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.estimators.completion.labels import LIMIT

#: Whole numbers as they are printed, and as a column of floats prints them.
PLAIN, AS_FLOATS = re.compile(r"0|-?[1-9][0-9]*"), re.compile(r"(0|-?[1-9][0-9]*)\.0")


def as_ids(column: Any) -> Any:
    """A column of text as integers, or as it is where these would change an id: 007 is neither 07 nor 7."""
    import pandas as pd

    codes, found = pd.factorize(column)
    numbers = _whole([str(label).strip() for label in found])
    if numbers is None or (codes < 0).any():
        return column
    return pd.Series(numbers[codes], index=column.index, name=column.name)


def _whole(labels: list[str]) -> Array | None:
    """Labels as integers, None where one of them is not printed as such, or is too large for them."""
    for form in (PLAIN, AS_FLOATS):
        if all(form.fullmatch(label) for label in labels):
            numbers = [int(label.removesuffix(".0")) for label in labels]
            return np.array(numbers, np.int64) if all(abs(number) < LIMIT for number in numbers) else None
    return None
