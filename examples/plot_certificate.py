"""
The certified gap and the true error
====================================

The true error is unknown during a run. The certified gap is known, and never smaller. Here the minimum is computed
to many digits first, so that both can be plotted.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import CorrectivePrimalAveraging, Logistic, LpBall, Objective, as_data, minimize
from projfree.datasets import load_adult

adult = load_adult()
f = Objective(Logistic(), as_data(adult.X[:3000], adult.y[:3000]), fit_intercept=True)
ball = LpBall(1.5, radius=2.0)
best = minimize(f, ball, tol=1e-13)

# %%
# A callback sees the certified gap of each iteration, and may compute the value there.

certified, true = [], []


def watch(run):
    certified.append(run.relative_gap)
    true.append((run.value - best.bound) / best.value)


result = minimize(f, ball, CorrectivePrimalAveraging(), tol=1e-8, callbacks=[watch])
print(f"certified {result.relative_gap:.1e}, true error at most {(result.value - best.bound) / best.value:.1e}")

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
t = np.arange(1, len(true) + 1)
ax.semilogy(t, certified, color="#0072b2", label="certified gap")
ax.semilogy(t, np.maximum(true, 1e-13), color="#d55e00", label="true error")
ax.fill_between(t, np.maximum(true, 1e-13), certified, color="0.93")
ax.axhline(1e-8, color="0.5", linestyle=":", linewidth=1)
ax.text(1, 1.3e-8, "tolerance", color="0.4")
ax.set(xlabel="iteration", ylabel="relative to the minimum", title="The certified gap is never below the true error")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
assert all(gap >= error for gap, error in zip(certified, true, strict=True))
plt.show()
