"""Step rules."""

from projfree.steps.backtracking import Backtracking
from projfree.steps.base import StepRule
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
