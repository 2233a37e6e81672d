"""What a run is told and what it carries along are values: nothing of the package changes them once they are made."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import projfree
from projfree.data.rows import Step
from projfree.losses.base import Loss
from projfree.sampling import Sampling
from projfree.solvers.base import Solver, State
from projfree.steps import StepRule


def below(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


@pytest.fixture(scope="module", autouse=True)
def everything():
    """All modules, because classes are known once their modules are imported."""
    for module in pkgutil.walk_packages(projfree.__path__, "projfree."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ModuleNotFoundError):  # of an optional package
                importlib.import_module(module.name)


@pytest.mark.parametrize("kind", [Step, Loss, Sampling, StepRule, Solver, State])
def test_every_one_is_a_frozen_dataclass(kind):
    own = {each for each in below(kind) if each.__module__.startswith("projfree.") and not inspect.isabstract(each)}
    assert len(own) > 2
    loose = [each for each in own if not (dataclasses.is_dataclass(each) and each.__dataclass_params__.frozen)]
    assert loose == []
