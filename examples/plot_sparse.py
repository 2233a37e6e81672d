"""
Between ridge and lasso
=======================

The best norm depends on how many features matter. If few do, p = 1 (the lasso) predicts best; if all matter alike,
p = 2 (ridge). If you do not know, a norm in between loses little either way, and is best when a few features matter
much and the others a little.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import LpBall, Objective, Squared, as_data, path

n, d, repeats = 100, 60, 6
exponents = (1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0)
sizes = {
    "ten of sixty features matter": np.r_[np.ones(10), np.zeros(d - 10)],
    "a few matter much, the others a little": np.arange(1.0, d + 1) ** -0.7,
    "all matter alike": np.ones(d),
}


def errors(size, seed):
    """The error of the coefficients for each exponent, at the best of some radii."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(size * rng.choice([-1.0, 1.0], d)) / np.linalg.norm(size)
    X = rng.standard_normal((n, d))
    f = Objective(Squared(), as_data(X, X @ truth + rng.standard_normal(n)))
    found = []
    for p in exponents:
        ball = LpBall(p, radius=1.0)
        results = path(f, ball, ball.norm(truth) * np.geomspace(0.3, 1.3, 12), tol=1e-4).results
        found.append(min(np.linalg.norm(result.w - truth) for result in results))
    return np.array(found)


figure, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
lost = {}
for (name, size), colour in zip(sizes.items(), ("#0072b2", "#009e73", "#d55e00"), strict=True):
    mean = np.mean([errors(size, seed) for seed in range(repeats)], axis=0)
    lost[name] = mean / mean.min()
    best = exponents[int(mean.argmin())]
    print(f"{name}: best p = {best:g}")
    ax.plot(exponents, 100 * (lost[name] - 1), "o-", color=colour, label=name)
    ax.plot(best, 0, "*", color=colour, markersize=16, clip_on=False)
ax.set(xlabel="p (1 is the lasso, 2 is ridge)", ylabel="error above that of the best p, %")
ax.set_ylim(bottom=0)
ax.set_title("Between ridge and lasso, little is lost whatever the truth is")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
worst = np.max(list(lost.values()), axis=0)
assert 1.0 < exponents[int(worst.argmin())] < 2.0
plt.show()
