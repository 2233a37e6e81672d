r"""Euclidean projection onto the balls of the mixed norms :math:`(\sum_i \|x_i\|_p^q)^{1/q}`, rows being groups.

With :math:`N_i = \|x_i\|_p` and :math:`\nu_i = \|a_i - x_i\|_{p'}` (:math:`1/p + 1/p' = 1`), a row of the projection is
the projection of ``a_i`` onto the l_p ball of radius ``N_i``, and one multiplier ties the rows together:

.. math:: \nu_i = \lambda (N_i / r)^{q-1}, \qquad \sum_i N_i^q = r^q .
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_norm import conjugate, lp_norm, lp_norms, row_norms
from projfree.numerics.lp_projection import project, project_rows
from projfree.numerics.roots import falling_roots


def project_groups(w: Array, p: float, q: float, radius: float) -> Array:
    """The projection of a matrix; cost between that of one l_p projection and, in the general case, of some hundred.

    Entrywise for ``p = q``; a projection of each row for ``q = inf``; of the row norms for ``p = 2``; one search for
    the multiplier for ``q = 1``; a search for every row inside that one otherwise.
    """
    if p == q:
        return project(w, p, radius)
    if math.isinf(q):
        return project_rows(w, p, radius)
    norms = lp_norms(w, p)
    if lp_norm(norms, q) <= radius:
        return w.copy()
    if p == 2.0:
        # Each row keeps its direction; divided first, since a quotient of lengths might underflow.
        unit = w / np.where(norms > 0.0, norms, 1.0)[:, None]
        unit *= project(norms, q, radius)[:, None]
        return unit
    sizes = _soft_sizes(w, p, radius) if q == 1.0 else _sizes(w, p, q, radius)
    return project_rows(w, p, sizes * (radius / lp_norm(sizes, q)))


def _soft_sizes(w: Array, p: float, radius: float) -> Array:
    r"""``q = 1``: all :math:`\nu_i = \lambda`; by Moreau's identity ``x_i`` is ``a_i`` minus a dual projection."""
    dual = conjugate(p)

    def sizes(multiplier: float) -> Array:
        return row_norms(w - project_rows(w, dual, multiplier), p)

    def excess(multiplier: Array) -> Array:
        return np.atleast_1d(sizes(multiplier[0]).sum() - radius)

    low, high = falling_roots(excess, np.zeros(1), np.atleast_1d(row_norms(w, dual).max()))
    large, small = sizes(low[0]), sizes(high[0])
    # Against a tiny radius even neighbouring multipliers are far apart; between them the sizes are interpolated.
    gap = float(large.sum() - small.sum())
    share = (radius - float(small.sum())) / gap if gap > 0.0 else 0.0
    return small + min(max(share, 0.0), 1.0) * (large - small)


def _sizes(w: Array, p: float, q: float, radius: float) -> Array:
    r"""``1 < q < inf``: for a given :math:`\lambda` each row has its own equation for :math:`N_i`, solved inside."""
    dual = conjugate(p)
    # The unknown of a row is s with N = r s^power: of N and N^(q-1) the one in which both sides are smooth.
    power = max(1.0, 1.0 / (q - 1.0))
    # At the solution no row is longer than the radius, and with this cap no power overflows.
    longest = (np.minimum(row_norms(w, p) / radius, 1.0)) ** (1.0 / power)

    def sizes(multiplier: Array) -> Array:
        def excess(s: Array) -> Array:
            distance = row_norms(w - project_rows(w, p, radius * s**power), dual)
            return np.asarray(distance - multiplier[0] * s ** (power * (q - 1.0)))

        return np.asarray(radius * falling_roots(excess, np.zeros_like(longest), longest)[1] ** power)

    def excess(multiplier: Array) -> Array:
        return np.atleast_1d(lp_norm(sizes(multiplier), q) - radius)

    ceiling = lp_norm(row_norms(w, dual), conjugate(q))
    return sizes(falling_roots(excess, np.zeros(1), np.atleast_1d(ceiling))[0])
