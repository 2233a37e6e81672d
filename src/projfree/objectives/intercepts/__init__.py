"""Intercepts: what is minimised out besides the parameter, a strategy of an objective."""

from projfree.objectives.intercepts.base import Intercept, NoIntercept
from projfree.objectives.intercepts.centred import Centred
from projfree.objectives.intercepts.profiled import Profiled

__all__ = ["Centred", "Intercept", "NoIntercept", "Profiled"]
