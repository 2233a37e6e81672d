"""Options of the commands: groups of options as data classes, and single options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from projfree.checks import shown
from projfree.losses import BY_NAME

#: Losses for classification and for regression.
CLASSIFICATION_LOSSES = tuple(name for name, kind in BY_NAME.items() if kind.labels)
REGRESSION_LOSSES = tuple(name for name in BY_NAME if name not in CLASSIFICATION_LOSSES)

Data = Annotated[
    Path, typer.Argument(help="A table: .csv, .tsv, .txt or .data (also .gz), .parquet or .npy.", show_default=False)
]
Model = Annotated[Path, typer.Argument(help="The folder that fit or complete wrote.", show_default=False)]
ModelFolder = Annotated[Path, typer.Option("--out", help="The folder of the model.", rich_help_panel="Output")]
Target = Annotated[
    list[str],
    typer.Option(
        help="The column to predict: name, or number from 0 (-1 is the last); may be given several times.",
        rich_help_panel="The table",
    ),
]


def option(default: Any, help: str, *names: str, **more: Any) -> Any:
    """Define an option as a field of a group; by default it is named after the field."""
    return field(default=default, metadata={"option": typer.Option(default, *names, help=help, **more)})


def expand_option_groups(function: Callable[..., Any]) -> Callable[..., Any]:
    """Replace parameters that are groups of options by the options of the group.

    Parameters
    ----------
    function : callable
        Its parameters are options of typer and groups: data classes whose fields are made by `option`, with the
        attribute ``panel``, the title of their section of the help.
    """
    hints, parameters = get_type_hints(function, include_extras=True), list[inspect.Parameter]()
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if hasattr(kind, "panel")}
    for name, own in inspect.signature(function).parameters.items():
        if name not in groups:
            parameters.append(own.replace(annotation=hints[name], kind=own.KEYWORD_ONLY))
            continue
        types = get_type_hints(groups[name])
        for f in fields(groups[name]):
            default = f.metadata["option"]
            default.rich_help_panel = groups[name].panel
            parameters.append(inspect.Parameter(f.name, own.KEYWORD_ONLY, default=default, annotation=types[f.name]))

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{f.name: given.pop(f.name) for f in fields(group)})
        return function(**given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@dataclass(frozen=True)
class Printing:
    """Options for the output of a command."""

    panel: ClassVar[str] = "Output"
    json: bool = option(False, "Print one JSON object instead of text.", "--json")
    quiet: bool = option(False, "Print nothing but errors.", "--quiet", "-q")
    debug: bool = option(False, "Show the traceback of an error.", "--debug")

    @property
    def silent(self) -> bool:
        """Whether to suppress notes and progress bars."""
        return self.json or self.quiet


@dataclass(frozen=True)
class Writing(Printing):
    """Options of commands that write a file."""

    force: bool = option(False, "Replace what an earlier run wrote to --out.", "--force")


@dataclass(frozen=True)
class Layout:
    """Options for the format of a text file."""

    panel: ClassVar[str] = "The table"
    sep: str | None = option(None, "The character between fields, or tab or space; by default a comma, or a tab.")
    header: bool | None = option(None, "Whether the first line has names; by default if it has no number.")


@dataclass(frozen=True)
class Columns(Layout):
    """Options for the columns of a table."""

    drop: list[str] | None = option(None, "A column to leave out; may be given several times.")
    impute: str | None = option(None, "Of missing numbers: median fills them in, drop leaves their rows out.")
    one_hot: str = option("auto", "A column for each level of text: auto, none, or further columns to encode, as a,b.")


@dataclass(frozen=True)
class Linear:
    """Options that define a linear model over a ball."""

    panel: ClassVar[str] = "The model"
    loss: str = option(
        "auto", f"auto, for numbers {', '.join(REGRESSION_LOSSES)}, for classes {', '.join(CLASSIFICATION_LOSSES)}."
    )
    quantile: float | None = option(None, "For --loss quantile: the level, between 0 and 1; the median by default.")
    norm: str = option("lp", "The norm of the ball: lp, group or schatten.")
    p: str | None = option(None, "Its exponent, inf too; or several to choose from, as 1,1.5,2.", "--p")
    q: float | None = option(None, "For --norm group: the exponent across groups, 1 by default.", "--q")
    feature_groups: str | None = option(None, "For --norm group: auto (the columns of the table), or as 'a,b;c,d'.")
    radius: float | None = option(None, "The radius of the ball; by default cross-validation chooses it.")
    C: float | None = option(None, "For classes, in place of a radius: as C of LogisticRegression.", "--C")
    alpha: float | None = option(None, "For numbers, in place of a radius: the penalty as of Ridge and Lasso.")
    standardize: bool | None = option(None, "Centre and scale the features; by default if --cv chooses the radius.")
    intercept: bool = option(True, "Fit an intercept, which the ball does not hold.")
    tol: float = option(1e-6, "The relative gap to certify.", min=0.0)

    def size(self) -> dict[str, float]:
        """Return the one of --radius, --C and --alpha that is given; empty if cross-validation chooses the radius."""
        size = {name: value for name in ("radius", "C", "alpha") if (value := getattr(self, name)) is not None}
        if len(size) > 1:
            raise ValueError(f"--{' and --'.join(size)} say the same in different ways; give one of them.")
        return size

    def exponents(self) -> list[float | None]:
        """Return the exponents in --p; ``[None]`` stands for the default of the norm."""
        try:
            return [None] if self.p is None else [float(part) for part in self.p.split(",")]
        except ValueError:
            raise ValueError(f"--p must be a number, or several as 1,1.5,2, got {shown(self.p)}.") from None

    def standardizes(self) -> bool:
        """Return whether to standardize; by default only if cross-validation chooses the radius."""
        return not self.size() if self.standardize is None else self.standardize


@dataclass(frozen=True)
class Run:
    """Options for the test part, the seed and the time limit."""

    panel: ClassVar[str] = "The run"
    hold_out: float = option(0.2, "The share of the rows that the score is about; 0 for no score.", min=0.0, max=0.9)
    seed: int = option(0, "Of the rows held out, and of what is random in the fit.", min=0)
    time_limit: float | None = option(None, "Seconds after which the fit ends.")
