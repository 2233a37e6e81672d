"""A few real tasks that take a fraction of a second each."""

from __future__ import annotations

import math
from dataclasses import replace

from projfree.experiments import EXPERIMENTS

FACTS = {
    **dict.fromkeys(("date", "processor", "cores", "projfree", "numpy", "python"), "1"),
    "mode": "quick",
    "date": "2026-01-01T00:00",
}
#: Tasks that take a fraction of a second each.
TINY = {
    "rates": ("stochastic PA",),
    "variants": ("regression l_2 rho=0.3", "regression l_2 rho=0.5"),
    "iteration-time": ("regression",),
    "perturbation": ("lemma 1", "lemma 2", "bound (3)", "group oracle"),
    "beyond": ("certificates l_2 rho=0.9",),
}


def shortened(experiment):
    """The experiment with its quick tasks only, and with two seconds for them."""
    wanted = TINY[experiment.name]
    return replace(
        experiment,
        tasks=lambda mode: [task for task in experiment.tasks(mode) if task.key in wanted],
        budget={"quick": 2.0, "full": math.inf},
    )


TINY_EXPERIMENTS = [shortened(experiment) for experiment in EXPERIMENTS if experiment.name in TINY]
