"""
Robust regression
=================

Some training targets are replaced by wrong values. Least squares follows them, Huber's loss is affected less, and
the bi-weight, which is bounded, hardly at all.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import ConstrainedRegressor
from projfree.datasets import load_year_sample

songs = load_year_sample()
X, y = songs.X[:5000], songs.y[:5000]
X_test, y_test = songs.X[5000:], songs.y[5000:]
shares, losses = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3), ("squared", "huber", "biweight")

errors = {loss: [] for loss in losses}
for share in shares:
    rng = np.random.default_rng(0)
    spoiled = y.copy()
    rows = rng.choice(len(y), size=int(share * len(y)), replace=False)
    spoiled[rows] = rng.uniform(0, 1000, size=len(rows))  # a year of the first millennium
    for loss in losses:
        model = ConstrainedRegressor(loss, radius=10.0).fit(X, spoiled)
        errors[loss].append(float(np.mean(np.abs(model.predict(X_test) - y_test))))
for loss in losses:
    print(
        f"{loss:9}", " ".join(f"{share:4.0%}: {e:6.2f}" for share, e in zip(shares, errors[loss], strict=True)), "years"
    )

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
names = {"squared": "squares", "huber": "Huber", "biweight": "bi-weight"}
for loss, colour in zip(losses, ("#d55e00", "#e69f00", "#0072b2"), strict=True):
    ax.plot([100 * s for s in shares], errors[loss], marker="o", color=colour, label=names[loss])
ax.set_title("Bounded losses ignore gross outliers")
ax.set(xlabel="training years that are nonsense, %", ylabel="mean absolute error on clean test songs, years")
ax.set_yscale("log")
ax.set_yticks([5, 10, 20, 50, 100, 200, 500], labels=["5", "10", "20", "50", "100", "200", "500"])
ax.minorticks_off()
ax.grid(True, axis="y", color="0.9")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

at = shares.index(0.1)
assert errors["biweight"][at] < errors["huber"][at] < errors["squared"][at] / 10
plt.show()
