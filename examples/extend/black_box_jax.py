"""A function of JAX behind `BlackBox`: its gradient comes from automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np

from projfree import BlackBox, LpBall, check_gradient, minimize

# In single precision certificates would be as coarse as the function.
jax.config.update("jax_enable_x64", True)


def problem(seed=0):
    """A convex function that is no mean of losses: the soft maximum of a few quadratic costs."""
    rng = np.random.default_rng(seed)
    A, c = jnp.asarray(rng.standard_normal((5, 8, 8))), jnp.asarray(rng.standard_normal((5, 8)))

    @jax.jit
    @jax.value_and_grad
    def worst_case(w):
        costs = jnp.sum((A @ w) ** 2, axis=1) / 8 + c @ w
        return jax.nn.logsumexp(4.0 * costs) / 4.0

    return BlackBox(worst_case, shape=8, convex=True, name="soft maximum of five costs")


def main():
    """Minimise it over an l_1.5 ball, after checking the gradient."""
    f, ball = problem(), LpBall(1.5, radius=1.0)
    assert check_gradient(f, np.full(8, 0.1)).ok
    result = minimize(f, ball, tol=1e-6)
    assert result.status.converged
    return result


if __name__ == "__main__":
    print(main())
