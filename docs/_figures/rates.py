"""Error against iterations for four methods on the same least-squares problem over an l_1.5 ball."""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from projfree import (
    CorrectivePrimalAveraging,
    ExactLineSearch,
    FrankWolfe,
    LpBall,
    Objective,
    OpenLoop,
    PrimalAveraging,
    Squared,
    as_data,
    minimize,
)
from projfree.datasets import load_year_sample

songs = load_year_sample()
X, y = songs.X[:2000], songs.y[:2000] - songs.y[:2000].mean()
f = Objective(Squared(), as_data(X, y))
ball = LpBall(1.5, radius=8.0)
best = minimize(f, ball, tol=1e-13)

figure, ax = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
for solver, colour, name in (
    (FrankWolfe(OpenLoop(2)), "#d55e00", "Frank-Wolfe, step 2/(t + 1)"),
    (FrankWolfe(ExactLineSearch()), "#e69f00", "Frank-Wolfe, line search"),
    (PrimalAveraging(), "#56b4e9", "Primal Averaging"),
    (CorrectivePrimalAveraging(), "#0072b2", "corrective Primal Averaging"),
):
    errors: list[float] = []

    def watch(run, errors=errors):
        errors.append((run.f(run.state.x) - best.value) / best.value)

    minimize(f, ball, solver, tol=0.0, max_iter=400, record=0, callbacks=watch)
    shown = np.maximum(errors, 1e-12)
    ax.loglog(np.arange(1, len(shown) + 1), shown, color=colour, label=name)
t = np.array([10.0, 400.0])
ax.loglog(t, 0.5 / t, color="0.6", linestyle="--", linewidth=1)
ax.loglog(t, 0.5 / t**2, color="0.6", linestyle=":", linewidth=1)
ax.text(420, 0.5 / 400, "$1/t$", color="0.4", va="center")
ax.text(420, 0.5 / 400**2, "$1/t^2$", color="0.4", va="center")
ax.set(xlabel="iteration $t$", ylabel="relative error", ylim=(1e-11, 2), xlim=(1, 700))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower left")
figure.savefig(sys.argv[1])
