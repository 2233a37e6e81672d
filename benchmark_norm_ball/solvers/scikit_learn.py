"""Lasso, Ridge and LogisticRegression of scikit-learn at the penalty that belongs to the radius."""

import warnings

from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, Ridge


class Solver(BaseSolver):
    """Where scikit-learn has the penalised model: p = 1 and p = 2."""

    name = "scikit-learn"
    requirements = ["scikit-learn"]
    # The first tolerances are so loose that nothing changes between them.
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=12)

    def skip(self, X, y, loss, p, radius, penalty):
        return p not in (1, 2), "scikit-learn has no penalty of this norm"

    def set_objective(self, X, y, loss, p, radius, penalty):
        self.X, self.y, n = X, y, len(y)
        if loss == "logistic":
            C = 1.0 / (n * penalty) if p == 1 else radius / (n * penalty)
            settings = {"l1_ratio": 1, "solver": "liblinear"} if p == 1 else {}
            self.model = LogisticRegression(C=C, fit_intercept=False, max_iter=10_000, **settings)
        elif p == 1:
            self.model = Lasso(alpha=penalty / 2, fit_intercept=False, max_iter=100_000)
        else:
            self.model = Ridge(alpha=penalty * n / (2 * radius), fit_intercept=False)

    def run(self, tolerance):
        self.model.set_params(tol=max(tolerance, 1e-15))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"w": self.model.coef_.ravel()}
