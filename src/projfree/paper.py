r"""The paper's algorithms, line by line as it prints them, in plain NumPy.

Rector-Brooks, Wang, Mozafari (2019), Revisiting Projection-Free Optimization for Strongly Convex Constraint Sets,
AAAI. Read this beside the paper. The solvers of the package give the same iterates (a test compares them one by one),
read the data less often, and prove how far they are from the optimum: to solve a problem, use `projfree.minimize`.

What is passed in are functions: ``gradient(w)`` is :math:`\nabla f(w)`, ``oracle(c)`` is :math:`\arg\min_{v \in \Omega}
\langle v, c\rangle`, ``project(w)`` is the nearest point of :math:`\Omega`. Each algorithm yields its iterates without
end. Sums over rows are sums, as printed, not means.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> from projfree import paper
>>> c = np.array([3.0, 4.0])
>>> iterates = paper.primal_averaging(lambda w: w - c, paper.lp_oracle(2, 1.0), np.zeros(2), paper.Averaged())
>>> [w.round(3).tolist() for w in islice(iterates, 3)]
[[0.6, 0.8], [0.6, 0.8], [0.6, 0.8]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Map = Callable[[Array], Array]
#: From t, w_t, v_t and the gradient at w_t to the step gamma_t.
Step = Callable[[int, Array, Array, Array], float]

# ------------------------------------------------------------------ Algorithm 1, Section 3.2


def frank_wolfe(gradient: Map, oracle: Map, w: Array, step: Step) -> Iterator[Array]:
    """Algorithm 1, standard Frank-Wolfe, from ``w`` = w_1; yields w_2, w_3, ..."""
    for t in count(1):
        g = gradient(w)
        v = oracle(g)
        gamma = step(t, w, v, g)
        w = (1 - gamma) * w + gamma * v
        yield w


def option_a(t: int, w: Array, v: Array, g: Array) -> float:
    """Option (A), the predefined step 2/(t+1): FWPLR."""
    return 2 / (t + 1)


def option_b(L: float) -> Step:
    """Option (B), which minimises a quadratic upper bound and needs the smoothness L: FWLS as printed."""

    def step(t: int, w: Array, v: Array, g: Array) -> float:
        slope, curvature = float(np.sum((v - w) * g)), L * float(np.sum((v - w) ** 2))
        return min(1.0, -slope / curvature) if slope < 0 else 0.0

    return step


def line_search(f: Callable[[Array], float], tolerance: float = 1e-4) -> Step:
    """The exact line search of Section 2, which computes f anew at each trial step: FWLS as the paper's times imply.

    The search is a bounded scalar one with Matlab's tolerance, about eight values of f a step.
    """
    from scipy.optimize import minimize_scalar

    def step(t: int, w: Array, v: Array, g: Array) -> float:
        def along(gamma: float) -> float:
            return f((1 - gamma) * w + gamma * v)

        return float(minimize_scalar(along, bounds=(0, 1), method="bounded", options={"xatol": tolerance}).x)

    return step


# ------------------------------------------------------------------ Algorithm 2, Section 4.1


class Averaged:
    """Option (A): p_t = sum of theta_i / Theta_t times the gradient at z_{i-1}, with theta_i = i. One for each run."""

    def __init__(self) -> None:
        self.total: Array | float = 0.0
        self.Theta = 0.0

    def __call__(self, t: int, g: Array) -> Array:
        theta = t
        self.total, self.Theta = self.total + theta * g, self.Theta + theta
        return np.asarray(self.total / self.Theta)


def last(t: int, g: Array) -> Array:
    """Option (B): p_t is the gradient at z_{t-1}."""
    return g


def primal_averaging(gradient: Map, oracle: Map, v: Array, option: Callable[[int, Array], Array]) -> Iterator[Array]:
    """Algorithm 2, Primal Averaging, from ``v`` = v_0 = w_0; yields w_1, w_2, ..."""
    w = v
    for t in count(1):
        gamma = 2 / (t + 1)
        z = (1 - gamma) * w + gamma * v
        p = option(t, gradient(z))
        v = oracle(p)
        w = (1 - gamma) * w + gamma * v
        yield w


def stochastic_primal_averaging(
    row_gradients: Callable[[Array, Array], Array],
    N: int,
    oracle: Map,
    v: Array,
    draw: Callable[[int, int], Array],
) -> Iterator[Array]:
    """Stochastic Primal Averaging, Section 4.2: option (B) with the sum of min(t^4, N) sampled gradients.

    ``row_gradients(w, S)`` is the sum of the gradients of the rows S; ``draw(t, size)`` draws them without
    replacement.
    """
    w = v
    for t in count(1):
        gamma = 2 / (t + 1)
        z = (1 - gamma) * w + gamma * v
        S = draw(t, min(t**4, N))
        p = row_gradients(z, S)
        v = oracle(p)
        w = (1 - gamma) * w + gamma * v
        yield w


# ------------------------------------------------------------------ Theorems 1, 2 and 4


def perturbed(f: Callable[[Array], float], gradient: Map, theta: float, xi: Array) -> tuple[Any, Any]:
    """h(w) = f(w) + theta <xi, w> and its gradient."""
    return lambda w: f(w) + theta * float(np.sum(xi * w)), lambda w: gradient(w) + theta * xi


def largest_theta(epsilon: float, D: float) -> float:
    """The largest theta that the theorems allow, epsilon / (4 D)."""
    return epsilon / (4 * D)


def on_the_sphere(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """A xi that is uniform on the unit sphere."""
    xi = rng.standard_normal(shape)
    return xi / np.linalg.norm(xi)


# ------------------------------------------------------------------ the compared methods, Appendix B.1


def gradient_descent(gradient: Map, project: Map, w: Array, eta: float) -> Iterator[Array]:
    """Standard gradient descent (GD) with the constant step eta on the sum of the rows' losses, then the projection."""
    while True:
        w = project(w - eta * gradient(w))
        yield w


