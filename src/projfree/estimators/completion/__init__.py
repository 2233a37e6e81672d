"""Matrix completion: ratings in, ratings and recommendations out, with a certificate."""

from projfree.estimators.completion.estimator import MatrixCompletion
from projfree.estimators.completion.search import MatrixCompletionCV

__all__ = ["MatrixCompletion", "MatrixCompletionCV"]
