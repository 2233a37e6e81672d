"""
The price of a fair score
=========================

A score should not depend on sex. A limit on the covariance of the two is a linear constraint on the coefficients. The
minimum is certified for each limit, so the price of fairness is known.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import ConstrainedClassifier
from projfree.datasets import load_adult
from projfree.sets import covariance

adult = load_adult()
X, man = adult.X, adult.X[:, adult.feature_names.index("sex=Male")]

# %%
# Fit with ever smaller limits. The first one is not active.

limits = (0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01)
models = [ConstrainedClassifier(radius=3.0, constraints=covariance(X, man, limit)).fit(X, adult.y) for limit in limits]
loss = [model.result_.value for model in models]
scores = [model.decision_function(X) for model in models]
apart = [u[man == 1].mean() - u[man == 0].mean() for u in scores]

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(apart, loss, "o-", color="#0072b2")
for k in (0, len(limits) - 1):
    share = models[k].score(X, adult.y)
    ax.annotate(f"accuracy {share:.3f}", (apart[k], loss[k]), xytext=(6, 6), textcoords="offset points")
ax.set(xlabel="mean score of men less that of women", ylabel="logistic loss", title="What fairness costs, proven")
ax.spines[["top", "right"]].set_visible(False)
assert all(abs(np.mean((man - man.mean()) * u)) <= limit * (1 + 1e-9) for u, limit in zip(scores, limits, strict=True))
assert all(np.diff(loss) > -1e-6)
plt.show()
