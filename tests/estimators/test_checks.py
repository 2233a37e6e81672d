"""scikit-learn's own checks of the estimator interface; those that set `alpha` do not suit every setting."""

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
    ConstrainedRegressor("biweight", radius="auto"),
    ConstrainedRegressor(p=1, radius=2.0, standardize=True),
    ConstrainedRegressor(positive=True, radius=2.0),
    ConstrainedClassifier("softmax", p=1.2, radius="auto", standardize=True),
    ConstrainedClassifier(SquaredSigmoid()),
    ConstrainedRegressorCV(radii=[0.3, 1.0], cv=3),
    ConstrainedClassifierCV(radii=[0.3, 1.0], cv=3),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def expected(estimator):
    """One check sets ``alpha=0.01`` where there is such a parameter: no way beside a radius, nor for every loss."""
    if type(estimator) is ConstrainedRegressor and (estimator.radius != "auto" or estimator.loss == "biweight"):
        return {"check_regressors_train": "sets `alpha`, which is refused together with a radius and for this loss"}
    return {}


@pytest.mark.slow
@parametrize_with_checks(OTHERS, expected_failed_checks=expected)
def test_scikit_learn_checks_with_other_parameters(estimator, check):
    check(estimator)
