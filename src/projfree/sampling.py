"""Sampling schemes: the rows that each iteration of a solver uses."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from projfree.algebra import Point
from projfree.checks import count, positive
from projfree.objectives.base import Evaluation, SmoothFunction


class Sampling(ABC):
    """Base class of sampling schemes: rows are drawn uniformly without replacement, and their gradients averaged."""

    @abstractmethod
    def size(self, t: int, n: int) -> int:
        """Return the number of rows of iteration ``t``; ``n`` means all rows."""

    def evaluate(self, f: SmoothFunction, x: Point, t: int, seed: int, also: tuple[Point, ...] = ()) -> Evaluation:
        """Return the evaluation of f at ``x``; if rows are sampled, it contains only an estimate of the gradient.

        The rows of iteration t depend only on ``seed`` and t, so that a resumed run draws the same rows as an
        uninterrupted one.
        """
        n = f.structure.n
        m = 1 if n is None else self.size(t, n)  # functions without rows raise an error in `estimate`
        if isinstance(self, FullBatch) or (n is not None and m >= n):
            return f.evaluate(x, also)
        return Evaluation(x, math.nan, f.estimate(x, m, np.random.default_rng((seed, t))))


@dataclass(frozen=True)
class FullBatch(Sampling):
    """Use all rows in each iteration.

    Examples
    --------
    >>> FullBatch().size(3, n=50)
    50
    """

    def size(self, t: int, n: int) -> int:
        return n


@dataclass(frozen=True)
class Minibatch(Sampling):
    """Use a fixed number of rows in each iteration.

    Parameters
    ----------
    rows_each : int
        Number of rows per iteration; one is classical stochastic gradient descent.

    Examples
    --------
    >>> Minibatch(8).size(3, n=50)
    8
    """

    rows_each: int

    def __post_init__(self) -> None:
        count("Minibatch(rows_each=...)", self.rows_each)

    def size(self, t: int, n: int) -> int:
        return min(self.rows_each, n)


@dataclass(frozen=True)
class Growing(Sampling):
    r"""Use :math:`\min(\lceil t^{power}\rceil, n)` rows in iteration t.

    Stochastic PA in the paper uses power 4. With averaged gradients, power 2 suffices for the rate
    :math:`O(\log t / t^2)`, because the noise of old gradients is averaged too.

    Parameters
    ----------
    power : float
        Exponent of the growth of the sample size.

    Examples
    --------
    >>> [Growing(2).size(t, n=50) for t in (1, 3, 7, 8)]
    [1, 9, 49, 50]
    """

    power: float = 2.0

    def __post_init__(self) -> None:
        positive("Growing(power=...)", self.power)

    def size(self, t: int, n: int) -> int:
        if self.power * math.log(t) >= math.log(n):  # avoids overflow of the power
            return n
        return min(math.ceil(math.pow(t, self.power)), n)
