"""Columns of data frames and targets that are no numbers, and what to do about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array, is_missing, shown

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
    "list": "lists",
    "array(": "lists",
    "struct": "records",
    "binary": "bytes",
    "complex": "complex numbers",
}
WAYS = {"categories": "OneHotEncoder()", "text": "OneHotEncoder()", "missing values": "SimpleImputer()"}


def refuse_missing_targets(y: Any) -> None:
    """Raise where a target is missing: None, NaN among other objects, or what pandas has instead of these."""
    if y is None:  # scikit-learn names the estimator that needs targets
        return
    found = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if found.dtype.kind == "O":
        for k, label in enumerate(found.ravel()):
            if is_missing(label):
                where = f" at index {k}" if found.ndim == 1 else ""
                raise ValueError(
                    f"`y` must hold a target for each row, got {shown(label)}{where}; drop or impute such rows first."
                )


def refuse_target_dates(y: Array) -> None:
    """Raise where targets are dates or durations, which NumPy would turn into counts of nanoseconds or the like."""
    if y.dtype.kind in "mM":
        raise ValueError(
            f"`y` must hold numbers, got {y.dtype}; convert it, e.g. to days: `(y - y.min()) / np.timedelta64(1, 'D')`."
        )


def refuse_columns(X: Any) -> Any:
    """``X`` itself, or an error about the first column of a frame that is neither numbers nor convertible to some."""
    if hasattr(X, "collect"):
        raise TypeError(f"`X` must hold its rows, got a {type(X).__name__}; give `X.collect()`.")
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        _refuse_dates_in(X)
        return X
    _refuse_twice(list(X.columns))
    for name in X.columns:
        column = X[name]
        held = _held(column)
        if held is not None:
            what = WAYS.get(held, "FunctionTransformer(...)")
            raise ValueError(
                f"Column {shown(name)} of `X` holds {held} ({column.dtype}), and features must be numbers; turn it "
                f"into numbers first, e.g. `make_pipeline(ColumnTransformer([('{name}', {what}, ['{name}'])], "
                "remainder='passthrough'), model)`."
            )
    return X


def _refuse_twice(names: list[Any]) -> None:
    """Raise where two columns have one name."""
    places: dict[Any, int] = {}
    for j, name in enumerate(names):
        first = places.setdefault(name, j)
        if first < j:
            raise ValueError(f"`X` has the column {shown(name)} twice, in places {first} and {j}; rename one.")


def _refuse_dates_in(X: Any) -> None:
    """Raise where an array holds dates or durations, which would become counts of their units."""
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError(
            f"`X` must hold numbers, got {X.dtype}; convert it, e.g. to days: `(X - X.min()) / np.timedelta64(1, 'D')`."
        )


def _held(column: Any) -> str | None:
    """What a column holds that is no number, None where all of it is."""
    kind = str(column.dtype).lower()
    for part, held in HELD.items():
        if part in kind:
            return held
    if any(part in kind for part in ("obj", "str", "utf8")):
        return None if _convertible(column) else "text"
    if not isinstance(column.dtype, np.dtype) and _missing(column):  # NaN in NumPy's types scikit-learn refuses
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
