"""`TableEncoder`: columns of a frame as numbers, text as one column a level, missing numbers filled."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array, shown
from projfree.estimators.frame_columns import column_numbers, kind_of, refuse_dates, row_of

#: A column of text with more levels than this, or with as many as half of its rows, is no category.
MOST_LEVELS = 1_000
#: What the column of missing values of a category is called.
MISSING = "(missing)"


class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns of a data frame as numbers.

    Columns of numbers stay. Each column of text becomes one column of zeros and ones for each level, in sorted order,
    and one more for missing values if there were some; a level that the fit had not seen counts as none. The encoder is
    saved with the model that it comes before, in a scikit-learn `Pipeline`.

    Parameters
    ----------
    one_hot : {"auto", "none"} or sequence of str
        Whether text is encoded, or columns that are encoded as well as text, such as codes that are numbers.
    impute : {"median", "drop"} or None
        ``"median"`` fills missing numbers with the median of the fit. Else they are refused; rows that are to be
        dropped are dropped before.

    Attributes
    ----------
    columns_ : list of str
    levels_ : dict
        The levels of each encoded column.
    fill_ : dict
        The median of each column of numbers, with ``impute="median"``.

    Examples
    --------
    >>> import pandas as pd
    >>> from projfree.estimators import TableEncoder
    >>> frame = pd.DataFrame({"age": [30, None, 50], "city": ["Rome", "Oslo", "Rome"]})
    >>> TableEncoder(impute="median").fit_transform(frame)
        age  city=Oslo  city=Rome
    0  30.0        0.0        1.0
    1  40.0        1.0        0.0
    2  50.0        0.0        1.0
    """

    columns_: list[str]
    levels_: dict[str, list[str]]
    fill_: dict[str, float]

    def __init__(self, *, one_hot: Any = "auto", impute: str | None = None) -> None:
        self.one_hot = one_hot
        self.impute = impute

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the levels of text and the medians of numbers."""
        if self.impute not in (None, "median", "drop"):
            raise ValueError(f"`impute` must be 'median', 'drop' or None, got {shown(self.impute)}.")
        X = _frame(X)
        self.columns_, self.levels_, self.fill_ = list(X.columns), {}, {}
        for name in self.columns_:
            if self._is_category(X[name]):
                self.levels_[name] = self._levels(X[name])
            elif self.impute == "median":
                self.fill_[name] = _median(X[name])
        return self

    def transform(self, X: Any) -> Any:
        """A frame of floats; columns that the fit did not see are ignored, and their order does not matter."""
        import pandas as pd

        check_is_fitted(self, "columns_")
        X = _frame(X)
        missing = [name for name in self.columns_ if name not in X.columns]
        if missing:
            raise ValueError(f"the table has no column {missing[0]!r}, which the model was fitted with.")
        parts = [self._encoded(X[name]) for name in self.columns_]
        table = np.column_stack(parts) if parts else np.empty((len(X), 0))
        return pd.DataFrame(table, columns=self.get_feature_names_out(), index=X.index)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the columns that `transform` makes."""
        names = [self._names(name) for name in self.columns_]
        return np.array([name for some in names for name in some], dtype=object)

    def sources(self) -> list[str]:
        """For each column that `transform` makes, the one that it comes from."""
        return [name for name in self.columns_ for _ in self._names(name)]

    def unseen(self, X: Any) -> dict[str, int]:
        """How many rows of each category hold a level that the fit had not seen."""
        X = _frame(X)
        counts = {name: int((~np.isin(_labels(X[name]), levels)).sum()) for name, levels in self.levels_.items()}
        return {name: k for name, k in counts.items() if k}

    @property
    def trivial(self) -> bool:
        """Whether nothing is encoded and nothing filled."""
        return not self.levels_ and not self.fill_

    def _names(self, name: str) -> list[str]:
        return [f"{name}={level}" for level in self.levels_[name]] if name in self.levels_ else [name]

    def _is_category(self, column: Any) -> bool:
        """Whether a column is text, or asked for; text most of which is numbers is a mistake in a column of numbers."""
        import pandas as pd

        if not isinstance(self.one_hot, str) and column.name in self.one_hot:
            return True
        if kind_of(column) in "biuf":
            return False
        refuse_dates(column)
        there = column[column.notna()]
        parsed = pd.to_numeric(there, errors="coerce").notna().to_numpy()
        if len(there) == 0 or parsed.all():
            return False
        if self.one_hot == "none" or 2 * parsed.sum() > len(parsed):
            column_numbers(column)  # raises
        return True

    def _levels(self, column: Any) -> list[str]:
        levels = sorted({str(level) for level in np.unique(_labels(column))})
        if len(levels) > MOST_LEVELS or (len(column) > 40 and 2 * len(levels) > len(column)):
            raise ValueError(
                f"column {column.name!r} has {len(levels)} different texts in {len(column)} rows, too many for a "
                "category; leave it out."
            )
        return levels

    def _encoded(self, column: Any) -> Array:
        name = str(column.name)
        if name in self.levels_:
            return _one_hot(_labels(column), self.levels_[name])
        values = column_numbers(column)
        if name in self.fill_:
            values = np.where(np.isnan(values), self.fill_[name], values)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise ValueError(
                f"column {name!r} is missing or infinite in row {row_of(column, int(bad[0]))}; fill it "
                "or leave the row out yourself, or fit with `impute='median'` (or `impute='drop'`)."
            )
        return values[:, None]


def _frame(X: Any) -> Any:
    """A frame of pandas whose columns have names."""
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if not hasattr(X, "columns") or not hasattr(X, "set_axis"):
        raise TypeError(f"`TableEncoder` needs a frame of pandas or polars, got {type(X).__name__}.")
    return X if all(isinstance(name, str) for name in X.columns) else X.set_axis(list(map(str, X.columns)), axis=1)


def _one_hot(labels: Array, levels: list[str]) -> Array:
    import pandas as pd

    codes = np.asarray(pd.Index(levels).get_indexer(labels))
    table = np.zeros((len(labels), len(levels)))
    known = codes >= 0
    table[known, codes[known]] = 1.0
    return table


def _labels(column: Any) -> Array:
    """The levels of a column as text."""
    gone = column.isna().to_numpy()
    return np.array([MISSING if out else str(value).strip() for value, out in zip(column.tolist(), gone, strict=True)])


def _median(column: Any) -> float:
    values = column_numbers(column)
    if np.isnan(values).all():
        raise ValueError(f"column {column.name!r} has no numbers at all; leave it out.")
    return float(np.nanmedian(values))
