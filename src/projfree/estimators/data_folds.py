"""Folds of a search on a data class: views of its rows, which stay where they are."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array, count
from projfree.data import Data
from projfree.data.base import Fold
from projfree.data.tables import ChunkedData
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.data_scores import scorer_of
from projfree.estimators.paths import RadiusPath, fit_path
from projfree.estimators.table import Table
from projfree.run.callbacks import Callback

#: Folds by default, as in scikit-learn.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class DataFolds:
    """Runs along the radii on the rows of each fold, one after the other."""

    table: Table
    #: Rows to fit with their targets as losses take them, and rows to score with those that were given.
    folds: list[tuple[Data, Data]]
    judge: Any
    seed: int

    def scores(self, models: list[ConstrainedModel], radii: Array, tell: Callable[[], None]) -> tuple[Array, Array]:
        """Scores of shape (exponents, radii, folds), and seconds of shape (exponents, folds)."""
        scores, seconds = np.empty((*radii.shape, len(self.folds))), np.empty((len(models), len(self.folds)))
        for i, (model, grid) in enumerate(zip(models, radii, strict=True)):
            for k, (rows, held) in enumerate(self.folds):
                begun = time.perf_counter()
                fitted = fit_path(copy.copy(model), Table(rows, self.table.y), grid, self.seed)
                seconds[i, k] = time.perf_counter() - begun
                scores[i, :, k] = [self.judge(one, held) for one in fitted]
                tell()
        return scores, seconds

    def refit(
        self, model: ConstrainedModel, radii: Array, at: int, seed: int, callbacks: Sequence[Callback] = ()
    ) -> tuple[ConstrainedModel, RadiusPath]:
        """The model of one of the radii on all rows, and the path of all of them."""
        fitted = fit_path(model, self.table, radii, seed, callbacks=callbacks)
        return fitted[at], RadiusPath.of(float(model.p), radii, fitted)


def data_folds(search: Any, data: Data, table: Table, seed: int, split: dict[str, Any]) -> DataFolds:
    """The folds of a search: of files those of arrays, else rows are dealt to them at random where they are."""
    judge = scorer_of(search._single(), search.scoring)
    if isinstance(data, ChunkedData):  # its targets are in memory
        rows = search._fold_rows(np.zeros((data.n, 1)), data.y, split)
        return DataFolds(table, [(table.X.subset(fitted), data.subset(held)) for fitted, held in rows], judge, seed)
    folds = FOLDS if search.cv is None else count("cv", search.cv, lowest=2)
    parts = [(Fold(seed, folds, k, inside=False), Fold(seed, folds, k, inside=True)) for k in range(folds)]
    return DataFolds(table, [(table.X.subset(fitted), data.subset(held)) for fitted, held in parts], judge, seed)
