"""scikit-learn's own checks of the estimator interface."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from projfree import (
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    SquaredSigmoid,
)

ESTIMATORS = [ConstrainedRegressor(), ConstrainedClassifier()]
OTHERS = [
    ConstrainedRegressor("huber", p=1.5, radius=2.0, max_iter=500),
    ConstrainedRegressor("biweight"),
    ConstrainedRegressor(p=1.5),
    ConstrainedRegressor(p=1, radius=2.0, standardize=True),
    ConstrainedRegressor(positive=True, radius=2.0),
    ConstrainedClassifier("softmax", p=1.2, standardize=True),
    ConstrainedClassifier(SquaredSigmoid()),
    ConstrainedRegressorCV(radii=[0.3, 1.0], cv=3),
    ConstrainedClassifierCV(radii=[0.3, 1.0], cv=3),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_scikit_learn_checks_with_other_parameters(estimator, check):
    check(estimator)
