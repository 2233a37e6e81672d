"""
A set of your own by its oracle
===============================

Projection-free methods need only a function that minimises linear functions over the set. Here the set consists of
all nondecreasing curves between 0 and 1. Its vertices are step functions: zero up to some point, one after it. No
projection is needed.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import Objective, OracleSet, PairwiseFrankWolfe, Squared, as_data, minimize

n = 200
rng = np.random.default_rng(0)
place = np.linspace(0, 1, n)
truth = 1 / (1 + np.exp(-14 * (place - 0.45)))
y = truth + 0.25 * rng.standard_normal(n)


def lmo(g):
    """The step from 0 to 1 that minimises the sum of g where the curve is 1."""
    tails = np.concatenate([np.cumsum(g[::-1])[::-1], [0.0]])  # g summed from each place on; none at all at the end
    return (np.arange(n) >= np.argmin(tails)).astype(float)


# %%
# The set is a polytope, on which pairwise steps converge fast.

curves = OracleSet(lmo, polytope=True, start=np.zeros(n), name="rising curves from 0 to 1")
f = Objective(Squared(), as_data(np.eye(n), y))
result = minimize(f, curves, PairwiseFrankWolfe(), tol=1e-8)
print(result)

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(place, y, ".", color="0.75", label="measured")
ax.plot(place, truth, color="#d55e00", linewidth=1.2, label="truth")
ax.step(place, result.w, where="post", color="#0072b2", linewidth=2, label="best rising curve")
ax.set(xlabel="place", title=f"A mixture of {len(result.state.active_set.weights)} steps, proved to be the best")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
assert result.status.converged
assert (np.diff(result.w) >= -1e-12).all()
plt.show()
