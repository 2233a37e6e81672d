"""scikit-learn estimators with a radius in place of a penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.estimators.classifier import ConstrainedClassifier
from projfree.estimators.regressor import ConstrainedRegressor
from projfree.first_use import on_first_use

if TYPE_CHECKING:
    from projfree.estimators.classifier_cv import ConstrainedClassifierCV
    from projfree.estimators.completion import MatrixCompletion, MatrixCompletionCV
    from projfree.estimators.regressor_cv import ConstrainedRegressorCV
    from projfree.estimators.saving import load, save
    from projfree.estimators.table_encoder import TableEncoder
    from projfree.run.penalty import lasso_alpha, logistic_C, ridge_alpha

__all__ = [
    "ConstrainedClassifier",
    "ConstrainedClassifierCV",
    "ConstrainedRegressor",
    "ConstrainedRegressorCV",
    "MatrixCompletion",
    "MatrixCompletionCV",
    "TableEncoder",
    "lasso_alpha",
    "load",
    "logistic_C",
    "ridge_alpha",
    "save",
]

#: Those who fit one linear model load no more than it needs.
__getattr__, __dir__ = on_first_use(
    __name__,
    {
        ".classifier_cv": ("ConstrainedClassifierCV",),
        ".completion": ("MatrixCompletion", "MatrixCompletionCV"),
        "projfree.run.penalty": ("lasso_alpha", "logistic_C", "ridge_alpha"),
        ".regressor_cv": ("ConstrainedRegressorCV",),
        ".saving": ("load", "save"),
        ".table_encoder": ("TableEncoder",),
    },
)
