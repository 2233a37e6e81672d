"""The parts of an experiment: tasks that measure, claims that are judged, figures that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
#: "quick" uses the packaged data, "full" the sizes of the paper.
Mode = Literal["quick", "full"]
#: One number with the columns that say what it is: ``measure``, ``value``, and where it was measured.
Row = dict[str, Any]


class Verdict(Enum):
    """What a claim comes to; the first five are for printed numbers, the next four for statements in words."""

    REPRODUCED = "reproduced"
    EXCEEDED = "exceeded"
    CHOICE = "only under a choice"
    NOT_REPRODUCED = "not reproduced"
    UNDEFINED = "undefined"
    HOLDS = "holds"
    SOME = "holds at some settings"
    FAILS = "does not hold"
    OPEN = "open"
    FULL = "needs the full run"

    @property
    def plural(self) -> str:
        """The words for several claims."""
        verb, *rest = self.value.split(" ")
        return " ".join([{"holds": "hold", "does": "do", "needs": "need"}.get(verb, verb), *rest])


#: The verdicts of each kind, in the order in which they are counted.
PRINTED = (Verdict.REPRODUCED, Verdict.EXCEEDED, Verdict.CHOICE, Verdict.NOT_REPRODUCED, Verdict.UNDEFINED)
STATED = (Verdict.HOLDS, Verdict.SOME, Verdict.FAILS, Verdict.OPEN, Verdict.UNDEFINED)


@dataclass(frozen=True)
class Task:
    """A part of an experiment that is measured and stored at once.

    Parameters
    ----------
    name : str
        Unique within the experiment; part of the name of its file.
    run : callable
        Yields the rows.
    timed : bool
        Whether a clock decides its numbers; such tasks run last.
    """

    name: str
    run: Callable[[], Iterable[Row]]
    timed: bool = False


@dataclass(frozen=True)
class Setting:
    """A value at one setting of what the paper leaves open, and how it compares with the claim.

    ``state`` is "within", "beyond" (in the paper's favour) or "short" for printed numbers, "yes" or "no" for
    statements, and "open" where the number decides nothing.
    """

    name: str
    value: float
    state: str
    low: float = float("nan")
    high: float = float("nan")
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """What a rule found: a verdict, our value and the reason in words, every setting behind it, and the data."""

    verdict: Verdict
    ours: str
    reason: str
    settings: tuple[Setting, ...] = ()
    data: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and the rule that judges it.

    Parameters
    ----------
    key : str
        Unique within the experiment.
    where : str
        The place in the paper, by its own numbering.
    text, paper : str
        The claim, and the paper's value.
    rule : str
        The rule in words.
    judge : callable
        From the rows of the experiment to a finding.
    printed : bool
        Whether it is one of the printed measurements, in contrast to a statement in words.
    figure : str
        The figure that shows it.
    timed : bool
        Whether its verdict depends on a clock.
    full : bool
        Whether it needs data of the paper's size, so that the quick run leaves it undecided.
    """

    key: str
    where: str
    text: str
    paper: str
    rule: str
    judge: Callable[[Any], Finding]
    printed: bool = False
    figure: str = ""
    timed: bool = False
    full: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure; ``number`` is that of the paper's figure which it redraws, or 0 for a variant behind a link.

    ``draw`` returns a Matplotlib figure, or None if the run holds nothing to draw.
    """

    key: str
    number: int
    caption: str
    draw: Callable[[Any], Any]


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    ``reads`` names others whose rows its rules and figures need too; ``remarks`` are sentences about what was measured
    that are no claims of the paper.
    """

    name: str
    title: str
    method: str
    tasks: Callable[[Mode], Sequence[Task]]
    claims: Sequence[Claim]
    figures: Sequence[Figure] = ()
    reads: tuple[str, ...] = ()
    remarks: Callable[[Any], Sequence[str]] = lambda table: ()
