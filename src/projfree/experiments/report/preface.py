"""What a reader meets before any table: the summary in words, how to cite, and the abbreviations."""

from __future__ import annotations

from collections.abc import Sequence

from projfree.experiments.base import AGAINST, FOR, Origin, Verdict
from projfree.experiments.report.findings import Judged, counts, of_origin
from projfree.experiments.words import listed

PAPER = (
    "J. Rector-Brooks, J.-K. Wang, B. Mozafari: Revisiting Projection-Free Optimization for Strongly Convex Constraint "
    "Sets. Proceedings of the AAAI Conference on Artificial Intelligence 33 (AAAI-19), 2019."
)
ABBREVIATIONS = {
    "PA": "Primal Averaging, the method that the paper advocates (Algorithm 2, option A)",
    "SPA": "stochastic PA (Section 4.2): option B with t⁴ sampled rows at iteration t",
    "FW": "Frank-Wolfe (Algorithm 1)",
    "FWPLR": "Frank-Wolfe with the predefined learning rate 2/(t+1) (option A)",
    "FWLS": "Frank-Wolfe with line search: the exact search of Section 2, or option B as printed, a short step with L",
    "GD, SGD": "projected gradient descent, and its stochastic form with one row a step",
    "ρ": "the radius in units of the norm of the unconstrained minimiser (of the observed matrix for completion)",
    "r, α, D": "radius, strong convexity constant and diameter of the constraint set",
    "L, f*": "smoothness constant and minimum of the loss",
    "h, θ, ξ, ε": "the perturbed function f + θ⟨ξ, w⟩, its size and direction, and the accuracy asked for",
    "l₂, l₁.₁": "balls of the vector norm with that exponent; Schatten-p the same for singular values",
}
#: The claims that the summary names: experiment and key.
HEADLINES = (
    ("rates", "logistic-theorem"),
    ("variants", "fewer"),
    ("variants", "regression-fwplr"),
    ("variants", "regression-fwls"),
    ("gradient-descent", "factor"),
    ("stochastic", "sides"),
    ("quasi-convex", "above"),
    ("non-convex", "gap"),
)


def opening(found: Sequence[Judged], mode: str) -> list[str]:
    """A few sentences: how many statements were judged, how they fared, and what the size leaves open."""
    stated = of_origin(found, Origin.STATED)
    of = counts(stated)
    yes, no = (sum(of[v] for v in verdicts) for verdicts in (FOR, AGAINST))
    sentences = [
        f"Of {len(stated)} statements of the paper, these measurements support {yes}: {of[Verdict.HOLDS]} outright, "
        f"{of[Verdict.CHOICE]} under a choice that the paper leaves open and that is named here, and "
        f"{of[Verdict.ATTAINABLE]} as single slopes that some window and radius of ours gives.",
        f"Of the others, {no} {_verb(no, 'does', 'do')} not hold in any reasonable reading, {of[Verdict.UNDEFINED]} "
        f"{_verb(of[Verdict.UNDEFINED], 'is', 'are')} not defined as stated, and {of[Verdict.OPEN]} "
        f"{_verb(of[Verdict.OPEN], 'is', 'are')} not decided at this size.",
    ]
    if mode == "quick":
        sentences.append(
            "This is a quick run on 7,000 rows; where the size of the data decides, only a full run answers."
        )
    return sentences


def _verb(n: int, one: str, many: str) -> str:
    return one if n == 1 else many


def headlines(found: Sequence[Judged]) -> list[Judged]:
    """The claims that most readers look for, as far as they were judged."""
    by = {(one.experiment.name, one.claim.key): one for one in found}
    return [by[key] for key in HEADLINES if key in by]


def against(found: Sequence[Judged]) -> list[Judged]:
    """The paper's statements that do not hold, and those that are not defined."""
    wanted = (*AGAINST, Verdict.UNDEFINED)
    return [one for one in of_origin(found, Origin.STATED) if one.finding.verdict in wanted]


def citation(facts: dict[str, str]) -> str:
    """How to cite the reproduction."""
    commit = f", commit {facts['commit']}" if facts.get("commit") else ""
    return (
        f'The projfree developers: A reproduction of "Revisiting Projection-Free Optimization for Strongly Convex '
        f"Constraint "
        f'Sets". projfree {facts["projfree"]}{commit}, {facts["mode"]} run of {facts["date"][:10]}.'
    )


def circumstances(facts: dict[str, str]) -> str:
    """How long was measured, and whether other programs ran on the machine, for the claims about time."""
    said = f"Measuring took {facts['minutes']} minutes." if facts.get("minutes") else ""
    if facts.get("load"):
        said += (
            f" The system's load average was {facts['load']} on {facts['cores']} cores meanwhile; times are "
            "processor seconds, which other programs lengthen only through the caches and the memory that they share."
        )
    return said.strip()


def tally(found: Sequence[Judged], origin: Origin) -> str:
    """One of the three tallies in a line."""
    own = of_origin(found, origin)
    parts = [f"{n} {verdict.value}" for verdict, n in counts(own).items() if n]
    return f"{origin.value} {len(own)}: {listed(parts)}" if own else ""
