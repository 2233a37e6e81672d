"""Which rows an iteration looks at: an argument of a solver, not a solver."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from projfree.algebra import Point
from projfree.checks import count, positive
from projfree.objectives.base import Evaluation, SmoothFunction


class Sampling(ABC):
    """How many rows iteration t uses; they are drawn uniformly without replacement and the gradient is a mean."""

    @abstractmethod
    def size(self, t: int, n: int) -> int:
        """The number of rows, ``n`` for all of them."""

    def evaluate(self, f: SmoothFunction, x: Point, t: int, seed: int, also: tuple[Point, ...] = ()) -> Evaluation:
        """The evaluation of f at ``x`` where all rows are used, else one with an estimate of its gradient alone.

        The rows of iteration t are a function of the seed and t alone. Because nothing is carried from one iteration to
        the next, a resumed run draws what the uninterrupted one would have drawn.
        """
        n = f.structure.n
        m = 1 if n is None else self.size(t, n)  # functions without rows refuse an estimate
        if isinstance(self, FullBatch) or (n is not None and m >= n):
            return f.evaluate(x, also)
        return Evaluation(x, math.nan, f.estimate(x, m, np.random.default_rng((seed, t))))


@dataclass(frozen=True)
class FullBatch(Sampling):
    """All rows, every time.

    Examples
    --------
    >>> FullBatch().size(3, n=50)
    50
    """

    def size(self, t: int, n: int) -> int:
        return n


@dataclass(frozen=True)
class Minibatch(Sampling):
    """The same number of rows every time.

    Parameters
    ----------
    rows_each : int
        Rows an iteration; one is classical stochastic gradient descent.

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
    r"""The number of rows :math:`\min(\lceil t^{power}\rceil, n)`.

    The paper's stochastic PA uses power 4. With averaged gradients the square suffices for the rate
    :math:`O(\log t / t^2)`, because the noise of old gradients is averaged too.

    Parameters
    ----------
    power : float
        Growth of the sample.

    Examples
    --------
    >>> [Growing(2).size(t, n=50) for t in (1, 3, 7, 8)]
    [1, 9, 49, 50]
    """

    power: float = 2.0

    def __post_init__(self) -> None:
        positive("Growing(power=...)", self.power)

    def size(self, t: int, n: int) -> int:
        if self.power * math.log(t) >= math.log(n):  # before a power of t can overflow
            return n
        return min(math.ceil(math.pow(t, self.power)), n)
