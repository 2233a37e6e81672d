"""The paper's experiments, one small module each; the runner, the table of results, and the report made from it."""

from __future__ import annotations

from reproduction import (
    beyond,
    gradient_descent,
    iteration_time,
    non_convex,
    perturbation,
    projection_share,
    quasi_convex,
    rates,
    stochastic,
    stochastic_rate,
    theory,
    variants,
)
from reproduction.base import Claim, Experiment, Finding, Grid, Origin, Panel, Series, Task, Verdict

#: All experiments in the order of the report; one that reads another's rows stands after it.
EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (
        rates,
        iteration_time,
        variants,
        gradient_descent,
        stochastic,
        stochastic_rate,
        projection_share,
        quasi_convex,
        non_convex,
        theory,
        perturbation,
        beyond,
    )
)

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Finding", "Grid", "Origin", "Panel", "Series", "Task", "Verdict"]
