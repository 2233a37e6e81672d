"""projfree: projection-free optimization over norm balls, with a certificate at the end of every convex run."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from projfree.data import Data, Entries, as_data
from projfree.losses import BiWeight, Huber, Logistic, Loss, Softmax, Squared, SquaredSigmoid
from projfree.objectives import BlackBox, Objective, Perturbed, QuadraticForm, perturb
from projfree.run import (
    Certificate,
    Checkpoint,
    ProgressBar,
    Result,
    Run,
    Status,
    Trace,
    Verification,
    iterate,
    minimize,
)
from projfree.sampling import FullBatch, Growing, Minibatch
from projfree.sets import Box, ConstraintSet, GroupBall, LpBall, OracleSet, SchattenBall, Simplex, Weighted
from projfree.solvers import (
    AcceleratedProjectedGradient,
    CorrectivePrimalAveraging,
    FrankWolfe,
    PrimalAveraging,
    ProjectedGradient,
)
from projfree.steps import (
    Backtracking,
    BacktrackingGradient,
    ExactLineSearch,
    InverseSmoothness,
    InverseSqrt,
    LastGradient,
    LogAdaptive,
    OpenLoop,
    Secant,
    ShortStep,
)

try:
    __version__ = version("projfree")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "AcceleratedProjectedGradient",
    "Backtracking",
    "BacktrackingGradient",
    "BiWeight",
    "BlackBox",
    "Box",
    "Certificate",
    "Checkpoint",
    "ConstraintSet",
    "CorrectivePrimalAveraging",
    "Data",
    "Entries",
    "ExactLineSearch",
    "FrankWolfe",
    "FullBatch",
    "GroupBall",
    "Growing",
    "Huber",
    "InverseSmoothness",
    "InverseSqrt",
    "LastGradient",
    "LogAdaptive",
    "Logistic",
    "Loss",
    "LpBall",
    "Minibatch",
    "Objective",
    "OpenLoop",
    "OracleSet",
    "Perturbed",
    "PrimalAveraging",
    "ProgressBar",
    "ProjectedGradient",
    "QuadraticForm",
    "Result",
    "Run",
    "SchattenBall",
    "Secant",
    "ShortStep",
    "Simplex",
    "Softmax",
    "Squared",
    "SquaredSigmoid",
    "Status",
    "Trace",
    "Verification",
    "Weighted",
    "__version__",
    "as_data",
    "iterate",
    "minimize",
    "perturb",
]

#: Parts that are imported on first use, so that `import projfree` loads NumPy alone.
_LAZY = ("datasets", "testing")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"projfree.{name}")
    raise AttributeError(f"module 'projfree' has no attribute {name!r}")
