"""The public face: the names, the types, the docstrings, and what things look like when they are printed."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
from pathlib import Path

import pytest

import projfree

GROUPS = {
    "losses": (
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
    ),
    "data": ("Data", "Entries", "as_data"),
    "objectives": ("BlackBox", "Objective", "Perturbed", "QuadraticForm", "check_gradient", "perturb"),
    "estimators": (
        "ConstrainedClassifier",
        "ConstrainedClassifierCV",
        "ConstrainedRegressor",
        "ConstrainedRegressorCV",
        "MatrixCompletion",
        "MatrixCompletionCV",
        "load",
        "save",
    ),
    "balls": ("GroupBall", "KSupportBall", "LpBall", "OwlBall", "SchattenBall", "Weighted"),
    "other sets": (
        "Birkhoff",
        "Box",
        "Constrained",
        "ConstraintSet",
        "InfeasibleError",
        "OracleSet",
        "Positive",
        "Simplex",
    ),
    "projection-free": ("CorrectivePrimalAveraging", "FrankWolfe", "PairwiseFrankWolfe", "PrimalAveraging"),
    "projecting": ("AcceleratedProjectedGradient", "ProjectedGradient"),
    "second order": ("ConstrainedNewton", "Direct", "HessianFreeNewton", "WorkingSet"),
    "schedules": ("LastGradient", "LogAdaptive", "OpenLoop"),
    "line searches": ("Backtracking", "ExactLineSearch", "ShortStep"),
    "gradient steps": ("BacktrackingGradient", "InverseSmoothness", "InverseSqrt"),
    "sampling": ("FullBatch", "Growing", "Minibatch"),
    "the run": ("Checkpoint", "Path", "Plan", "ProgressBar", "Run", "iterate", "minimize", "path", "plan"),
    "results": ("Certificate", "Result", "Status", "Trace", "Verification"),
    "": ("__version__",),
}
NAMES = [name for group in GROUPS.values() for name in group]
PUBLIC = [name for name in NAMES if name != "__version__"]
#: Public names that stand with their modules: all that these list, and one that needs an import of its own.
BELOW = [
    *(f"datasets.{name}" for name in projfree.datasets.__all__),
    *(f"testing.{name}" for name in projfree.testing.__all__),
    *(f"sets.{name}" for name in ("Rows", "Shifted", "bounds", "covariance", "order", "shifted", "sums_to")),
    "testing.backends.check_backend",
]


def public(name):
    module, _, last = f"projfree.{name}".rpartition(".")
    return getattr(importlib.import_module(module), last)


def test_names():
    """A name that is added or taken away is a decision: write it down here too."""
    assert sorted(projfree.__all__) == sorted(NAMES)
    assert len(projfree.__all__) == len(set(projfree.__all__))


def test_what_is_listed_is_there():
    for name in NAMES:
        assert hasattr(projfree, name)


def test_parts_that_come_lazy_names():
    assert projfree.datasets.__name__ == "projfree.datasets"
    assert projfree.testing.__name__ == "projfree.testing"
    with pytest.raises(AttributeError, match=r"module 'projfree' has no attribute 'LassoCV'"):
        projfree.LassoCV  # noqa: B018 - the look is what is tested


def test_version():
    assert projfree.__version__ == importlib.metadata.version("projfree")
    assert re.match(r"\d+\.\d+", projfree.__version__)


def test_types_are_shipped():
    assert (Path(projfree.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("name", PUBLIC + BELOW)
def test_docstrings_begin_with_a_sentence(name):
    text = inspect.getdoc(public(name)) or ""
    first = text.split("\n\n")[0].strip()
    assert first.endswith((".", "`")) or ".. math::" in text, first
    assert len(first.split()) >= 3


@pytest.mark.parametrize("name", PUBLIC + BELOW)
def test_every_name_shows_an_example(name):
    """The examples themselves run as doctests."""
    text = inspect.getdoc(public(name))
    assert ">>>" in text.split("Examples\n--------\n")[1]
    assert "+SKIP" not in text


@pytest.mark.parametrize("name", [n for n in PUBLIC if inspect.isfunction(getattr(projfree, n))])
def test_every_argument_of_a_function_is_annotated(name):
    function = getattr(projfree, name)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter


SETS = [projfree.LpBall(1.5, 2.0), projfree.GroupBall(2, 1, 2.0), projfree.SchattenBall(1, 2.0), projfree.Simplex(3.0)]


@pytest.mark.parametrize("thing", SETS, ids=repr)
def test_sets_cannot_change(thing):
    for name in inspect.signature(type(thing)).parameters:
        with pytest.raises(AttributeError):
            setattr(thing, name, 1.0)


@pytest.mark.parametrize("estimator", [projfree.ConstrainedRegressor, projfree.MatrixCompletion])
def test_estimators_document_each_parameter(estimator):
    """The others refer to these."""
    documented = re.findall(r"^([\w, ]+) : ", inspect.getdoc(estimator), flags=re.MULTILINE)
    assert {name for line in documented for name in line.split(", ")} >= set(inspect.signature(estimator).parameters)
