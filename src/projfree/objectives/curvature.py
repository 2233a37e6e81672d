r"""The Hessian of an objective, intercept minimised out: what Newton's method asks for.

.. math:: H = H_{ww} - H_{wb} H_{bb}^{+} H_{bw}
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.data.second_moments import Moments
from projfree.data.workspace import Workspace
from projfree.losses.base import Loss
from projfree.objectives.evaluation import Bend
from projfree.objectives.intercepts.base import Intercept
from projfree.objectives.row_steps import Curvatures, weigh

#: Rows of a matrix that are averaged with columns at a time.
ROWS = 256


@dataclass(frozen=True)
class PairWeights(Step):
    r"""The weighted curvature of each pair of outputs, negated: :math:`p_j p_l` for softmax."""

    loss: Loss
    b: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        one, other = np.triu_indices(images[0].shape[1], 1)
        return weigh(-self.loss.majorant(images[0] + self.b, rows.y)[:, one, other], rows.s), np.zeros(0)


def curvature(
    intercept: Intercept, workspace: Workspace, x: Point, b: Array | None, features: Array | None = None
) -> Array:
    """The Hessian of the mean loss at ``x`` and the intercept ``b``: a matrix over the entries of a parameter.

    One read of the data and O(n d^2) work for each pair of outputs that the loss couples; the curvature of rows is
    formed block by block. With ``features`` it is that of their entries alone.
    """
    return bend(intercept, workspace, x, b, features).H


def bend(intercept: Intercept, workspace: Workspace, x: Point, b: Array | None, features: Array | None = None) -> Bend:
    """The same with what it says about the intercept, where there is one and all features are asked for."""
    k, free = math.prod(intercept.outputs), intercept.constant is not None
    form = _coupled if intercept.loss.coupled else _apart
    joint = form(workspace, intercept.loss, x, b, k, free, features)
    d = joint.shape[0] - free
    H = joint[:d, :, :d, :].reshape(d * k, d * k)
    if not free:
        return Bend(symmetrised(H))
    cross, own = joint[:d, :, d, :].reshape(d * k, k), joint[d, :, d, :]
    if k == 1:
        # The inverse of a number that is not normal overflows; all rows are then flat.
        inverse = 1.0 / own if own[0, 0] >= np.finfo(np.float64).tiny else np.zeros((1, 1))
    else:  # softmax does not see a common shift of its intercepts
        inverse = np.linalg.pinv(own, rcond=1e-14, hermitian=True)
    follow = cross @ inverse
    H -= follow @ cross.T
    if features is None:  # the moments are about a row that is not zero
        row = intercept.data.centre_row()
        follow += row[:, None] if k == 1 else np.kron(row[:, None], np.eye(k))
    return Bend(symmetrised(H), follow, inverse)


def shared_curvature(
    intercept: Intercept, workspace: Workspace, x: Point, b: Array | None, features: Array, places: Array | None
) -> Array:
    """The Hessian that all outputs of a quadratic loss share, of shape ``(m, m)`` for m features.

    With ``places`` only the rows of the features there.
    """
    free = intercept.constant is not None
    step = Curvatures(intercept.loss, 0.0 if b is None else b)
    (M,) = workspace.second_moments(step, x, Moments(1, 2, free, features, places))
    H = M[:-1, :-1]
    if free and M[-1, -1] > 0.0:
        H = H - np.multiply.outer(M[:-1, -1], M[-1, :-1] / M[-1, -1])
    return H if places is not None else symmetrised(H)


def symmetrised(H: Array) -> Array:
    """The mean of a square matrix and its transpose, in place of the matrix and without another one of its size."""
    for first in range(0, len(H), ROWS):
        part = slice(first, first + ROWS)
        mean = (H[part, first:] + H[first:, part].T) / 2.0
        H[part, first:], H[first:, part] = mean, mean.T
    return H


def _apart(
    workspace: Workspace, loss: Loss, x: Point, b: Array | None, k: int, centred: bool, features: Array | None
) -> Array:
    """The moments of shape ``(d + 1, k, d + 1, k)``, without the last coordinate ``(d, k, d, k)``, of outputs apart."""
    step = Curvatures(loss, 0.0 if b is None else b)
    moments = _wanted(workspace.second_moments(step, x, Moments(k, 2 * k, centred, features)), centred)
    size = moments.shape[1]
    if k == 1:
        return moments.reshape(size, 1, size, 1)
    joint = np.zeros((size, k, size, k))
    for j in range(k):
        joint[:, j, :, j] = moments[j]
    return joint


def _coupled(
    workspace: Workspace, loss: Loss, x: Point, b: Array | None, k: int, centred: bool, features: Array | None
) -> Array:
    r"""The same where they meet; pairs have weights of one sign, :math:`-p_j p_l` off the diagonal."""
    step, pairs = PairWeights(loss, 0.0 if b is None else b), k * (k - 1) // 2
    off = _wanted(workspace.second_moments(step, x, Moments(pairs, k * k + 2 * pairs, centred, features)), centred)
    size, each = off.shape[1], np.arange(k)
    one, other = np.triu_indices(k, 1)
    joint, line = np.empty((size, k, size, k)), np.zeros((k, k, size))
    for i in range(size):  # the rows of one feature stay in the cache while their outputs are interleaved
        line[one, other] = line[other, one] = off[:, i]
        joint[i] = -line.transpose(0, 2, 1)
        joint[i, each, :, each] = line.sum(axis=1)  # rows of the softmax Hessian add up to zero
    return joint


def _wanted(moments: Array, centred: bool) -> Array:
    """The moments with the last coordinate, which is that of the intercept, where there is one."""
    return moments if centred else moments[:, :-1, :-1]
