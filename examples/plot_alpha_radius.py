"""
From ``alpha`` to a radius and back
===================================

The lasso with a penalty and the lasso with a radius are the same family of models: for each radius there is a
penalty with the same coefficients, which the fit reports as ``multiplier_``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Lasso

from projfree import LpBall, Objective, Squared, as_data, path
from projfree.datasets import load_year_sample

songs = load_year_sample()
X, y = songs.X[:1000], songs.y[:1000]
f = Objective(Squared(), as_data(X, y), fit_intercept=True)
found = path(f, LpBall(1, radius=1.0), np.geomspace(0.3, 40, 25), tol=1e-8)
alphas = found.multipliers / 2

# %%
# scikit-learn at these penalties gives coefficients whose norm is the radius.

checked = list(range(0, 21, 4))
norms = [np.abs(Lasso(alpha=alphas[k], tol=1e-8, max_iter=10_000).fit(X, y).coef_).sum() for k in checked]

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.loglog(found.radii, alphas, color="#0072b2", label="projfree: the penalty of each radius")
ax.loglog(norms, alphas[checked], "o", color="#d55e00", label="scikit-learn: the norm at each penalty")
ax.set(
    xlabel="radius, the sum of the coefficients' sizes", ylabel="alpha of the lasso", title="One radius for each alpha"
)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
assert np.allclose(norms, found.radii[checked], rtol=1e-3)
plt.show()
