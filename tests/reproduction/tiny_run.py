"""A few real tasks that take a fraction of a second each."""

from __future__ import annotations

from dataclasses import replace

from reproduction import EXPERIMENTS

FACTS = {
    **dict.fromkeys(("date", "processor", "cores", "projfree", "numpy", "python"), "1"),
    "mode": "quick",
    "date": "2026-01-01T00:00",
}
TINY = {
    "rates": ("completion 100k Schatten-2 rho=0.5", "searches rho=0.5"),
    "iteration-time": ("regression",),
    "variants": ("regression l_2 standardised", "completion Schatten-2 rho=0.9"),
    "gradient-descent": ("l_2 standardised",),
    "stochastic-rate": ("sample rho=0.1",),
    "quasi-convex": ("examples", "count r=1", "random points r=1"),
    "theory": ("bounds", "lemma 1", "lemma 2", "group oracle", "normalised gradient"),
    "beyond": ("certificates l_2 rho=0.9",),
}


def shortened(experiment):
    """The experiment with its smallest tasks only."""
    wanted = TINY[experiment.name]
    return replace(experiment, tasks=lambda mode: [task for task in experiment.tasks(mode) if task.key in wanted])


TINY_EXPERIMENTS = [shortened(experiment) for experiment in EXPERIMENTS if experiment.name in TINY]
