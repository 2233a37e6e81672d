"""projfree: projection-free optimization over norm balls, with a certificate at the end of every convex run."""

from __future__ import annotations

import importlib
from typing import Any

from projfree.data import Data, Entries, as_data
from projfree.losses import (
    BiWeight,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
)
from projfree.objectives import BlackBox, Objective, Perturbed, QuadraticForm, check_gradient, perturb
from projfree.run import (
    Certificate,
    Checkpoint,
    Path,
    ProgressBar,
    Result,
    Run,
    Status,
    Trace,
    Verification,
    iterate,
    minimize,
    path,
)
from projfree.sampling import FullBatch, Growing, Minibatch
from projfree.sets import (
    Birkhoff,
    Box,
    ConstraintSet,
    GroupBall,
    KSupportBall,
    LpBall,
    OracleSet,
    OwlBall,
    Positive,
    SchattenBall,
    Simplex,
    Weighted,
)
from projfree.solvers import (
    AcceleratedProjectedGradient,
    ConstrainedNewton,
    CorrectivePrimalAveraging,
    Direct,
    FrankWolfe,
    HessianFreeNewton,
    PairwiseFrankWolfe,
    Plan,
    PrimalAveraging,
    ProjectedGradient,
    Relay,
    TrustRegionLanczos,
    WorkingSet,
    plan,
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

#: The one place where the version is written; the build reads it here.
__version__ = "0.1.0"

__all__ = [
    "AcceleratedProjectedGradient",
    "Backtracking",
    "BacktrackingGradient",
    "BiWeight",
    "Birkhoff",
    "BlackBox",
    "Box",
    "Certificate",
    "Checkpoint",
    "ConstrainedClassifier",
    "ConstrainedClassifierCV",
    "ConstrainedNewton",
    "ConstrainedRegressor",
    "ConstrainedRegressorCV",
    "ConstraintSet",
    "CorrectivePrimalAveraging",
    "Data",
    "Direct",
    "Entries",
    "ExactLineSearch",
    "FrankWolfe",
    "FullBatch",
    "Gamma",
    "GroupBall",
    "Growing",
    "HessianFreeNewton",
    "Huber",
    "InverseSmoothness",
    "InverseSqrt",
    "KSupportBall",
    "LastGradient",
    "LogAdaptive",
    "Logistic",
    "Loss",
    "LpBall",
    "MatrixCompletion",
    "MatrixCompletionCV",
    "Minibatch",
    "Objective",
    "OpenLoop",
    "OracleSet",
    "OwlBall",
    "PairwiseFrankWolfe",
    "Path",
    "Perturbed",
    "Plan",
    "Poisson",
    "Positive",
    "PrimalAveraging",
    "ProgressBar",
    "ProjectedGradient",
    "QuadraticForm",
    "Quantile",
    "Relay",
    "Result",
    "Run",
    "SchattenBall",
    "Secant",
    "ShortStep",
    "Simplex",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "SquaredSigmoid",
    "Status",
    "Trace",
    "TrustRegionLanczos",
    "Verification",
    "Weighted",
    "WorkingSet",
    "__version__",
    "as_data",
    "check_gradient",
    "iterate",
    "load",
    "minimize",
    "path",
    "perturb",
    "plan",
]

#: Names that are imported on first use, because they bring in scikit-learn, and where they live.
_ESTIMATORS = {
    "ConstrainedClassifier": "projfree.estimators",
    "ConstrainedClassifierCV": "projfree.estimators",
    "ConstrainedRegressor": "projfree.estimators",
    "ConstrainedRegressorCV": "projfree.estimators",
    "MatrixCompletion": "projfree.estimators",
    "MatrixCompletionCV": "projfree.estimators",
    "load": "projfree.estimators",
    "save": "projfree.estimators",
}

#: Parts that are imported on first use, so that `import projfree` loads NumPy alone.
_LAZY = ("datasets", "estimators", "testing")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"projfree.{name}")
    if name in _ESTIMATORS:
        return getattr(importlib.import_module(_ESTIMATORS[name]), name)
    raise AttributeError(f"module 'projfree' has no attribute {name!r}")
