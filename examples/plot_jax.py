"""
A function of JAX through ``BlackBox``
======================================

``BlackBox`` minimises any function with a gradient, and automatic differentiation provides gradients. Here the
objective is the largest of several costs, smoothed, which is not a mean over rows. It is convex, so the result has
a certificate.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from projfree import BlackBox, LpBall, check_gradient, minimize

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
A, target = jnp.asarray(rng.standard_normal((6, 40, 10))), jnp.asarray(2.0 * rng.standard_normal((6, 40)))


def costs(w):
    return jnp.mean((A @ w - target) ** 2, axis=1)


@jax.jit
@jax.value_and_grad
def worst(w):
    return jax.nn.logsumexp(8.0 * costs(w)) / 8.0  # a smooth maximum


@jax.jit
@jax.value_and_grad
def mean(w):
    return jnp.mean(costs(w))


# %%
# One problem is minimised for the worst cost, the other for the mean.

ball, found = LpBall(1.5, radius=1.5), {}
for name, fun in {"least mean": mean, "least worst": worst}.items():
    f = BlackBox(fun, shape=10, convex=True, name=name)
    assert check_gradient(f, rng.standard_normal(10)).ok
    found[name] = minimize(f, ball, tol=1e-5)
    print(name, found[name].status)

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for k, ((name, result), colour) in enumerate(zip(found.items(), ("#d55e00", "#0072b2"), strict=True)):
    ax.bar(np.arange(6) + 0.38 * k, np.asarray(costs(result.w)), width=0.36, color=colour, label=name)
    ax.axhline(float(costs(result.w).max()), color=colour, linestyle=":", linewidth=1)
ax.set(xlabel="case", ylabel="cost", title="Minimising the worst case lowers the worst case")
ax.spines[["top", "right"]].set_visible(False)
ax.set_ylim(0, 5.4)
ax.legend(frameon=False, ncols=2)
assert costs(found["least worst"].w).max() < costs(found["least mean"].w).max()
plt.show()
