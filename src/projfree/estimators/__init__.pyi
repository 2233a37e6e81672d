from projfree.completion.cross_validation import MatrixCompletionCV as MatrixCompletionCV
from projfree.completion.estimator import MatrixCompletion as MatrixCompletion
from projfree.estimators.classifier import ConstrainedClassifier as ConstrainedClassifier
from projfree.estimators.classifier import ConstrainedClassifierCV as ConstrainedClassifierCV
from projfree.estimators.regressor import ConstrainedRegressor as ConstrainedRegressor
from projfree.estimators.regressor import ConstrainedRegressorCV as ConstrainedRegressorCV
from projfree.estimators.saving import load as load
from projfree.estimators.saving import save as save
