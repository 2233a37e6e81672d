"""scikit-learn estimators with a radius in place of a penalty."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from projfree.estimators.classifier import ConstrainedClassifier
from projfree.estimators.regressor import ConstrainedRegressor

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

#: Names that are imported on first use, so that those who fit one linear model load no more than it needs.
_LAZY = {
    "ConstrainedClassifierCV": "projfree.estimators.classifier_cv",
    "ConstrainedRegressorCV": "projfree.estimators.regressor_cv",
    "MatrixCompletion": "projfree.estimators.completion",
    "MatrixCompletionCV": "projfree.estimators.completion",
    "TableEncoder": "projfree.estimators.table_encoder",
    "lasso_alpha": "projfree.run.penalty",
    "load": "projfree.estimators.saving",
    "logistic_C": "projfree.run.penalty",
    "ridge_alpha": "projfree.run.penalty",
    "save": "projfree.estimators.saving",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'projfree.estimators' has no attribute {name!r}")
    found = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found  # so that it is looked up once
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
