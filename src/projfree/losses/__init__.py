"""Losses: one file each. A new one is a file here and its name in `LOSSES`; tests, docs and the CLI follow.

A compiled form, if a loss has one, stands in the same file; `projfree.numerics.forms` says what it is.
"""

from projfree.losses.base import Loss
from projfree.losses.biweight import BiWeight
from projfree.losses.gamma import Gamma
from projfree.losses.huber import Huber
from projfree.losses.logistic import Logistic
from projfree.losses.poisson import Poisson
from projfree.losses.quantile import Quantile
from projfree.losses.softmax import Softmax
from projfree.losses.squared import Squared
from projfree.losses.squared_hinge import SquaredHinge
from projfree.losses.squared_sigmoid import SquaredSigmoid

__all__ = [
    "BY_NAME",
    "LOSSES",
    "BiWeight",
    "Gamma",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "SquaredSigmoid",
]

#: Every loss of the package; each can be constructed without arguments.
LOSSES: tuple[type[Loss], ...] = (
    Squared,
    Huber,
    BiWeight,
    Quantile,
    Poisson,
    Gamma,
    Logistic,
    SquaredHinge,
    SquaredSigmoid,
    Softmax,
)

#: The same by the names that estimators and the command take: those of their files.
BY_NAME: dict[str, type[Loss]] = {cls.__module__.rpartition(".")[2]: cls for cls in LOSSES}
