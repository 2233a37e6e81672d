"""
Groups of features
==================

Sixty features come in twelve groups of five, and three of the groups matter. The group ball selects whole
groups, the ball of the lasso single features.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import ConstrainedRegressorCV

rng = np.random.default_rng(0)
groups = np.repeat(np.arange(12), 5)
truth = np.where(np.isin(groups, [1, 4, 9]), rng.choice([-1.0, 1.0], 60) * rng.uniform(0.3, 0.7, 60), 0.0)
X = rng.standard_normal((150, 60))
y = X @ truth + 1.5 * rng.standard_normal(150)

models = {
    "group ball: groups are in or out": ConstrainedRegressorCV(norm="group", p=2, feature_groups=groups, radii=15),
    "ball of the lasso: features are in or out": ConstrainedRegressorCV(p=1, radii=15),
}
figure, axes = plt.subplots(2, 1, figsize=(8, 5), layout="constrained", sharex=True, sharey=True)
errors = {}
for ax, (title, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    errors[title] = float(np.linalg.norm(model.coef_ - truth))
    for group in (1, 4, 9):
        ax.axvspan(5 * group - 0.5, 5 * group + 4.5, color="0.92")
    ax.vlines(range(60), 0, model.coef_, color="#0072b2", linewidth=3)
    ax.plot(range(60), truth, ".", color="#d55e00")
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set_title(f"{title}; error {errors[title]:.2f}", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
figure.suptitle("The group ball is nearer to the truth where groups matter")
figure.supxlabel("feature; the groups that matter are shaded")
figure.supylabel("coefficient (bars), truth (dots)")
assert errors["group ball: groups are in or out"] < errors["ball of the lasso: features are in or out"]
plt.show()
