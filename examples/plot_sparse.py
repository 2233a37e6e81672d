"""
Between ridge and lasso
=======================

A few features matter much and many matter a little. With p = 2 all coefficients share the load, and the prediction
is worst. With p = 1 many are exactly zero. With p = 1.1 few are, and the prediction is nearly as good.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import ConstrainedRegressorCV

rng = np.random.default_rng(0)
n, d = 150, 60
truth = np.concatenate([[3.0, -2.0, 1.5], 0.15 * rng.standard_normal(d - 3)])
X, Z = rng.standard_normal((n, d)), rng.standard_normal((5000, d))
y, clean = X @ truth + 2 * rng.standard_normal(n), Z @ truth

ps = (1.0, 1.1, 1.5, 2.0)
figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), sharex=True, sharey=True, layout="constrained")
errors = {}
for p, ax in zip(ps, axes.flat, strict=True):
    model = ConstrainedRegressorCV(p=p, radii=15).fit(X, y)
    errors[p] = float(np.sqrt(np.mean((model.predict(Z) - clean) ** 2)))
    small = int(np.sum(np.abs(model.coef_) < 1e-3))
    print(
        f"p = {p:<4g} radius {model.radius_:6.2f}  error {errors[p]:.3f}  coefficients below 0.001: {small:2d} of {d}"
    )
    ax.vlines(range(d), 0, model.coef_, color="#0072b2", linewidth=2)
    ax.plot(range(d), truth, ".", color="#d55e00", markersize=5)
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(f"p = {p:g}: error {errors[p]:.2f}", fontsize="medium")
figure.suptitle("fitted coefficients (bars) and the truth (dots), each with its best radius")
figure.supxlabel("feature")
figure.supylabel("coefficient")

assert min(errors, key=errors.get) < 2.0
plt.show()
