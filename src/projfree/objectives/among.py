r"""The Hessian of an objective among a few points, intercept minimised out: what corrections over active sets ask for.

.. math:: K_{jl} = \langle v_j, H(x)\, v_l\rangle
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.data.workspace import Workspace
from projfree.losses.base import Loss, row_blocks
from projfree.objectives.intercepts.base import Intercept
from projfree.objectives.row_steps import weigh


@dataclass(frozen=True)
class ProductsAmong(Step):
    """Products of the images of points, weighted by the curvature at the first one.

    Of the points behind the first, those of the first ``fresh`` with all of them, and where there is an intercept their
    sums for each output and the curvature in it.

    Attributes
    ----------
    loss : Loss
        The loss.
    b : ndarray or None
        The intercept at the first point.
    fresh : int
        How many points have products with all.
    """

    loss: Loss
    b: Array | None
    fresh: int

    @property
    def transient(self) -> bool:
        return True

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0] if self.b is None else images[0] + self.b
        n, k = len(u), math.prod(u.shape[1:])
        along = np.stack([image.reshape(n, k) for image in images[1:]], axis=2)  # rows, outputs, points
        products, cross, own = (self._coupled if self.loss.coupled else self._apart)(u, rows, along)
        if self.b is None:
            return None, products.ravel()
        return None, np.concatenate([products.ravel(), cross.ravel(), own.ravel()])

    def _apart(self, u: Array, rows: Rows, along: Array) -> tuple[Array, Array, Array]:
        """Where outputs do not meet."""
        n, k, m = along.shape
        h = weigh(self.loss.majorant(u, rows.y), rows.s).reshape(n, k)
        weighted = along * h[:, :, None]
        products = along.reshape(n * k, m)[:, : self.fresh].T @ weighted.reshape(n * k, m)
        return products, weighted.sum(axis=0).T, np.diag(h.sum(axis=0))

    def _coupled(self, u: Array, rows: Rows, along: Array) -> tuple[Array, Array, Array]:
        """Where they do, a few rows at a time: there is a matrix for each."""
        n, k, m = along.shape
        products, cross, own = np.zeros((self.fresh, m)), np.zeros((m, k)), np.zeros((k, k))
        s = np.broadcast_to(rows.s, n)
        for part in row_blocks(n, k * k):
            h = self.loss.majorant(u[part], rows.y[part]) * s[part, None, None]
            weighted = h @ along[part]
            size = len(weighted) * k
            products += along[part].reshape(size, m)[:, : self.fresh].T @ weighted.reshape(size, m)
            cross += weighted.sum(axis=0).T
            own += h.sum(axis=0)
        return products, cross, own


def curvature_among(
    intercept: Intercept,
    workspace: Workspace,
    x: Point,
    b: Array | None,
    points: tuple[Point, ...],
    others: tuple[Point, ...],
) -> Array:
    """The products of ``points`` with all points through the Hessian at ``x`` and the intercept ``b``, in one read."""
    q, m, k = len(points), len(points) + len(others), math.prod(intercept.outputs)
    sums, _ = workspace.sweep(ProductsAmong(intercept.loss, b, q), (x, *points, *others))
    products = sums[: q * m].reshape(q, m)
    if b is None:
        return products
    cross, own = sums[q * m : q * m + m * k].reshape(m, k), sums[q * m + m * k :].reshape(k, k)
    reduced: Array = products - cross[:q] @ np.linalg.lstsq(own, cross.T, rcond=1e-14)[0]
    return reduced
