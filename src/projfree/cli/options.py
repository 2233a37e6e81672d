"""The options that several commands share, and what they mean."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from projfree.checks import shown
from projfree.losses import BY_NAME

#: The losses whose targets are labels.
CLASSES = tuple(name for name, kind in BY_NAME.items() if kind.labels)
#: Those whose targets are numbers.
NUMBERS = tuple(name for name in BY_NAME if name not in CLASSES)
#: The parts of a help page.
TABLE, MODEL, RUN, OUTPUT, FEATURES = "The table", "The model", "The run", "Output", "Scale and intercept"


#: Choices are enumerations, the one form that every typer knows.
class LossChoice(StrEnum):
    """The losses by name: those of the package, so that a new one is a choice as well."""

    auto = "auto"
    locals().update({name: name for name in BY_NAME})


NormChoice = StrEnum("NormChoice", ["lp", "group", "schatten"])
ImputeChoice = StrEnum("ImputeChoice", ["median", "drop"])

Data = Annotated[
    Path, typer.Argument(help="A table: .csv, .tsv, .txt or .data (also .gz), .parquet or .npy.", show_default=False)
]
Target = Annotated[
    str,
    typer.Option(
        help="The column to predict: name, or number from 0 (-1 is the last).",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        help="The character between fields of a text file, or tab or space; a comma by default, a tab for .tsv.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether a text file begins with names; by default where no field of its first line is a number.",
        rich_help_panel=TABLE,
    ),
]
LossName = Annotated[
    LossChoice,
    typer.Option(
        metavar="NAME",
        help=f"The loss: auto (squared for numbers, logistic for text); {', '.join(NUMBERS)}; for classes "
        f"{', '.join(CLASSES)}.",
        rich_help_panel=MODEL,
    ),
]
Level = Annotated[
    float | None,
    typer.Option(
        "--quantile",
        help="For --loss quantile: what to predict, between 0 and 1; the median by default.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
Norm = Annotated[
    NormChoice, typer.Option(metavar="NAME", help="The norm of the ball: lp, group or schatten.", rich_help_panel=MODEL)
]
Exponent = Annotated[
    str,
    typer.Option(
        "--p",
        help="Its exponent; inf is allowed. Cross-validation chooses from several, as 1,1.5,2.",
        rich_help_panel=MODEL,
    ),
]
AcrossGroups = Annotated[
    float | None,
    typer.Option("--q", help="The exponent across groups, 1 by default.", show_default=False, rich_help_panel=MODEL),
]
FeatureGroups = Annotated[
    str | None,
    typer.Option(
        help="For --norm group: auto, a group for each column of the table with all its levels, or columns such as "
        "'age,hours;gain,loss'; others are alone.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
Radius = Annotated[
    str | None,
    typer.Option(
        help="The radius of the ball; without one, 5-fold cross-validation chooses it.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--cv",
        help="Choose the radius, and one of several p, by cross-validation with so many folds; 0 for the penalty of "
        "scikit-learn, alpha or C of 1.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
Tol = Annotated[float, typer.Option(help="The relative gap to certify.", rich_help_panel=RUN)]
Drop = Annotated[
    list[str] | None, typer.Option(help="A column to leave out; may be given several times.", rich_help_panel=TABLE)
]
Impute = Annotated[
    ImputeChoice | None,
    typer.Option(
        help="What to do with missing numbers: fill them, or drop their rows; by default they are refused.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
OneHot = Annotated[
    str,
    typer.Option(
        help="Text as one column for each level: auto or none; or columns to encode as well as text, as a,b.",
        rich_help_panel=TABLE,
    ),
]
Standardize = Annotated[
    bool | None,
    typer.Option(
        "--standardize/--no-standardize",
        help="Centre and scale the features; the radius is then on scaled ones. By default where cross-validation "
        "chooses it.",
        show_default=False,
        rich_help_panel=FEATURES,
    ),
]
Intercept = Annotated[
    bool, typer.Option(help="Fit an intercept, which the ball does not hold.", rich_help_panel=FEATURES)
]
Seed = Annotated[int, typer.Option(help="Of the rows held out.", rich_help_panel=RUN)]


def radius_of(text: str | None) -> float | None:
    """The radius option as a number, None where there is none."""
    if text is None:
        return None
    value = _number(text)
    if not 0 < value < math.inf:
        raise ValueError(f"--radius must be a positive number, got {shown(text)}; leave it out to have it chosen.")
    return value


def exponents_of(text: str, cv: int) -> list[float]:
    """The exponents of --p: one, or those from which cross-validation chooses."""
    values = [_number(part) for part in text.split(",")]
    if not all([value >= 1 for value in values]):
        raise ValueError(f"--p must be at least 1, got {text}.")
    if len(values) > 1 and not cv:
        raise ValueError(f"--p must be one number with --radius or --cv 0, got {text}; leave these out to choose.")
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def refuse_below(option: str, value: float | None, least: float, strictly: bool = False) -> None:
    """Raise where a number is too small, or none."""
    if value is None or value > least or (value == least and not strictly):
        return
    rule = f"more than {least:g}" if strictly else f"at least {least:g}"
    raise ValueError(f"{option} must be {rule}, got {value:g}.")


def level_of(quantile: float | None, loss: str) -> dict[str, float]:
    """The quantile as a parameter of an estimator, where there is one."""
    if quantile is None:
        return {}
    if loss != "quantile":
        raise ValueError(f"--quantile is for --loss quantile, got --loss {loss}.")
    if not 0 < quantile < 1:
        raise ValueError(f"--quantile must be between 0 and 1, got {quantile:g}.")
    return {"quantile": quantile}


def refuse_share(option: str, value: float) -> None:
    """Raise where a part of the rows is none."""
    if not 0 <= value < 1:
        raise ValueError(f"{option} must be at least 0 and less than 1, got {value:g}.")


HoldOut = Annotated[
    float, typer.Option(help="The part of the rows kept for the score; 0 for none.", rich_help_panel=RUN)
]
MaxIter = Annotated[int, typer.Option(help="The largest number of iterations.", rich_help_panel=RUN)]
TimeLimit = Annotated[
    float | None, typer.Option(help="Seconds after which the fit ends.", show_default=False, rich_help_panel=RUN)
]
ModelFolder = Annotated[
    Path, typer.Option("--out", help="The folder of the model.", show_default=False, rich_help_panel=OUTPUT)
]
