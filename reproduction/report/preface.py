"""What a reader meets before any table: the summary in words, how to cite, and the abbreviations."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.base import AGAINST, FOR, Origin, Verdict
from reproduction.report.findings import SYMBOLS, Judged, counts, of_origin
from reproduction.words import listed

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
#: A load average above this means that other programs wanted a core beside the run, which wants one.
BUSY = 1.5
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


def in_short(one: Judged) -> str:
    """Our numbers where a claim holds, else where it does or why it does not."""
    plain = one.finding.verdict in FOR and one.finding.verdict is not Verdict.CHOICE
    return _shortened(f"ours: {one.finding.ours}" if plain else one.finding.reason)


def _shortened(text: str, most: int = 170) -> str:
    """Whole clauses of a text, as many as fit."""
    kept = ""
    for clause in text.split("; "):
        if kept and len(kept) + len(clause) > most:
            return kept + " …"
        kept = f"{kept}; {clause}" if kept else clause
    return kept


def citation(facts: dict[str, str]) -> str:
    """How to cite the reproduction."""
    return (
        f'The projfree developers: A reproduction of "Revisiting Projection-Free Optimization for Strongly Convex '
        f'Constraint Sets". projfree {facts["projfree"]}{commits(facts)}, {facts["mode"]} run of {days(facts)}.'
    )


def commits(facts: dict[str, str]) -> str:
    """The commits that the results come from, as the end of a phrase; empty where they are unknown."""
    names = facts.get("commit", "").split(", ")
    return f", commit{'s' if len(names) > 1 else ''} {listed(names)}" if names[0] else ""


def days(facts: dict[str, str]) -> str:
    """The day of a run, or the first and the last one of runs that were merged."""
    first, last = facts.get("since", facts["date"])[:10], facts["date"][:10]
    return last if first == last else f"{first} to {last}"


def cores(facts: dict[str, str]) -> str:
    """The processor's cores that a run may use."""
    return f"{facts['cores']} core" if facts["cores"] == "1" else f"{facts['cores']} cores"


def circumstances(facts: dict[str, str]) -> str:
    """How long was measured, and whether other programs ran on the machine, for the claims about time."""
    said = [f"Measuring took {facts['minutes']} minutes."] if facts.get("minutes") else []
    if facts.get("load"):
        said.append(
            f"Where times were measured the load average of the system was {facts['load']} on {cores(facts)}, of "
            "which this run makes 1."
        )
        if _largest(facts["load"]) > BUSY:
            said.append(
                "Times are processor seconds, which other programs lengthen only through the caches and the memory "
                "that they share."
            )
    if facts.get("load elsewhere") and _largest(facts["load elsewhere"]) > BUSY:
        said.append(f"In the other experiments, where no clock decides, it was {facts['load elsewhere']}.")
    return " ".join(said)


def _largest(ends: str) -> float:
    return float(ends.split(" to ")[-1])


def tally(found: Sequence[Judged], origin: Origin) -> str:
    """One of the three tallies in a line."""
    own = of_origin(found, origin)
    parts = [f"{SYMBOLS[verdict]} {verdict.value}: {n}" for verdict, n in counts(own).items() if n]
    return f"what {origin.value}, {len(own)}: {'; '.join(parts)}" if own else ""
