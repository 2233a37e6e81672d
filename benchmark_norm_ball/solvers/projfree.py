"""The solvers of projfree, one curve for each."""

from benchopt import BaseSolver

import projfree

LOSSES = {"squared": projfree.Squared, "logistic": projfree.Logistic}
METHODS = {
    "auto": "auto",
    "Primal Averaging": projfree.PrimalAveraging(),
    "corrective Primal Averaging": projfree.CorrectivePrimalAveraging(),
    "Frank-Wolfe, line search": projfree.FrankWolfe(projfree.ExactLineSearch()),
    "Frank-Wolfe, open loop": projfree.FrankWolfe(projfree.OpenLoop(2)),
    "accelerated projected gradient": projfree.AcceleratedProjectedGradient(),
}


class Solver(BaseSolver):
    """A run of a given number of iterations."""

    name = "projfree"
    requirements = ["pip::projfree"]
    parameters = {"method": list(METHODS)}
    sampling_strategy = "iteration"

    def set_objective(self, X, y, loss, p, radius, penalty):
        self.f = projfree.Objective(LOSSES[loss](), projfree.as_data(X, y))
        self.ball = projfree.LpBall(p, radius=radius)

    def run(self, n_iter):
        if n_iter == 0:
            self.w = self.ball.centre(self.f.shape)
            return
        self.w = projfree.minimize(self.f, self.ball, METHODS[self.method], tol=0.0, max_iter=n_iter, record=0).w

    def get_result(self):
        return {"w": self.w}
