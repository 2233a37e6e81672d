r"""The Hessian of an objective, intercept minimised out: what Newton's method asks for.

.. math:: H = H_{ww} - H_{wb} H_{bb}^{+} H_{bw}
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.data.base import Data
from projfree.losses.base import Loss
from projfree.objectives.tangent import weigh


def curvature(loss: Loss, data: Data, u: Array, y: Array, *, intercept: bool) -> Array:
    """The Hessian of the mean loss at the predictions ``u``, of shape ``(D, D)`` with D the entries of a parameter.

    One read of the data and O(n d^2) work for each pair of outputs that the loss couples.
    """
    s, k = data.weights(slice(None)), int(np.prod(u.shape[1:]))
    bend = loss.majorant(u, y)
    joint = _coupled(data, bend, s, intercept) if loss.coupled else _apart(data, bend.reshape(len(u), k), s, intercept)
    d = joint.shape[0] - 1
    H = joint[:d, :, :d, :].reshape(d * k, d * k)
    if intercept:
        cross, own = joint[:d, :, d, :].reshape(d * k, k), joint[d, :, d, :]
        H = H - cross @ np.linalg.lstsq(own, cross.T, rcond=1e-14)[0]
    symmetric: Array = (H + H.T) / 2.0
    return symmetric


def _apart(data: Data, bend: Array, s: Array | float, centred: bool) -> Array:
    """The moments of shape ``(d + 1, k, d + 1, k)`` where outputs do not meet."""
    moments = data.second_moments(weigh(bend, s), centred=centred)
    k, size = moments.shape[:2]
    joint = np.zeros((size, k, size, k))
    for j in range(k):
        joint[:, j, :, j] = moments[j]
    return joint


def _coupled(data: Data, bend: Array, s: Array | float, centred: bool) -> Array:
    r"""The same where they do; pairs have weights of one sign, :math:`-p_j p_l` off the diagonal."""
    k = bend.shape[1]
    one, other = np.triu_indices(k, 1)
    off = data.second_moments(weigh(-bend[:, one, other], s), centred=centred)
    size = off.shape[1]
    joint = np.zeros((size, k, size, k))
    for a, b, moments in zip(one.tolist(), other.tolist(), off, strict=True):
        joint[:, a, :, b] = joint[:, b, :, a] = -moments
        joint[:, a, :, a] += moments  # rows of the softmax Hessian add up to zero
        joint[:, b, :, b] += moments
    return joint
