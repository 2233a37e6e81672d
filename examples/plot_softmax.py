"""
Softmax with a nuclear norm
===========================

Digits have ten classes and 64 pixels, so the coefficients are a 64 x 10 matrix. The nuclear norm favours matrices of
low rank, in which the classes share a few directions. With few training rows it predicts about as well as the
Frobenius norm (ridge), with fewer directions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from projfree import ConstrainedClassifier

digits = load_digits()
X, y = digits.data / 16.0, digits.target
train, test = slice(0, 300), slice(300, None)
models = {
    "nuclear norm": ConstrainedClassifier(norm="schatten", p=1, radius=12.0, tol=1e-2, standardize=False),
    "Frobenius norm": ConstrainedClassifier(p=2, radius=5.0, tol=1e-2, standardize=False),
}
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ranks = {}
for (name, model), colour in zip(models.items(), ("#0072b2", "#d55e00"), strict=True):
    model.fit(X[train], y[train])
    values = np.linalg.svd(model.coef_, compute_uv=False)
    ranks[name] = int(np.sum(values > 0.05 * values[0]))
    label = f"{name}: {model.score(X[test], y[test]):.1%} of test digits right"
    ax.plot(np.arange(1, 11), values / values[0], marker="o", color=colour, label=label)
ax.set(
    xlabel="number",
    ylabel="singular value of the coefficients, relative",
    title="The nuclear norm uses fewer directions",
    ylim=(0, 1.05),
)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
assert ranks["nuclear norm"] < ranks["Frobenius norm"]
plt.show()
