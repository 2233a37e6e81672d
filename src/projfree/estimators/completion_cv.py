"""`MatrixCompletionCV`: the radius and the exponent by validation, along warm-started paths."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array, count
from projfree.estimators.alternating import Factors
from projfree.estimators.completion import MatrixCompletion
from projfree.estimators.completion_path import choose_strength
from projfree.estimators.ratings import read_ratings


class MatrixCompletionCV(BaseEstimator):
    """`MatrixCompletion` with the exponent and the radius chosen on held-out ratings.

    For each exponent a path of penalties, from strong to weak and each point begun at the last, is fitted to the
    ratings outside a fold and judged on those inside; the exponent and strength with the least mean error are refitted
    to all ratings.

    Parameters
    ----------
    ps : sequence of float
        Exponents to try.
    folds : int
        How many parts of the ratings take their turn in judging, each ``1 / parts`` of all.
    parts : int
        Into how many parts the ratings are divided.
    estimator : MatrixCompletion, optional
        Everything else; its ``p`` and ``radius`` are replaced.

    Attributes
    ----------
    best_p_, best_strength_, best_error_ : float
        What was chosen, and its mean error.
    errors_ : dict
        For each exponent the error and strength of every fold.
    model_ : MatrixCompletion
        The refitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.estimators.completion import MatrixCompletion
    >>> from projfree.estimators.completion_cv import MatrixCompletionCV
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 20, 200), rng.integers(0, 15, 200)
    >>> search = MatrixCompletionCV(ps=(1.0, 1.2), estimator=MatrixCompletion(rank=3, sweeps=5))
    >>> search.fit((users, items, rng.standard_normal(200))).best_p_ in (1.0, 1.2)
    True
    """

    def __init__(
        self,
        ps: Sequence[float] = (1.0, 1.1, 1.2),
        *,
        folds: int = 1,
        parts: int = 10,
        estimator: MatrixCompletion | None = None,
    ) -> None:
        self.ps, self.folds, self.parts, self.estimator = ps, folds, parts, estimator

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose, and refit to all ratings."""
        count("MatrixCompletionCV(parts=...)", self.parts, lowest=2)
        if count("MatrixCompletionCV(folds=...)", self.folds) > self.parts:
            raise ValueError(f"`MatrixCompletionCV(folds=...)` must be at most `parts`, got {self.folds}.")
        if not len(self.ps):
            raise ValueError("`MatrixCompletionCV(ps=...)` must name at least one exponent, got none.")
        base = MatrixCompletion() if self.estimator is None else self.estimator
        given = read_ratings(X, y, base.columns)
        assert given.values is not None
        if len(given.values) < 2 * self.parts:
            raise ValueError(
                f"`MatrixCompletionCV` needs at least {2 * self.parts} ratings for {self.parts} parts, "
                f"got {len(given.values)}; use fewer parts, or MatrixCompletion with a radius."
            )
        self.errors_ = {float(p): self._errors(base, float(p), X, y, sample_weight) for p in self.ps}
        means = {p: float(np.mean([error for error, _ in found])) for p, found in self.errors_.items()}
        self.best_p_ = min(means, key=lambda p: means[p])
        strengths = [strength for _, strength in self.errors_[self.best_p_]]
        self.best_error_, self.best_strength_ = means[self.best_p_], float(np.exp(np.mean(np.log(strengths))))
        self.model_ = clone(base).set_params(p=self.best_p_, radius=None)
        self.model_.fit_with(X, y, sample_weight, self.best_strength_ * float(np.sqrt(self.parts / (self.parts - 1.0))))
        return self

    def _errors(self, base: MatrixCompletion, p: float, X: Any, y: Any, weight: Any) -> list[tuple[float, float]]:
        model = clone(base).set_params(p=p, radius=None)
        model.prepare(X, y, weight)
        order = np.random.default_rng(base.random_state).permutation(len(model._values))
        found = []
        for out in np.array_split(order, self.parts)[: self.folds]:
            inside = np.setdiff1d(order, out)
            problem, _ = model._problem(inside)
            judged = np.sort(out)
            score = partial(_negative_error, model, judged)
            strength, state = choose_strength(problem, base.rank, base.random_state, score)
            found.append((model._error(state, judged), strength))
        return found

    def predict(self, X: Any) -> Array:
        """Ratings of pairs, by the refitted model."""
        check_is_fitted(self, "model_")
        predicted: Array = self.model_.predict(X)
        return predicted

    def score(self, X: Any, y: Any = None) -> float:
        """The score of the refitted model."""
        check_is_fitted(self, "model_")
        return float(self.model_.score(X, y))


def _negative_error(model: MatrixCompletion, part: Array, state: Factors) -> float:
    return -model._error(state, part)
