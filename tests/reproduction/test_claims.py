"""The table of claims: the paper's 26 printed measurements, the figures, and what an experiment may use."""

import ast
from pathlib import Path

import pytest

import projfree
from reproduction.base import Verdict
from reproduction.report import FIGURES, judge, paper_text
from reproduction.runner import Store, discover

EXPERIMENTS = discover()
CLAIMS = [(e, c) for e in EXPERIMENTS.values() for c in e.claims]
FOLDER = Path(__file__).parents[2] / "reproduction"
MODULES = sorted(FOLDER.rglob("*.py"))


def test_every_module_of_experiments_is_found_by_its_name() -> None:
    assert set(EXPERIMENTS) == {path.stem for path in (FOLDER / "experiments").glob("[a-z]*.py")}


def test_the_printed_measurements_are_26() -> None:
    assert sum(claim.printed for _, claim in CLAIMS) == 26


def test_keys_are_unique_and_figures_exist() -> None:
    keys = [(e.name, c.key) for e, c in CLAIMS]
    assert len(keys) == len(set(keys))
    figures = {figure.key for e in EXPERIMENTS.values() for figure in e.figures}
    assert {c.figure for _, c in CLAIMS} - {""} <= figures
    numbers = [figure.number for e in EXPERIMENTS.values() for figure in e.figures if figure.number]
    assert sorted(numbers) == list(FIGURES)
    assert {name for e in EXPERIMENTS.values() for name in e.reads} <= set(EXPERIMENTS)


def test_the_evidence_of_theorems_and_tables_names_claims() -> None:
    keys, text = {f"{e.name}.{c.key}" for e, c in CLAIMS}, paper_text()
    named = {key for theorem in text["theorems"] for key in theorem["evidence"]}
    named |= {key for table in text["tables"] for row in table["rows"] for key in row["evidence"]}
    assert named <= keys


def test_what_was_not_measured_is_open_and_draws_nothing_wrong(tmp_path: Path) -> None:
    table = Store(tmp_path, "quick").table()
    for judged in judge(EXPERIMENTS, table, quick=False):
        assert judged.verdict is Verdict.OPEN, judged.key
    for experiment in EXPERIMENTS.values():
        assert list(experiment.remarks(table)) == []
        for figure in experiment.figures:
            figure.draw(table)


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_tasks_have_names_of_their_own(mode: str, tmp_path: Path) -> None:
    store = Store(tmp_path, "quick")
    for experiment in EXPERIMENTS.values():
        paths = [store.path(experiment.name, task) for task in experiment.tasks(mode)]  # type: ignore[arg-type]
        assert len(paths) == len(set(paths))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_only_the_public_names_of_the_package_are_used(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            assert all(a.name == "projfree" or not a.name.startswith("projfree.") for a in node.names)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("projfree"):
            assert node.module in ("projfree", "projfree.datasets"), node.module
            if node.module == "projfree":
                assert {a.name for a in node.names} <= {*projfree.__all__, "paper"}
