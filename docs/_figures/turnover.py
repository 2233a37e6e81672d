"""Risk of the best portfolio against the turnover that is allowed, with limits on sectors."""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from projfree import Constrained, LpBall, QuadraticForm, minimize
from projfree.sets import bounds, shifted, sums_to

rng = np.random.default_rng(2)
d, held = 60, np.full(60, 1 / 60)
factors = rng.standard_normal((d, 4)) * [0.15, 0.1, 0.1, 0.05]
f = QuadraticForm(factors @ factors.T + np.diag(np.repeat(np.linspace(0.05, 0.3, 6), 10) ** 2), np.zeros(d))
sectors = np.kron(np.eye(6), np.ones(10))
rows = [sums_to(1.0, range(d)), bounds(range(d), 0.0, 0.1)]
turnovers = np.linspace(0.05, 0.8, 11)
risks = {}
for most in (0.2, 1.0):
    sets = [Constrained(shifted(LpBall(1, t), held), rows, A=sectors, upper=most) for t in turnovers]
    risks[most] = [np.sqrt(2.0 * minimize(f, C).value) for C in sets]

mpl.rcParams["svg.hashsalt"] = "projfree"  # the same figure, the same file
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for most, color, label in ((1.0, "#d55e00", "sectors free"), (0.2, "#0072b2", "at most 20 % a sector")):
    ax.plot(turnovers, 100 * np.array(risks[most]), color=color, label=label)
ax.set(xlabel="turnover", ylabel="standard deviation, %")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure.savefig(sys.argv[1], metadata={"Date": None})