def stochastic_gradient_descent(
    row_gradient: Callable[[Array, int], Array], project: Map, w: Array, eta: float, draw: Callable[[int], int]
) -> Iterator[Array]:
    """Stochastic gradient descent (SGD): one row a step, the constant step eta, then the projection."""
    for t in count(1):
        w = project(w - eta * row_gradient(w, draw(t)))
        yield w


# ------------------------------------------------------------------ oracles
# The paper prints none of them. The formulas stand in its source, in a passage that is not typeset; the one of the
# group ball is corrected here (the source has the norm of exponent s where that of exponent z belongs).


def lp_oracle(p: float, r: float) -> Map:
    """Not printed: the minimiser of <v, c> over the l_p ball of radius r, p > 1."""
    q = p / (p - 1)
    return lambda c: -r * np.sign(c) * np.abs(c) ** (q - 1) / np.sum(np.abs(c) ** q) ** (1 - 1 / q)


def schatten_oracle(p: float, r: float) -> Map:
    """Not printed: the minimiser of <V, C> over the Schatten-p ball, by the singular value decomposition."""
    of_values = lp_oracle(p, r)

    def oracle(C: Array) -> Array:
        U, sigma, Vt = np.linalg.svd(C, full_matrices=False)
        return np.asarray((U * of_values(sigma)) @ Vt)

    return oracle


def group_oracle(p: float, q: float, r: float) -> Map:
    """Not printed: the minimiser of <V, C> over the ball of the l_q norm of the rows' l_p norms."""
    z, s = p / (p - 1), q / (q - 1)

    def oracle(C: Array) -> Array:
        rows = np.sum(np.abs(C) ** z, axis=1, keepdims=True) ** (1 / z)
        whole = np.sum(rows**s) ** (1 / s)
        return np.asarray(-r * whole ** (1 - s) * rows ** (s - z) * np.sign(C) * np.abs(C) ** (z - 1))

    return oracle
