"""Objectives: what is minimised."""

from projfree.objectives.base import SmoothFunction
from projfree.objectives.blackbox import BlackBox
from projfree.objectives.check_gradient import GradientCheck, check_gradient
from projfree.objectives.erm import Objective
from projfree.objectives.gram_form import gram_form
from projfree.objectives.hull import Hull
from projfree.objectives.perturbed import Perturbed, perturb
from projfree.objectives.quadratic import QuadraticForm

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
