"""
A portfolio on a simplex
========================

The weights of a portfolio are nonnegative and add up to one: they lie on a simplex. For each trade-off between return
and risk there is an optimal portfolio. The minimum is certified, so no portfolio is better in this model.
"""

import matplotlib.pyplot as plt
import numpy as np

from projfree import QuadraticForm, Simplex, minimize

rng = np.random.default_rng(3)
assets = 12
factors = rng.standard_normal((assets, 3)) * [0.18, 0.1, 0.06]
risk = factors @ factors.T + np.diag(rng.uniform(0.06, 0.22, assets) ** 2)  # a covariance with three common factors
gain = 0.02 + 0.35 * np.sqrt(np.diag(risk)) * rng.uniform(0.2, 1.0, assets)

# %%
# Minimise half the variance minus a multiple of the expected return.

wishes = np.geomspace(1e-3, 20.0, 40)
shares = np.array([minimize(QuadraticForm(risk, wish * gain), Simplex(), tol=1e-9).w for wish in wishes])
deviation = np.sqrt(np.einsum("ij,jk,ik->i", shares, risk, shares))

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(100 * np.sqrt(np.diag(risk)), 100 * gain, "o", color="0.7", label="single assets")
ax.plot(100 * deviation, 100 * shares @ gain, color="#0072b2", linewidth=2, label="best mixtures")
for k in (0, 24, 39):
    held = int(np.sum(shares[k] > 1e-3))
    ax.annotate(
        f"{held} asset{'s' if held > 1 else ''}",
        (100 * deviation[k], 100 * shares[k] @ gain),
        xytext=(8, -14),
        textcoords="offset points",
    )
ax.set(xlabel="standard deviation, %", ylabel="expected return, %", title="Mixtures reach what no single asset does")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
assert np.allclose(shares.sum(axis=1), 1.0)
assert deviation[0] < np.sqrt(np.diag(risk)).min()
plt.show()
