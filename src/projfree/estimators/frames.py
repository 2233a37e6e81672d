"""Columns of a data frame that are no numbers: a sentence that names the column and what to use."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import shown

#: Parts of the names of types, in pandas and polars, and what such columns hold.
HELD = {
    "date": "dates",
    "timedelta": "durations",
    "time": "times",
    "duration": "durations",
    "period": "periods",
    "interval": "intervals",
    "categor": "categories",
    "enum": "categories",
}
WAYS = {"categories": "OneHotEncoder()", "text": "OneHotEncoder()", "missing values": "SimpleImputer()"}


def refuse_columns(X: Any) -> Any:
    """``X`` itself, or an error about the first column of a frame that is neither numbers nor convertible to some."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return X
    for name in X.columns:
        column = X[name]
        if not hasattr(column, "dtype"):  # two columns of one name, which scikit-learn refuses or takes by place
            continue
        held = _held(column)
        if held is not None:
            what = WAYS.get(held, "FunctionTransformer(...)")
            raise ValueError(
                f"Column {shown(name)} of `X` holds {held} ({column.dtype}), and features must be numbers; turn it "
                f"into numbers first, e.g. `make_pipeline(ColumnTransformer([('{name}', {what}, ['{name}'])], "
                "remainder='passthrough'), model)`."
            )
    return X


def _held(column: Any) -> str | None:
    """What a column holds that is no number, None where all of it is."""
    kind = str(column.dtype).lower()
    for part, held in HELD.items():
        if part in kind:
            return held
    if any(part in kind for part in ("obj", "str", "utf8")):
        return None if _convertible(column) else "text"
    if str(column.dtype) != kind and _missing(column):  # nullable types have capitals, polars' all have
        return "missing values"
    return None


def _convertible(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _missing(column: Any) -> bool:
    empty = column.isna() if hasattr(column, "isna") else column.is_null()
    return bool(empty.any())
