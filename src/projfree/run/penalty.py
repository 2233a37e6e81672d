r"""Between radii and the penalties of scikit-learn.

The multiplier :math:`\mu` of a radius r is the one for which the answer also minimises
:math:`f(w) + \mu \|w\|`. scikit-learn scales its losses and squares its norms in other ways; n is the sum of the sample
weights throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from projfree.checks import instance, positive
from projfree.objectives import Objective
from projfree.run.loop import minimize
from projfree.run.result import Result, one_of_many
from projfree.sets.base import ConstraintSet

#: The relative accuracy of the radius, and of the values of the solutions on the way.
ACCURACY, SOLUTIONS = 1e-9, 1e-11
MOST = 60
#: Logarithms of penalties are told apart up to this distance.
FAR = 2.0


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


@dataclass(frozen=True)
class Penalty:
    """How a library writes the penalty that a multiplier and a radius amount to.

    Attributes
    ----------
    name : str
        The library's parameter.
    of : callable
        ``of(multiplier, radius, n)``: its value.
    grows : bool
        Whether it grows with the radius, as C does.
    """

    name: str
    of: Callable[[float, float, float], float]
    grows: bool = False


#: Each penalty under the name of the estimator that has it.
PENALTIES = {
    "Ridge": Penalty("alpha", ridge_alpha),
    "Lasso": Penalty("alpha", lambda multiplier, radius, n: lasso_alpha(multiplier)),
    "LogisticRegression l2": Penalty("C", logistic_C, grows=True),
    "LogisticRegression l1": Penalty("C", partial(logistic_C, p=1.0), grows=True),
}


def penalty_of(result: Result, f: Objective, estimator: str) -> float:
    """The penalty of a scikit-learn estimator at which it gives the answer of ``result``.

    Parameters
    ----------
    result : Result
        Of `minimize` over a norm ball.
    f : Objective
        What was minimised.
    estimator : str
        A key of `PENALTIES`: "Ridge", "Lasso", "LogisticRegression l2" or "LogisticRegression l1".

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data, minimize
    >>> from projfree.run.penalty import penalty_of
    >>> f = Objective(Squared(), as_data(np.eye(2), [3.0, 4.0]))
    >>> penalty_of(minimize(f, LpBall(2, radius=2.5), tol=1e-12), f, "Ridge")  # halves the answer
    1.0
    """
    if result.multiplier is None:
        raise TypeError(f"a penalty belongs to a norm ball with a radius, got {result.certificate.ball!r}.")
    radius: float = result.certificate.ball.radius  # type: ignore[attr-defined]  # it has a multiplier
    return float(f"{_known(estimator).of(result.multiplier, radius, total_weight(f.data)):.12g}")


def radius_of(f: Objective, ball: ConstraintSet, estimator: str, value: float) -> float:
    """The radius at which `minimize` gives the answer of a scikit-learn estimator with this penalty.

    The penalty is monotone in the radius; about a dozen warm-started solutions find it.

    Parameters
    ----------
    f : Objective
        The same loss and data, with or without intercept as the estimator.
    ball : ConstraintSet
        The ball of the estimator's norm; its radius is where the search starts.
    estimator, value
        A key of `PENALTIES`, and the value of its parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data
    >>> from projfree.run.penalty import radius_of
    >>> f = Objective(Squared(), as_data(np.eye(2), [3.0, 4.0]))
    >>> round(radius_of(f, LpBall(2, radius=1.0), "Ridge", 1.0), 6)
    2.5
    """
    from scipy.optimize import brentq

    instance("f", f, Objective, "Objective(Squared(), as_data(X, y))")
    penalty, n = _known(estimator), total_weight(f.data)
    target = math.log(positive("value", value))
    sign = 1.0 if penalty.grows else -1.0
    before: list[Result] = []

    def excess(log_radius: float) -> float:
        """Positive where the radius is too large."""
        here = ball.resized(math.exp(log_radius))
        start = before[-1].w if before and here.contains(before[-1].w) else None
        result = one_of_many(minimize(f, here, tol=SOLUTIONS, start=start, max_iter=100_000))
        before.append(result)
        found = penalty.of(result.multiplier or 0.0, math.exp(log_radius), n)
        if found <= 0.0 or math.isinf(found):
            return FAR
        return min(max(sign * (math.log(found) - target), -FAR), FAR)  # flat far away, where rounding decides

    low = high = math.log(getattr(ball, "radius", 1.0))
    while excess(low) > 0.0 and len(before) < MOST:
        low -= 2.0
    while excess(high) < 0.0 and len(before) < MOST:
        high += 2.0
    if excess(low) > 0.0 or excess(high) < 0.0:
        raise ValueError(
            f"no radius of {ball!r} amounts to {penalty.name}={value:g}: at such a penalty all coefficients are zero, "
            f"or the ball does not bind; use a {'larger' if penalty.grows else 'smaller'} value."
        )
    return math.exp(brentq(excess, low, high, xtol=ACCURACY, rtol=ACCURACY))


def _known(estimator: str) -> Penalty:
    if estimator not in PENALTIES:
        raise ValueError(f"`estimator` must be one of {', '.join(map(repr, PENALTIES))}, got {estimator!r}.")
    return PENALTIES[estimator]


def total_weight(data: Any) -> float:
    """The sum of the weights of rows, or of those behind moments."""
    return float(data.n if data.total_weight is None else data.total_weight)
