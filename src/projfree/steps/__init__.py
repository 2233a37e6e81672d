"""Step rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.first_use import on_first_use
from projfree.steps.base import StepRule

if TYPE_CHECKING:
    from projfree.steps.backtracking import Backtracking
    from projfree.steps.exact import ExactLineSearch
    from projfree.steps.gradient import BacktrackingGradient, GradientStep, InverseSmoothness, InverseSqrt
    from projfree.steps.open_loop import LastGradient, LogAdaptive, OpenLoop, Schedule
    from projfree.steps.secant import Secant
    from projfree.steps.short_step import ShortStep

__all__ = [
    "Backtracking",
    "BacktrackingGradient",
    "ExactLineSearch",
    "GradientStep",
    "InverseSmoothness",
    "InverseSqrt",
    "LastGradient",
    "LogAdaptive",
    "OpenLoop",
    "Schedule",
    "Secant",
    "ShortStep",
    "StepRule",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        ".backtracking": ("Backtracking",),
        ".exact": ("ExactLineSearch",),
        ".gradient": ("BacktrackingGradient", "GradientStep", "InverseSmoothness", "InverseSqrt"),
        ".open_loop": ("LastGradient", "LogAdaptive", "OpenLoop", "Schedule"),
        ".secant": ("Secant",),
        ".short_step": ("ShortStep",),
    },
)
