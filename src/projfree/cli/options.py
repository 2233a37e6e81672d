"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from projfree.losses import BY_NAME

#: The losses whose targets are labels, and those whose targets are numbers.
CLASSES = tuple(name for name, kind in BY_NAME.items() if kind.labels)
NUMBERS = tuple(name for name in BY_NAME if name not in CLASSES)
#: The parts of a help page.
TABLE, MODEL, RUN, OUTPUT = "The table", "The model", "The run", "Output"


def option(help: str, *names: str, panel: str = MODEL, **more: Any) -> Any:
    """An option that shows its default only if it has one."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


Data = Annotated[
    Path, typer.Argument(help="A table: .csv, .tsv, .txt or .data (also .gz), .parquet or .npy.", show_default=False)
]
Model = Annotated[Path, typer.Argument(help="The folder that fit or complete wrote.", show_default=False)]
Target = Annotated[
    list[str],
    option("The column to predict: name, or number from 0 (-1 is the last); may be given several times.", panel=TABLE),
]
Sep = Annotated[
    str | None,
    option("The character between fields, or tab or space; a comma by default, a tab for .tsv.", panel=TABLE),
]
Header = Annotated[
    bool | None,
    option(
        "Whether a text file begins with names; by default if no field of its first line is a number.",
        "--header/--no-header",
        panel=TABLE,
    ),
]
Drop = Annotated[list[str] | None, option("A column to leave out; may be given several times.", panel=TABLE)]
Impute = Annotated[
    str | None,
    option(
        "What to do with missing numbers: median fills them, drop leaves their rows out; else they are refused.",
        panel=TABLE,
    ),
]
OneHot = Annotated[
    str,
    option("Text as a column for each level: auto or none; or columns to encode as well as text, as a,b.", panel=TABLE),
]
LossName = Annotated[
    str,
    option(
        "The loss: auto (logistic for text and for two values, squared for other numbers); "
        f"{', '.join(NUMBERS)}; for classes {', '.join(CLASSES)}.",
        "--loss",
        metavar="NAME",
    ),
]
Level = Annotated[
    float | None, option("For --loss quantile: what to predict, between 0 and 1; the median by default.", "--quantile")
]
Norm = Annotated[str, option("The norm of the ball: lp, group or schatten.")]
Exponent = Annotated[
    str | None,
    option(
        "Its exponent, by default 1 for l1, nuclear and schatten, else 2; inf is allowed. Cross-validation chooses "
        "from several, as 1,1.5,2.",
        "--p",
    ),
]
AcrossGroups = Annotated[float | None, option("For --norm group: the exponent across groups, 1 by default.", "--q")]
FeatureGroups = Annotated[
    str | None,
    option(
        "For --norm group: auto, a group for each column of the table with all its levels, or columns such as "
        "'age,hours;gain,loss'; others are alone."
    ),
]
Radius = Annotated[float | None, option("The radius of the ball; by default cross-validation chooses it.", "--radius")]
Alpha = Annotated[
    float | None, option("For numbers, in place of a radius: the penalty as of Ridge and Lasso.", "--alpha")
]
InverseStrength = Annotated[
    float | None, option("For classes, in place of a radius: as C of LogisticRegression.", "--C")
]
Folds = Annotated[
    int | None, option("The folds that choose the radius, and one of several p; 5 by default.", "--cv", min=2)
]
Standardize = Annotated[
    bool | None,
    option(
        "Centre and scale the features; the radius is then on scaled ones. By default if cross-validation chooses it.",
        "--standardize/--no-standardize",
    ),
]
Intercept = Annotated[bool, option("Fit an intercept, which the ball does not hold.")]
Tol = Annotated[float, option("The relative gap to certify.", panel=RUN, min=0.0)]
MaxIter = Annotated[int, option("The largest number of iterations.", panel=RUN, min=1)]
TimeLimit = Annotated[float | None, option("Seconds after which the fit ends.", panel=RUN)]
HoldOut = Annotated[
    float, option("The share of the rows that the score is about; 0 for no score.", panel=RUN, min=0.0, max=0.9)
]
Seed = Annotated[int, option("Of the rows held out, and of what is random in the fit.", panel=RUN, min=0)]
ModelFolder = Annotated[Path, option("The folder of the model.", "--out", panel=OUTPUT)]
Json = Annotated[bool, option("Print one JSON object instead of text.", "--json", panel=OUTPUT)]
Quiet = Annotated[bool, option("Print nothing but errors.", "--quiet", "-q", panel=OUTPUT)]
Verbose = Annotated[bool, option("A line for each iteration.", "--verbose", "-v", panel=OUTPUT)]
Debug = Annotated[bool, option("Show the traceback of an error.", "--debug", panel=OUTPUT)]
Force = Annotated[bool, option("Replace what an earlier run wrote to --out.", "--force", panel=OUTPUT)]
NewFile = Annotated[Path, option("A CSV file to write.", "--out", panel=OUTPUT)]
CsvFile = Annotated[Path | None, option("A CSV file to write; by default the screen.", "--out", panel=OUTPUT)]
