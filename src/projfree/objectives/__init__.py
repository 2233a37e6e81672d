"""Objectives: what is minimised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.first_use import on_first_use
from projfree.objectives.base import SmoothFunction
from projfree.objectives.erm import Objective
from projfree.objectives.gram_form import gram_form
from projfree.objectives.hull import Hull
from projfree.objectives.quadratic import QuadraticForm

if TYPE_CHECKING:
    from projfree.objectives.blackbox import BlackBox
    from projfree.objectives.gradient_check import GradientCheck, check_gradient
    from projfree.objectives.perturbed import Perturbed, perturb

__all__ = [
    "BlackBox",
    "GradientCheck",
    "Hull",
    "Objective",
    "Perturbed",
    "QuadraticForm",
    "SmoothFunction",
    "check_gradient",
    "gram_form",
    "perturb",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        ".blackbox": ("BlackBox",),
        ".gradient_check": ("GradientCheck", "check_gradient"),
        ".perturbed": ("Perturbed", "perturb"),
    },
)
