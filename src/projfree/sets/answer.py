"""What an oracle answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from projfree.checks import Array

if TYPE_CHECKING:
    from projfree.sets.base import ConstraintSet


class Answer(NamedTuple):
    """The answer of an oracle about a gradient g.

    Attributes
    ----------
    vertex : array
        A minimiser of the linear function g over the set.
    support : float
        The support of -g, or an upper bound on it; NaN where it was not asked for.
    warm : object
        What the next call likes to begin from, None where that is nothing.
    """

    vertex: Any
    support: float
    warm: Any = None


def ask(ball: ConstraintSet, g: Array, warm: Any = None) -> Answer:
    """The answer of ``ball.oracle``, which may be ``(vertex, support)`` alone.

    Such sets leave nothing to begin from, so that their functions are never given any ``warm``.
    """
    return Answer(*(ball.oracle(g) if warm is None else ball.oracle(g, warm)))
