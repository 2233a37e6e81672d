r"""The graph of the gradient of :math:`\|x\|_p^p/p`, walked along by a coordinate that is smooth everywhere.

On the curve :math:`s = \operatorname{sgn}(x)|x|^{p-1}` one of ``x`` and ``s`` has an infinite slope at zero unless
``p = 2``. The coordinate :math:`z = h x + \lambda s` of Minty, with any :math:`h \ge 0`, has bounded slopes for every
``p``: Newton's method takes ``z``, and the curve gives ``x`` and ``s`` back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from projfree.checks import Array

_ROUNDS = 40  # 3-6 are usual
_LEAST = 1e-300


class Place(NamedTuple):
    r"""Points of the curve and how they move: :math:`dx = a\,dz` and :math:`\lambda\,ds = c\,dz`, ``h a + c = 1``."""

    x: Array
    s: Array
    a: Array
    c: Array


def on_curve(z: Array, h: Array, penalty: float, p: float) -> Place:
    r"""Solve :math:`h x + \lambda s = z` on the curve, entry by entry; ``h > 0``, ``1 < p < inf``.

    With :math:`(\log x, \log s) = (\alpha t, \beta t)` the logarithm of the left-hand side is convex and increasing
    in ``t``, and Newton's method from the right falls monotonically onto the root.
    """
    from scipy.special import expit  # here, because importing it takes longer than importing NumPy

    alpha, beta = (1.0 / (p - 1.0), 1.0) if p < 2.0 else (1.0, p - 1.0)
    log_z, log_h, log_l = np.log(np.maximum(np.abs(z), _LEAST)), np.log(h), np.log(penalty)
    t = np.minimum((log_z - log_h) / alpha, (log_z - log_l) / beta)
    stop, before = 1e-9 / max(alpha, beta), np.inf
    for k in range(_ROUNDS):
        left, right = alpha * t + log_h, beta * t + log_l
        pull = expit(right - left)
        rate = alpha + (beta - alpha) * pull
        step = (np.logaddexp(left, right) - log_z) / rate
        t = t - step
        largest = float(np.max(np.abs(step)))
        if largest <= stop or (k > 1 and largest >= before):  # the second: nothing but rounding is left
            break
        before = largest
    c = beta * pull / rate
    s = np.copysign(np.exp(beta * t), z)
    # Where x takes more of a change of z than s does, the rest z - lambda s is the finer formula.
    x = np.where(c < 0.5, (z - penalty * s) / h, np.copysign(np.exp(alpha * t), z))
    live = z != 0.0
    return Place(np.where(live, x, 0.0), np.where(live, s, 0.0), alpha * np.exp(alpha * t - log_z) / rate, c)
