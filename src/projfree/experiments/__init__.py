"""The paper's experiments, one small module each; the runner, the table of results, and the report made from it."""

from __future__ import annotations

from projfree.experiments import (
    beyond,
    gradient_descent,
    iteration_time,
    non_convex,
    perturbation,
    projection_share,
    quasi_convex,
    rates,
    stochastic,
    variants,
)
from projfree.experiments.base import Claim, Experiment, Finding, Panel, Series, Task, Verdict

#: All experiments in the order of the report.
EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (
        rates,
        variants,
        iteration_time,
        gradient_descent,
        stochastic,
        projection_share,
        quasi_convex,
        non_convex,
        perturbation,
        beyond,
    )
)

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Finding", "Panel", "Series", "Task", "Verdict"]
