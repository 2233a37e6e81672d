"""What a step rule is: a function of the iteration and of f on the segment ahead."""

from __future__ import annotations

from abc import ABC, abstractmethod

from projfree.objectives.hull import Hull


class StepRule(ABC):
    """Chooses how far to go from the first point of a hull to the second.

    A rule is a frozen dataclass; what it must remember from one iteration to the next is one number, ``memory``,
    which the solver keeps in its state.
    """

    @abstractmethod
    def __call__(self, t: int, hull: Hull, memory: float) -> tuple[float, float]:
        """The step in [0, 1] and the new memory (NaN in the beginning)."""
