"""Frank-Wolfe of copt with backtracking, its default."""

from contextlib import redirect_stdout
from io import StringIO

import numpy as np
from benchopt import BaseSolver, safe_import_context

with safe_import_context() as import_ctx:
    import copt


class Solver(BaseSolver):
    """Over the ball whose oracle copt has: p = 1."""

    name = "copt Frank-Wolfe"
    requirements = ["pip::copt"]
    sampling_strategy = "iteration"

    def skip(self, X, y, loss, p, radius, penalty):
        return p != 1, "copt has no oracle of this ball"

    def set_objective(self, X, y, loss, p, radius, penalty):
        self.d, n = X.shape[1], len(y)

        def squares(w):
            r = X @ w - y
            return r @ r / n, 2.0 * X.T @ r / n

        logistic = copt.loss.LogLoss(X, (y + 1) / 2) if loss == "logistic" else None
        self.fun = squares if logistic is None else logistic.f_grad
        self.lmo = copt.constraint.L1Ball(radius).lmo

    def run(self, n_iter):
        start = np.zeros(self.d)
        if n_iter == 0:
            self.w = start
            return
        with redirect_stdout(StringIO()):  # it prints a line for each run
            self.w = copt.minimize_frank_wolfe(self.fun, start, self.lmo, jac=True, max_iter=n_iter, tol=0.0).x

    def get_result(self):
        return {"w": self.w}
