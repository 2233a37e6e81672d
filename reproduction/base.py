"""Data classes of an experiment: tasks that measure, claims with decision rules, and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
#: "quick" uses the packaged data, "full" the data sizes of the paper.
Mode = Literal["quick", "full"]
#: A measured number: ``measure``, ``value``, and columns for the data and settings it belongs to.
Row = dict[str, Any]


class Verdict(Enum):
    """Outcome of a claim. The first five values are for printed numbers, the next four for statements in words."""

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
        """The text of the verdict for several claims."""
        verb, *rest = self.value.split(" ")
        return " ".join([{"holds": "hold", "does": "do", "needs": "need"}.get(verb, verb), *rest])


#: The verdicts of printed numbers and of statements, in the order of the report.
PRINTED = (Verdict.REPRODUCED, Verdict.EXCEEDED, Verdict.CHOICE, Verdict.NOT_REPRODUCED, Verdict.UNDEFINED)
STATED = (Verdict.HOLDS, Verdict.SOME, Verdict.FAILS, Verdict.OPEN, Verdict.UNDEFINED)


@dataclass(frozen=True)
class Task:
    """Part of an experiment whose rows are measured and stored together.

    Parameters
    ----------
    name : str
        Unique within the experiment; part of the name of its file.
    run : callable
        A function that yields the rows.
    timed : bool
        Whether the numbers are times; such tasks run last.
    """

    name: str
    run: Callable[[], Iterable[Row]]
    timed: bool = False


@dataclass(frozen=True)
class Setting:
    """A measured value at one setting of the choices that the paper leaves open, compared with the claim.

    ``state`` is "within", "beyond" (in favour of the paper) or "short" for printed numbers, "yes" or "no" for
    statements, and "open" if the number is not conclusive.
    """

    name: str
    value: float
    state: str
    low: float = float("nan")
    high: float = float("nan")
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """Result of a decision rule: verdict, our value, the reason in words, all settings, and the data used."""

    verdict: Verdict
    ours: str
    reason: str
    settings: tuple[Setting, ...] = ()
    data: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and its decision rule.

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
        A function of the rows of the experiment that returns a finding.
    printed : bool
        Whether it is a printed measurement rather than a statement in words.
    figure : str
        The figure that shows it.
    timed : bool
        Whether the verdict depends on measured times.
    full : bool
        Whether it needs data of the paper's size, so that a quick run cannot decide it.
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
    """A figure; ``number`` is that of the figure in the paper, or 0 for a variant on a separate page.

    ``draw`` returns a Matplotlib figure, or None if there are no data for it.
    """

    key: str
    number: int
    caption: str
    draw: Callable[[Any], Any]


@dataclass(frozen=True)
class Experiment:
    """An experiment: its tasks, claims and figures.

    ``reads`` names other experiments whose rows its rules and figures use. ``remarks`` returns sentences about
    observations that are not claims of the paper.
    """

    name: str
    title: str
    method: str
    tasks: Callable[[Mode], Sequence[Task]]
    claims: Sequence[Claim]
    figures: Sequence[Figure] = ()
    reads: tuple[str, ...] = ()
    remarks: Callable[[Any], Sequence[str]] = lambda table: ()
