"""What an experiment is: tasks that measure, claims that are judged by rule, and panels that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from projfree.checks import Array
from reproduction.words import typeset

Mode = Literal["quick", "full"]
#: One row of the flat table: some of `store.COLUMNS`.
Row = dict[str, Any]


class Verdict(Enum):
    """What our measurements say about a claim; the value is what a reader sees."""

    HOLDS = "holds"
    CHOICE = "holds under the stated choice"
    ATTAINABLE = "attainable"
    FAILS = "does not hold"
    UNATTAINED = "not attainable"
    OPEN = "not decided at this size"
    UNDEFINED = "not defined as stated"


#: The verdicts that speak for a claim, and those that speak against it.
FOR, AGAINST = (Verdict.HOLDS, Verdict.CHOICE, Verdict.ATTAINABLE), (Verdict.FAILS, Verdict.UNATTAINED)


class Origin(Enum):
    """Whose claim it is; the value is what a reader sees."""

    STATED = "the paper states"
    IMPLIED = "the paper implies"
    OURS = "we add"


@dataclass(frozen=True)
class Finding:
    """The verdict on one claim, our number, the reason and all numbers behind it, computed from the table."""

    verdict: Verdict
    ours: str
    reason: str
    numbers: str = ""

    def __post_init__(self) -> None:
        for name in ("ours", "reason", "numbers"):  # a minus before a number, as the paper prints it
            object.__setattr__(self, name, typeset(getattr(self, name)))


@dataclass(frozen=True)
class Claim:
    """A statement, its place in the paper, and the rule that turns the table into a finding.

    Parameters
    ----------
    key : str
        A short name, unique within the experiment.
    text, paper, where : str
        What is claimed, the paper's number, and the place: section, theorem or figure.
    rule : str
        The rule in words.
    judge : callable
        The rule as code: the rows of the experiment in, a finding out.
    figure : str
        What the keys of the panels that show it begin with, one or several words; empty where no figure does.
    origin : Origin
        Whether the paper states it, implies it, or we add it.
    timed : bool
        Whether the verdict rests on a clock, and may differ from machine to machine.
    """

    key: str
    text: str
    paper: str
    where: str
    rule: str
    judge: Callable[[Any], Finding]
    figure: str = ""
    origin: Origin = Origin.STATED
    timed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", typeset(self.rule))


@dataclass(frozen=True)
class Task:
    """One unit of measurement, stored as a whole: ``run()`` yields rows, ``seconds`` is about what it takes."""

    key: str
    run: Callable[[], Iterator[Row]]
    seconds: float = 1.0


@dataclass(frozen=True, eq=False)
class Series:
    """One line, set of points, band or group of bars of a panel."""

    name: str
    x: Sequence[Any] | Array
    y: Sequence[float] | Array
    style: Literal["line", "dashed", "points", "bar", "reference"] = "line"
    #: Same number, same colour and marker; by default the place in the panel.
    colour: int | None = None
    #: A vertical line at this x, such as the time of convergence.
    mark: float | None = None
    #: The lower and the upper end of the band over seeds, where there are several.
    low: Sequence[float] | Array | None = None
    high: Sequence[float] | Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", typeset(self.name))


#: Whether a claim holds at a place of a map, so that colour is not all that tells it.
STATE_SIGNS: dict[bool | None, str] = {True: "✓", False: "✗", None: "?"}


@dataclass(frozen=True, eq=False)
class Grid:
    """A map of where a claim holds: for each pair of choices a number, and what the rule says there."""

    columns: Sequence[str]
    rows: Sequence[str]
    values: Sequence[Sequence[float]]
    #: True or False, and None where the number is too near to tell or missing.
    states: Sequence[Sequence[bool | None]]

    def signs(self) -> list[list[str]]:
        """What stands in the cells before the numbers."""
        return [[STATE_SIGNS[state] for state in line] for line in self.states]


@dataclass(frozen=True, eq=False)
class Panel:
    """A figure, described once and drawn by two back ends."""

    key: str
    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series] = ()
    logx: bool = True
    logy: bool = True
    #: What the figure shows, in a sentence for those who cannot see it.
    alt: str = ""
    #: Says so where data were generated.
    note: str = ""
    #: In place of series: a map of where a claim holds.
    grid: Grid | None = None

    def __post_init__(self) -> None:
        for name in ("title", "alt", "note"):
            object.__setattr__(self, name, typeset(getattr(self, name)))


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
        ``tasks(mode)`` lists what is to be measured; the numbers of iterations are fixed by the mode.
    claims : tuple of Claim
        What is judged.
    panels : callable
        ``panels(table)`` lists the figures; None stands for one that has nothing to show.
    reads : tuple of str
        Other experiments whose rows the rules and figures need too.
    """

    name: str
    title: str
    question: str
    paper: str
    method: str
    tasks: Callable[[Mode], list[Task]]
    claims: tuple[Claim, ...]
    panels: Callable[[Any], Sequence[Panel | None]]
    reads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", typeset(self.method))
