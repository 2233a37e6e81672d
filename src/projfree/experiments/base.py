"""What an experiment is: tasks that measure, claims that are judged by rule, and panels that are drawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from projfree.checks import Array

Mode = Literal["quick", "full"]
#: One row of the flat table: some of `store.COLUMNS`.
Row = dict[str, Any]


class Verdict(Enum):
    """What our measurements say about a claim; the value is what a reader sees."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    UNDEFINED = "not defined as stated"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class Finding:
    """The verdict on one claim, our number and the reason, all computed from the table."""

    verdict: Verdict
    ours: str
    reason: str

    def __post_init__(self) -> None:
        for name in ("ours", "reason"):  # a minus before a number, as the paper prints it
            object.__setattr__(self, name, re.sub(r"(?<![\w.)])-(?=[\d.])", "−", getattr(self, name)))


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, its number, and the rule that turns the table into a finding.

    Parameters
    ----------
    key : str
        A short name, unique within the experiment.
    text, paper, where : str
        What is claimed, the paper's number, and the section or figure.
    rule : str
        The rule in words.
    judge : callable
        The rule as code: the rows of the experiment in, a finding out.
    """

    key: str
    text: str
    paper: str
    where: str
    rule: str
    judge: Callable[[Any], Finding]


@dataclass(frozen=True)
class Task:
    """One unit of measurement, stored as a whole: ``run(seconds)`` yields rows and should take about so long."""

    key: str
    run: Callable[[float], Iterator[Row]]
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Series:
    """One line, set of points or group of bars of a panel."""

    name: str
    x: Sequence[Any] | Array
    y: Sequence[float] | Array
    style: Literal["line", "dashed", "points", "bar"] = "line"
    #: Same number, same colour and marker; by default the place in the panel.
    colour: int | None = None
    #: A vertical line at this x, such as the time of convergence.
    mark: float | None = None


@dataclass(frozen=True, eq=False)
class Panel:
    """A figure, described once and drawn by two back ends."""

    key: str
    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series]
    logx: bool = True
    logy: bool = True
    #: What the figure shows, in a sentence for those who cannot see it.
    alt: str = ""
    #: Says so where data were generated.
    note: str = ""


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, declared.

    Parameters
    ----------
    name, title, question : str
        The word on the command line, the heading, and what is asked.
    paper : str
        Where the paper reports it.
    method : str
        How it is measured.
    tasks : callable
        ``tasks(mode)`` lists what is to be measured.
    claims : tuple of Claim
        What is judged.
    panels : callable
        ``panels(table)`` lists the figures.
    budget : dict
        Seconds for all tasks together, by mode.
    """

    name: str
    title: str
    question: str
    paper: str
    method: str
    tasks: Callable[[Mode], list[Task]]
    claims: tuple[Claim, ...]
    panels: Callable[[Any], list[Panel]]
    budget: dict[Mode, float] = field(default_factory=lambda: {"quick": 15.0, "full": 600.0})
