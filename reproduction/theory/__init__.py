"""Experiment 9: the bounds, lemmas and remarks of the paper, checked numerically; no clock is involved."""

from __future__ import annotations

from typing import Any

from reproduction.base import Experiment, Mode, Panel, Task
from reproduction.theory import bounds, constants, lemma_3, lemmas, remarks


def tasks(mode: Mode) -> list[Task]:
    """All checks."""
    return [
        bounds.bounds(mode),
        lemmas.lemma_one(mode),
        lemmas.lemma_two(mode),
        lemma_3.lemma_three(mode),
        constants.constants(mode),
        remarks.convexity(mode),
        remarks.normalised(mode),
        remarks.group_oracle(mode),
    ]


def panels(table: Any) -> list[Panel | None]:
    """A figure or two for each bound, lemma and remark."""
    return [one for part in (bounds, constants, lemmas, lemma_3, remarks) for one in part.panels(table)]


EXPERIMENT = Experiment(
    name="theory",
    title="Bounds, lemmas and remarks",
    question="Do the inequalities hold as printed?",
    paper="Sections 2 to 4; Appendix A",
    method=(
        "Bounds on least squares over l₂ balls, with errors computed without cancellation and L from the spectrum. "
        "Lemmas on random directions and points with fixed seeds. The growth of Theorem 1's constant is measured on "
        "diagonal quadratics with L = 1, PA on h, between t = 10 and the accuracy ε. Errata found: Lemma 1 lacks a "
        "factor 2; Lemma 2 lacks θ, and its one-sided argument fails; Σ 1/i² is π²/6, not π/6. What they change: the "
        "first and the last only constants; with the θ of Lemma 2 the proof gives Theorem 1 the constant dL/(α²δ²θ²) "
        "in place of dL/(α²δ²), and the rate in t stays."
    ),
    tasks=tasks,
    claims=(*bounds.CLAIMS, *constants.CLAIMS, *lemmas.CLAIMS, *lemma_3.CLAIMS, *remarks.CLAIMS),
    panels=panels,
)
