"""
Stochastic Primal Averaging
===========================

A gradient from a few rows is cheap but inexact. Primal Averaging averages gradients, so samples can grow
slowly: with :math:`t^2` rows in iteration t the first iterations are nearly free, and later ones are accurate
enough. The figure plots errors against the number of rows read.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import FrankWolfe, Growing, Logistic, LpBall, Objective, OpenLoop, PrimalAveraging, as_data, minimize
from projfree.datasets import load_adult

adult = load_adult()
f = Objective(Logistic(), as_data(adult.X[:20_000], adult.y[:20_000]))
ball = LpBall(1.5, radius=2.0)
best = minimize(f, ball, tol=1e-10)
solvers = {
    "Frank-Wolfe, all rows": (FrankWolfe(OpenLoop(2)), "#d55e00"),
    "Primal Averaging, all rows": (PrimalAveraging(), "#56b4e9"),
    "Primal Averaging, $t^2$ rows": (PrimalAveraging(sampling=Growing(2)), "#0072b2"),
}

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
reads = {}
for name, (solver, colour) in solvers.items():
    passes, errors = [], []

    def watch(run, passes=passes, errors=errors):
        passes.append(run.passes)
        errors.append((run.f(run.state.x) - best.bound) / best.value)
        return run.passes > 12

    minimize(f, ball, solver, tol=0.0, max_iter=200, record=0, callbacks=[watch])
    reads[name] = next((p for p, e in zip(passes, errors, strict=True) if e < 0.02), np.inf)
    ax.loglog(passes, errors, color=colour, marker=".", label=name)
    print(f"{name:30} within 2 % of the minimum after {reads[name]:.2f} reads of the data")
ax.axhline(0.02, color="0.5", linestyle=":", linewidth=1)
ax.set(xlabel="reads of all rows", ylabel="relative error", title="Growing samples: the first iterations cost little")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
assert reads["Primal Averaging, $t^2$ rows"] < reads["Frank-Wolfe, all rows"]
plt.show()
