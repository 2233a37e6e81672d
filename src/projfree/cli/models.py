"""From the options of `fit` and `explain` to an estimator and its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from projfree.checks import Array, shown
from projfree.cli.tables import TableFile, numbers, read_table

Loss = Literal["squared", "huber", "biweight", "logistic", "softmax", "squared_sigmoid"]
REGRESSION = ("squared", "huber", "biweight")

Data = Annotated[Path, typer.Argument(help="A table: .csv, .tsv, .parquet or .npy.", show_default=False)]
Target = Annotated[str, typer.Option(help="The column to predict, by name or number.", show_default=False)]
LossName = Annotated[Loss, typer.Option(help="The loss; the last three are for classes.")]
Norm = Annotated[Literal["lp", "group", "schatten"], typer.Option(help="The norm of the ball.")]
Exponent = Annotated[float, typer.Option("--p", help="Its exponent; inf is allowed.")]
Radius = Annotated[str, typer.Option(help="The radius, or auto: the norm of one gradient step from zero.")]
Tol = Annotated[float, typer.Option(help="The relative gap to certify.")]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be given several times.")]
Standardize = Annotated[bool, typer.Option(help="Centre and scale the features; the radius is then on scaled ones.")]
Intercept = Annotated[bool, typer.Option(help="Fit an intercept, which the ball does not hold.")]


@dataclass(frozen=True, eq=False)
class Rows:
    """Features and targets of a file."""

    X: Any
    y: Array
    table: TableFile
    target: str


def radius_of(text: str) -> float | str:
    """The radius option as a number or "auto"."""
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(f"--radius must be a positive number or auto, got {shown(text)}.")
    return value


def rows_of(path: Path, target: str, loss: str, drop: list[str] | None) -> Rows:
    """The rows of a file for a loss: numbers for regression, labels for classes."""
    table = read_table(path)
    column = table.column(target, "--target")
    gone = [table.column(name, "--drop") for name in drop or []]
    X = table.features([column, *gone])
    values = table.frame[column]
    if loss in REGRESSION:
        return Rows(X, numbers(values, f"column {column!r} of {str(path)!r}"), table, str(column))
    if values.isna().any():
        row = int(np.flatnonzero(values.isna().to_numpy())[0]) + 1
        raise ValueError(f"column {column!r} of {str(path)!r} is missing in row {row}; leave the row out.")
    if values.nunique() < 2:
        raise ValueError(f"column {column!r} of {str(path)!r} holds one class only; a classifier needs two.")
    if values.nunique() > max(50, len(values) // 4):
        raise ValueError(
            f"column {column!r} of {str(path)!r} has {values.nunique()} different values, too many for classes; "
            "use --loss squared for regression."
        )
    return Rows(X, values.to_numpy(), table, str(column))


def model_of(loss: str, **parameters: Any) -> Any:
    """The estimator for a loss, not yet fitted."""
    from projfree.estimators import ConstrainedClassifier, ConstrainedRegressor

    kind = ConstrainedRegressor if loss in REGRESSION else ConstrainedClassifier
    return kind(loss, **parameters)
