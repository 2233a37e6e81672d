"""Losses: one file each. A new one is a file here and its name in `LOSSES`; tests, docs and the CLI follow.

A compiled form, if a loss has one, stands in the same file; `projfree.numerics.forms` says what it is.
"""

from projfree.losses.base import Loss
from projfree.losses.biweight import BiWeight
from projfree.losses.huber import Huber
from projfree.losses.logistic import Logistic
from projfree.losses.softmax import Softmax
from projfree.losses.squared import Squared
from projfree.losses.squared_sigmoid import SquaredSigmoid

__all__ = ["LOSSES", "BiWeight", "Huber", "Logistic", "Loss", "Softmax", "Squared", "SquaredSigmoid"]

#: Every loss of the package; each can be constructed without arguments.
LOSSES: tuple[type[Loss], ...] = (Squared, Huber, BiWeight, Logistic, SquaredSigmoid, Softmax)
