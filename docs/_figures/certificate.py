"""The certified gap and the true error along a run of Primal Averaging; the figure of the README."""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from projfree import Logistic, LpBall, Objective, PrimalAveraging, as_data, minimize
from projfree.datasets import load_adult

adult = load_adult()
f = Objective(Logistic(), as_data(adult.X, adult.y), fit_intercept=True)
ball = LpBall(1.5, radius=10.0)
best = minimize(f, ball, tol=1e-12)
certified, true = [], []


def watch(run):
    certified.append(run.relative_gap)
    true.append((run.value - best.bound) / best.value)


minimize(f, ball, PrimalAveraging(), tol=1e-4, callbacks=[watch])
mpl.rcParams["svg.hashsalt"] = "projfree"  # the same figure, the same file
figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
t = np.arange(1, len(true) + 1)
ax.fill_between(t, true, certified, color="#dce9f5")
ax.loglog(t, certified, color="#0072b2", label="certified gap: known during the run, proved")
ax.loglog(t, true, color="#d55e00", label="true error: unknown during the run")
ax.set(xlabel="iteration", ylabel="relative to the minimum", xlim=(1, len(true)))
ax.set_title("Logistic regression on 48,842 people over an $\\ell_{1.5}$ ball", fontsize=10)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower left")
figure.savefig(sys.argv[1], metadata={"Date": None})
