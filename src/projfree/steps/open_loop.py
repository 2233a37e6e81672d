"""Steps fixed beforehand."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from projfree.checks import positive
from projfree.objectives.hull import Hull
from projfree.steps.base import StepRule


class Schedule(StepRule):
    """A rule that looks at nothing but the iteration, and so can also weight an average of gradients."""

    @abstractmethod
    def weight(self, t: int) -> float:
        """The step of iteration t = 1, 2, ...; the first is 1."""

    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        return self.weight(t), memory


@dataclass(frozen=True)
class OpenLoop(Schedule):
    r""":math:`\gamma_t = \ell / (t + \ell - 1)`; :math:`\ell = 2` is the classical :math:`2 / (t + 1)`.

    Parameters
    ----------
    ell : float
        Larger values forget the past sooner and, where f allows it, converge like :math:`t^{-\ell}`.

    Examples
    --------
    >>> [OpenLoop(2).weight(t) for t in (1, 3)]
    [1.0, 0.5]
    """

    ell: float = 2.0

    def __post_init__(self) -> None:
        positive("OpenLoop(ell=...)", self.ell, "Use `LastGradient()` for a weight of one.")

    def weight(self, t: int) -> float:
        return self.ell / (t - 1.0 + self.ell)  # in this order the first is exactly 1


@dataclass(frozen=True)
class LogAdaptive(Schedule):
    r""":math:`\gamma_t = \ell_t / (t + \ell_t - 1)` with :math:`\ell_t = 2 + \log(t + 1)`.

    Examples
    --------
    >>> round(LogAdaptive().weight(10), 3)
    0.328
    """

    def weight(self, t: int) -> float:
        ell = 2.0 + math.log(t + 1.0)
        return ell / (t - 1.0 + ell)


@dataclass(frozen=True)
class LastGradient(Schedule):
    """The weight one: an average with this weight is the last gradient alone (the paper's option B).

    Examples
    --------
    >>> LastGradient().weight(7)
    1.0
    """

    def weight(self, t: int) -> float:
        return 1.0
