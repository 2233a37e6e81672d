r"""The Hessian of an objective, intercept minimised out: what Newton's method asks for.

.. math:: H = H_{ww} - H_{wb} H_{bb}^{+} H_{bw}
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.data.base import Data
from projfree.data.curvature import RowWeights
from projfree.losses.base import Loss
from projfree.objectives.tangent import weigh

#: Rows of a matrix that are averaged with columns at a time.
ROWS = 256


def curvature(loss: Loss, data: Data, u: Array, y: Array, *, intercept: bool) -> Array:
    """The Hessian of the mean loss at the predictions ``u``, of shape ``(D, D)`` with D the entries of a parameter.

    One read of the data and O(n d^2) work for each pair of outputs that the loss couples; the curvature of rows is
    formed block by block.
    """
    k = math.prod(u.shape[1:])
    joint = (_coupled if loss.coupled else _apart)(loss, data, u, y, intercept)
    d = joint.shape[0] - 1
    H = joint[:d, :, :d, :].reshape(d * k, d * k)
    if intercept:
        cross, own = joint[:d, :, d, :].reshape(d * k, k), joint[d, :, d, :]
        H -= cross @ np.linalg.lstsq(own, cross.T, rcond=1e-14)[0]
    return symmetrised(H)


def symmetrised(H: Array) -> Array:
    """The mean of a square matrix and its transpose, in place of the matrix and without another one of its size."""
    for first in range(0, len(H), ROWS):
        part = slice(first, first + ROWS)
        mean = (H[part, first:] + H[first:, part].T) / 2.0
        H[part, first:], H[first:, part] = mean, mean.T
    return H


def _apart(loss: Loss, data: Data, u: Array, y: Array, centred: bool) -> Array:
    """The moments of shape ``(d + 1, k, d + 1, k)`` where outputs do not meet."""

    def weights(rows: slice) -> Array:
        bend = loss.majorant(u[rows], y[rows])
        return weigh(bend.reshape(len(bend), -1), data.weights(rows))

    outputs = math.prod(u.shape[1:])
    moments = data.second_moments(RowWeights(weights, outputs, 2 * outputs), centred=centred)
    k, size = moments.shape[:2]
    joint = np.zeros((size, k, size, k))
    for j in range(k):
        joint[:, j, :, j] = moments[j]
    return joint


def _coupled(loss: Loss, data: Data, u: Array, y: Array, centred: bool) -> Array:
    r"""The same where they do; pairs have weights of one sign, :math:`-p_j p_l` off the diagonal."""
    k = u.shape[1]
    one, other = np.triu_indices(k, 1)

    def weights(rows: slice) -> Array:
        return weigh(-loss.majorant(u[rows], y[rows])[:, one, other], data.weights(rows))

    off = data.second_moments(RowWeights(weights, len(one), k * k + 2 * len(one)), centred=centred)
    size = off.shape[1]
    joint = np.zeros((size, k, size, k))
    for a, b, moments in zip(one.tolist(), other.tolist(), off, strict=True):
        joint[:, a, :, b] = joint[:, b, :, a] = -moments
        joint[:, a, :, a] += moments  # rows of the softmax Hessian add up to zero
        joint[:, b, :, b] += moments
    return joint
