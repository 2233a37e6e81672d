"""The files that the page on extending shows: they run, and what they add obeys the laws of its kind."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree import Loss, minimize
from projfree.data.base import Data
from projfree.data.local import LocalData
from projfree.data.workspace import Workspace
from projfree.sets import ConstraintSet, NormBall
from projfree.solvers.base import Solver
from projfree.steps import StepRule
from projfree.testing import losses as loss_laws
from projfree.testing import sets as set_laws
from projfree.testing.backends import check_backend

FOLDER = Path(__file__).parents[2] / "examples" / "extend"
NEEDS = {"black_box_jax": "jax", "black_box_torch": "torch"}
few = settings(max_examples=20, deadline=None)


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"extend_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_runs(path: Path) -> None:
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    assert loaded(path.stem).main() is not None


def test_the_loss_is_robust() -> None:
    assert loaded("loss").main() == pytest.approx(2.0, abs=0.1)


@few
@given(data=st.data())
def test_laws_of_the_loss(data) -> None:
    loss = loaded("loss").PseudoHuber(data.draw(st.sampled_from([0.5, 1.0, 8.0])))
    for law in loss_laws.LAWS + loss_laws.UNIVERSAL_LAWS:
        law(loss, *data.draw(loss_laws.samples(loss)))
    for law in loss_laws.PAIR_LAWS:
        law(loss, *data.draw(loss_laws.pairs(loss)))


@few
@given(data=st.data())
def test_laws_of_the_set(data) -> None:
    kind = loaded("set").KSparseBall
    balls = kind(1, 1.0), kind(2, 3.0), kind(100, 0.5)
    for law in set_laws.ORACLE_LAWS:
        law(*data.draw(set_laws.cases(*balls)))
    for law in set_laws.GEOMETRY_LAWS:
        law(*data.draw(set_laws.cases(*balls, count=2, extreme=False)))


@few
@given(data=st.data())
def test_laws_of_a_set_that_is_no_norm_ball(data) -> None:
    kind = loaded("general_set").Ellipsoid
    sets = kind(np.array([1.0, -2.0, 0.5]), np.array([0.1, 1.0, 3.0])), kind(np.zeros(2), np.array([1.0, 40.0]))
    for law in set_laws.ORACLE_LAWS:
        law(*data.draw(set_laws.cases(*sets)))
    for law in set_laws.GEOMETRY_LAWS:
        law(*data.draw(set_laws.cases(*sets, count=2, extreme=False)))


@pytest.mark.parametrize("kind", [Loss, ConstraintSet, NormBall, StepRule, Solver, LocalData, Data, Workspace])
def test_the_page_names_every_abstract_method(kind) -> None:
    page = (FOLDER.parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    row = next(
        line for line in page.splitlines() if line.startswith("|") and f"`{kind.__name__}`" in line.split("|")[2]
    )
    assert [name for name in kind.__abstractmethods__ if f"`{name}`" not in row.split("|")[3]] == []


@pytest.mark.slow
def test_laws_of_the_data_backend() -> None:
    table = loaded("data_backend").ColumnTable
    check_backend(lambda X, y, weight: table(list(np.asarray(X).T), y, weight))


def test_the_solver_bounds_the_minimum() -> None:
    ours = loaded("solver").main()
    best = minimize(*loaded("solver").problem(), tol=1e-10)
    assert ours.bound <= best.value <= ours.value + 1e-12
