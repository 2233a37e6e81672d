r"""Between radii and the penalties of scikit-learn.

The multiplier :math:`\mu` of a radius r is the one for which the answer also minimises :math:`f(w) + \mu \|w\|`.
scikit-learn scales its losses and squares its norms in other ways; n is the sum of the sample weights throughout.
"""

from __future__ import annotations

import math
from typing import Any


def lasso_alpha(multiplier: float) -> float:
    r"""``alpha`` of `Lasso`, `MultiTaskLasso` and the group lasso: :math:`\mu / 2`, as they halve the squares.

    Examples
    --------
    >>> lasso_alpha(0.5)
    0.25
    """
    return multiplier / 2.0


def ridge_alpha(multiplier: float, radius: float, n: float) -> float:
    r"""``alpha`` of `Ridge`: :math:`\mu n / (2 r)`, from the sum of squares plus :math:`\alpha \|w\|_2^2`.

    Examples
    --------
    >>> ridge_alpha(0.5, radius=2.0, n=100)
    12.5
    """
    return multiplier * n / (2.0 * radius)


def logistic_C(multiplier: float, radius: float, n: float, p: float = 2.0) -> float:
    r"""``C`` of `LogisticRegression`: :math:`r / (n \mu)` for l_2 and :math:`1 / (n \mu)` for l_1.

    Examples
    --------
    >>> logistic_C(0.5, radius=2.0, n=100), logistic_C(0.5, radius=2.0, n=100, p=1)
    (0.04, 0.02)
    """
    if p not in (1.0, 2.0):
        raise ValueError(f"`p` must be 1 or 2, the penalties that LogisticRegression has, got {p:g}.")
    if multiplier <= 0.0:
        return math.inf
    return (radius if p == 2.0 else 1.0) / (n * multiplier)


def total_weight(data: Any) -> float:
    """The sum of the weights of rows, or of those behind moments."""
    return float(data.n if data.total_weight is None else data.total_weight)
