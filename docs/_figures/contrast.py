"""Coefficients of a log-contrast model against the radius: each vector adds up to zero."""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from projfree import Constrained, LpBall, Objective, Squared, as_data, minimize
from projfree.sets import sums_to

rng = np.random.default_rng(1)
parts = rng.dirichlet(np.ones(30), 200)
X = np.log(parts)
true = np.zeros(30)
true[:4] = 1.0, -0.6, -0.8, 0.4
f = Objective(Squared(), as_data(X, X @ true + 0.5 * rng.standard_normal(200)), fit_intercept=True)
radii = np.linspace(0.1, 3.5, 35)
coef = np.array([minimize(f, Constrained(LpBall(1, r), sums_to(0.0, range(30)))).w for r in radii])

mpl.rcParams["svg.hashsalt"] = "projfree"  # the same figure, the same file
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.plot(radii, coef[:, 4:], color="0.8", linewidth=0.8)
ax.plot(radii, coef[:, :4], linewidth=2)
ax.set(xlabel="radius of the $\\ell_1$ ball", ylabel="coefficient", title="Four of 30 parts matter")
ax.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1], metadata={"Date": None})
