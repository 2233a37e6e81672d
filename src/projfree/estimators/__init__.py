"""scikit-learn estimators with a radius in place of a penalty."""

from projfree.estimators.classifier import ConstrainedClassifier
from projfree.estimators.classifier_cv import ConstrainedClassifierCV
from projfree.estimators.completion import MatrixCompletion
from projfree.estimators.completion_cv import MatrixCompletionCV
from projfree.estimators.regressor import ConstrainedRegressor
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
