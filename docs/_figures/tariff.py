"""Relativities of a monotone insurance tariff beside those of a fit without an order."""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from projfree import ConstrainedRegressor

rng = np.random.default_rng(0)
level = rng.integers(0, 8, 3_000)
X, age = np.eye(8)[level], rng.standard_normal(3_000)
claims = rng.poisson(np.exp(-1.5 + 0.12 * level + 0.2 * age)).astype(float)
X = np.column_stack([X, age])
plain = ConstrainedRegressor("poisson", radius=3.0).fit(X, claims)
tariff = ConstrainedRegressor("poisson", radius=3.0, order=[list(range(8))], signs={8: 1}).fit(X, claims)

mpl.rcParams["svg.hashsalt"] = "projfree"  # the same figure, the same file
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for model, color, label in ((plain, "#d55e00", "the ball alone"), (tariff, "#0072b2", "increasing")):
    ax.plot(np.exp(model.coef_[:8] - model.coef_[:8].mean()), "o-", color=color, label=label)
ax.set(xlabel="class of the bonus-malus scale", ylabel="relativity")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure.savefig(sys.argv[1], metadata={"Date": None})
