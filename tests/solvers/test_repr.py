"""How a solver is shown: as the call that makes it, without what is as by default."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
import pytest
from solvers.catalogue import SOLVERS, problem, solver

import projfree.solvers
from projfree import FrankWolfe, LpBall, OpenLoop, PrimalAveraging, minimize


@dataclass(frozen=True, repr=False)
class Mine(PrimalAveraging):
    """A solver of the user's whose settings are not plain numbers with a default."""

    label: str = field(kw_only=True)
    table: object = field(default=None, kw_only=True)
    names: list[str] = field(default_factory=lambda: ["a"], kw_only=True)
    level: float = field(default=1.0, kw_only=True)
    derived: int = field(default=0, init=False)


class Plain(FrankWolfe):
    """A solver that is no dataclass of its own."""


@dataclass(frozen=True, repr=False)
class Needs(FrankWolfe):
    """A required setting."""

    level: float = field(kw_only=True)


def test_required_settings_are_always_shown():
    assert repr(Needs(level=2.0)) == "Needs(level=2.0)"
    assert repr(Needs(OpenLoop(3.0), level=2.0)) == "Needs(step_rule=OpenLoop(ell=3.0), level=2.0)"
    assert repr(Mine(label="x")) == "Mine(label='x')"


def test_factories_arrays_and_derived_settings():
    assert repr(Mine(label="x", names=["b"])) == "Mine(label='x', names=['b'])"
    assert repr(Mine(label="x", table=np.arange(2))) == "Mine(label='x', table=array([0, 1]))"
    assert repr(Mine(label="x", level=np.float64(1.0))) == "Mine(label='x')"
    assert repr(Plain()) == "Plain()"


def test_a_result_can_be_shown():
    result = minimize(problem("form"), LpBall(2, 0.5), Needs(level=1.0), max_iter=3)
    assert "Needs(level=1.0)" in str(result)


@pytest.mark.parametrize("name", SOLVERS)
def test_the_call_makes_the_solver_again(name):
    made = solver(name)
    names = {**vars(projfree.solvers), **{key: getattr(projfree, key) for key in projfree.__all__}}
    again = eval(repr(made), names)
    assert [getattr(again, f.name) for f in fields(again)] == [getattr(made, f.name) for f in fields(made)]
