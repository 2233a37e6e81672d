r"""The algorithms of the paper, line by line as printed, in plain NumPy.

Rector-Brooks, Wang, Mozafari (2019), Revisiting Projection-Free Optimization for Strongly Convex Constraint Sets,
AAAI. This module is a reference for readers of the paper. The solvers of the package compute the same iterates, which
is tested, with fewer reads of the data and with a certificate: to solve a problem, use `projfree.minimize`.

The arguments are functions: ``gradient(w)`` returns :math:`\nabla f(w)`, ``oracle(c)`` returns
:math:`\arg\min_{v \in \Omega} \langle v, c\rangle`, and ``project(w)`` returns the projection onto :math:`\Omega`. Each
algorithm is an infinite generator of its iterates. Losses are summed over rows, as printed, not averaged.

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
#: Function of t, w_t, v_t and the gradient at w_t that returns the step gamma_t.
Step = Callable[[int, Array, Array, Array], float]

# ------------------------------------------------------------------ Algorithm 1, Section 3.2


def frank_wolfe(gradient: Map, oracle: Map, w: Array, step: Step) -> Iterator[Array]:
    """Algorithm 1, the standard Frank-Wolfe method, started at ``w`` = w_1; yields w_2, w_3, ..."""
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
    """Option (B), the minimiser of a quadratic upper bound with smoothness constant L: FWLS as printed."""

    def step(t: int, w: Array, v: Array, g: Array) -> float:
        slope, curvature = float(np.sum((v - w) * g)), L * float(np.sum((v - w) ** 2))
        return min(1.0, -slope / curvature) if slope < 0 else 0.0

    return step


def line_search(f: Callable[[Array], float], tolerance: float = 1e-4) -> Step:
    """The exact line search of Section 2, which evaluates f at each trial step, as the run times of FWLS suggest.
    The search is bounded scalar minimisation with the tolerance of Matlab, about eight evaluations of f per step.
    """
    from scipy.optimize import minimize_scalar

    def step(t: int, w: Array, v: Array, g: Array) -> float:
        def along(gamma: float) -> float:
            return f((1 - gamma) * w + gamma * v)

        return float(minimize_scalar(along, bounds=(0, 1), method="bounded", options={"xatol": tolerance}).x)

    return step


# ------------------------------------------------------------------ Algorithm 2, Section 4.1


class Averaged:
    """Option (A): p_t = sum of theta_i / Theta_t times the gradient at z_{i-1}, theta_i = i. Use a new one per run."""

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
    """Algorithm 2, Primal Averaging, started at ``v`` = v_0 = w_0; yields w_1, w_2, ..."""
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

    ``row_gradients(w, S)`` returns the sum of the gradients of the rows S; ``draw(t, size)`` draws S without
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
    """Return h(w) = f(w) + theta <xi, w> and its gradient, as functions."""
    return lambda w: f(w) + theta * float(np.sum(xi * w)), lambda w: gradient(w) + theta * xi


def largest_theta(epsilon: float, D: float) -> float:
    """Return the largest theta that the theorems allow, epsilon / (4 D)."""
    return epsilon / (4 * D)


def on_the_sphere(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw xi uniformly from the unit sphere."""
    xi = rng.standard_normal(shape)
    return xi / np.linalg.norm(xi)


# ------------------------------------------------------------------ the compared methods, Appendix B.1


def gradient_descent(gradient: Map, project: Map, w: Array, eta: float) -> Iterator[Array]:
    """Projected gradient descent (GD) on the sum of the losses, with the constant step eta."""
    while True:
        w = project(w - eta * gradient(w))
        yield w


def stochastic_gradient_descent(
    row_gradient: Callable[[Array, int], Array], project: Map, w: Array, eta: float, draw: Callable[[int], int]
) -> Iterator[Array]:
    """Projected stochastic gradient descent (SGD), with one row per step and the constant step eta."""
    for t in count(1):
        w = project(w - eta * row_gradient(w, draw(t)))
        yield w


# ------------------------------------------------------------------ oracles
# The printed paper contains no oracles. The formulas are in its LaTeX source, in a passage that is not typeset. That of
# the group ball is corrected here: the source has the norm of exponent s in place of that of exponent z.


def lp_oracle(p: float, r: float) -> Map:
    """Return the oracle of the l_p ball of radius r, p > 1 (not printed in the paper)."""
    q = p / (p - 1)
    return lambda c: -r * np.sign(c) * np.abs(c) ** (q - 1) / np.sum(np.abs(c) ** q) ** (1 - 1 / q)


def schatten_oracle(p: float, r: float) -> Map:
    """Return the oracle of the Schatten-p ball of radius r, by an SVD (not printed in the paper)."""
    of_values = lp_oracle(p, r)

    def oracle(C: Array) -> Array:
        U, sigma, Vt = np.linalg.svd(C, full_matrices=False)
        return np.asarray((U * of_values(sigma)) @ Vt)

    return oracle


def group_oracle(p: float, q: float, r: float) -> Map:
    """Return the oracle of the ball of the l_q norm of the l_p norms of rows (not printed in the paper)."""
    z, s = p / (p - 1), q / (q - 1)

    def oracle(C: Array) -> Array:
        rows = np.sum(np.abs(C) ** z, axis=1, keepdims=True) ** (1 / z)
        whole = np.sum(rows**s) ** (1 / s)
        return np.asarray(-r * whole ** (1 - s) * rows ** (s - z) * np.sign(C) * np.abs(C) ** (z - 1))

    return oracle
