"""Imports go one way, `import projfree` is light, and names are found where stub files list them."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import projfree.checks

SOURCE = Path(projfree.checks.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
STUBS = sorted(SOURCE.rglob("__init__.pyi"))

# A part of the package may import itself and whatever stands in a line above its own.
LAYERS = [
    {"checks", "deadline", "lazy_import", "paper"},
    {"runtime"},
    {"numerics"},
    {"algebra", "persist"},
    {"losses", "sets", "data", "datasets"},
    {"objectives"},
    {"steps", "sampling"},
    {"solvers"},
    {"run"},
    {"completion", "estimators", "testing"},
    {"cli"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
# Matrix completion is an estimator in a folder of its own: the two share what saves, shows and scales.
TOGETHER = {"completion", "estimators"}
# Side branches: real data serve the command, not the mathematics; the laws serve tests, ours and other people's.
ONLY_FOR = {"datasets": {"datasets", "cli"}, "testing": {"testing"}}
HEAVY = ["numba", "sklearn", "dask", "pandas", "matplotlib", "pyarrow", "cvxpy"]


def part_of(file: Path) -> str:
    """The folder or module directly below the package; "" for the package's own __init__."""
    first = file.relative_to(SOURCE).parts[0].partition(".")[0]
    return "" if first == "__init__" else first


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


def allowed(importer: str, target: str) -> bool:
    if importer == target or {importer, target} == TOGETHER:
        return True
    return LEVEL[target] < LEVEL[importer] and importer in ONLY_FOR.get(target, {importer})


@pytest.fixture(scope="module")
def trees():
    return {file: parsed(file) for file in FILES + STUBS}


def test_imports_go_one_way(trees):
    for file, tree in trees.items():
        part = part_of(file)
        assert not part or part in LEVEL, f"{part} is new: give it a line in LAYERS"
        for name in imported(tree):
            root, _, rest = name.partition(".")
            assert root != "reproduction", "it lies beside the package, and is not installed with it"
            if root == "projfree" and part:  # the root gathers the public names
                target = rest.split(".")[0]
                assert target in LEVEL, f"{name_of(file)}: import {name} from its own module, not from the root"
                assert allowed(part, target), f"{name_of(file)} must not import {target}"


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nsys.stdout.write(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return {part for name in run.stdout.split() for part in (name, name.split(".")[0])}


def test_import_is_light():
    assert not modules_after("import projfree") & set(HEAVY)


@pytest.mark.parametrize("file", STUBS, ids=name_of)
def test_every_line_of_a_stub_file_is_found(file):
    """What type checkers read there is what the package gives; a line of another form would be overlooked."""
    name = ".".join(("projfree", *file.relative_to(SOURCE).parts[:-1]))
    package, lines = importlib.import_module(name), parsed(file).body
    for line in lines:
        if isinstance(line, ast.AnnAssign):
            assert hasattr(package, line.target.id)
            continue
        (alias,) = line.names
        module = importlib.import_module(f"{name}.{alias.name}" if line.module == name else line.module)
        assert alias.asname == alias.name
        assert getattr(package, alias.name) is (module if line.module == name else getattr(module, alias.name))
        assert (alias.name in package.__all__) == (line.module != name)
        assert alias.name in dir(package)
    assert len(set(package.__all__)) == len(package.__all__)


def test_loaders_and_persist_are_light():
    code = "from projfree import datasets, persist; datasets.load_year_sample(); datasets.load_adult()"
    assert not modules_after(code) & set(HEAVY)


def test_print_lives_in_cli(trees):
    prints = {part_of(f) for f, tree in trees.items() for node in ast.walk(tree) if getattr(node, "id", "") == "print"}
    assert prints <= {"cli"}


def test_solvers_hold_no_loop_and_no_clock(trees):
    for file, tree in trees.items():
        if part_of(file) == "solvers":
            assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.While)], "the loop is in run/"
            assert not {name.split(".")[0] for name in imported(tree)} & {"time", "datetime"}, "the clock is in run/"
