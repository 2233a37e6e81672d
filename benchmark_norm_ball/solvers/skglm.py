"""skglm at the penalty that belongs to the radius."""

from benchopt import BaseSolver, safe_import_context
from benchopt.stopping_criterion import SufficientProgressCriterion

with safe_import_context() as import_ctx:
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Logistic, Quadratic
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD, ProxNewton


class Solver(BaseSolver):
    """For p = 1: coordinate descent with Anderson acceleration, and prox-Newton for the logistic loss."""

    name = "skglm"
    requirements = ["pip::skglm"]
    # The first tolerances are so loose that nothing changes between them.
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=12)

    def skip(self, X, y, loss, p, radius, penalty):
        return p != 1, "skglm's coordinate descent is for p = 1"

    def set_objective(self, X, y, loss, p, radius, penalty):
        self.X, self.y = X, y
        squares = loss == "squared"
        datafit, alpha = (Quadratic(), penalty / 2) if squares else (Logistic(), penalty)
        solver = (AndersonCD if squares else ProxNewton)(fit_intercept=False)
        self.model = GeneralizedLinearEstimator(datafit, L1(alpha), solver)
        self.run(1e-3)  # compiles

    def run(self, tolerance):
        self.model.solver.tol = max(tolerance, 1e-15)
        self.model.fit(self.X, self.y)

    def get_result(self):
        return {"w": self.model.coef_.ravel()}
