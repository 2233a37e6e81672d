"""Measure how large the project is: ``python tools/size.py``; with ``--record`` also write ``tools/size.json``.

For each folder it counts lines, files, functions, tokens, docstrings and numeric constants; for the main protocols
their public members; for one `minimize` and one `fit` the files and functions of the package that they run through, and
the deepest stack. ``tests/release/test_size.py`` compares folders and protocols with the recorded numbers, which may
fall, and rise only with a reason in the commit that records them.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

TOP = Path(__file__).resolve().parents[1]
RECORDED = TOP / "tools" / "size.json"
PACKAGE, OTHERS = "src/projfree", ("reproduction", "tests", "benchmarks", "tools")
PROTOCOLS = ("SmoothFunction", "Data", "ConstraintSet", "Loss", "Workspace", "Solver")
#: What is counted in a folder; all of it is recorded except for docstrings, whose share should not fall.
MEASURES = ("lines", "files", "functions", "tokens", "constants", "defaults", "fields", "floats")

#: The core is the package without its front ends, and without the l_1 solver and the table of the paper's claims.
FRONT_ENDS = ("cli", "completion", "datasets", "estimators")
NOT_CORE = ("group_l1_kernels", "group_l1_qp", "paper", "working_set")
#: Floats that belong to formulas rather than to settings.
FORMULAS = (0.0, 0.5, 1.0, 2.0)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LITERALS = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.List, ast.Dict, ast.Name)
MARKS = (ast.operator, ast.unaryop, ast.expr_context)

#: Comments and joined lines, which are no tokens; strings, an f-string as one; numbers; names; operators. The module
#: `tokenize` takes five times as long, and splits f-strings in some versions of Python.
TOKEN = re.compile(
    r"""\#.*|\\\n|[rbfuRBFU]{0,2}(?:\"{3}(?:[^\\"]|\\[\s\S]|"(?!""))*\"{3}|"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*')"""
    r"""|(?:\d[\d_]*\.?|\.\d)[\d_]*(?:[eE][-+]?\d+)?\w*|\w+"""
    r"""|\*\*=?|//=?|>>=?|<<=?|->|:=|[-+*/%&|^@<>=!]=|\.\.\.|[^\w\s]"""
)


# ---------------------------------------------------------------- text


def measure(source: str) -> Counter[str]:
    """Count what a module holds.

    ``constants`` are names at the level of the module whose value is a number, or a tuple or table with numbers;
    ``defaults`` are parameters with such a default, ``fields`` attributes of classes with such a value, and ``floats``
    all other floats, except for 0, 0.5, 1 and 2. Defaults of private functions count as ``private`` once more.
    """
    found = Counter(files=1, lines=len(source.splitlines()), tokens=count_tokens(source))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant):
            found["floats"] += is_float(node)
        elif isinstance(node, FUNCTIONS):
            found["functions"] += 1
            found["docstrings"] += docstring_lines(node)
            for value in (*node.args.defaults, *node.args.kw_defaults):
                _add(found, "defaults", value)
                found["private"] += node.name.startswith("_") and value is not None and is_number(value)
        elif isinstance(node, ast.Module | ast.ClassDef):
            found["docstrings"] += docstring_lines(node)
            for names, value in assignments(node):
                _add(found, "constants" if isinstance(node, ast.Module) else "fields", value, len(names))
    return found


def _add(found: Counter[str], kind: str, value: ast.expr | None, times: int = 1) -> None:
    """Count a value that is a number as one of its kind, and its floats no longer among the others."""
    if value is not None and is_number(value):
        found[kind] += times
        found["floats"] -= sum(map(is_float, ast.walk(value)))


def count_tokens(source: str) -> int:
    """Number of tokens: names, numbers, strings and operators."""
    return sum(not token.startswith(("#", "\\")) for token in TOKEN.findall(source))


def is_float(node: ast.AST) -> bool:
    """Whether a node is a float other than those of formulas."""
    return isinstance(node, ast.Constant) and type(node.value) is float and node.value not in FORMULAS


def is_number(value: ast.expr) -> bool:
    """Whether an expression is a number, arithmetic of numbers, or a tuple, list or dictionary with numbers."""
    nodes = [node for node in ast.walk(value) if not isinstance(node, MARKS)]
    numbers = any(isinstance(node, ast.Constant) and type(node.value) in (int, float) for node in nodes)
    return numbers and all(isinstance(node, LITERALS) for node in nodes)


def assignments(node: ast.Module | ast.ClassDef) -> Iterator[tuple[list[str], ast.expr | None]]:
    """The names that the body of a module or of a class assigns, and their values."""
    for one in node.body:
        if isinstance(one, ast.Assign | ast.AnnAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            yield [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)], one.value


def docstring_lines(node: ast.AST) -> int:
    """Number of lines of the docstring of a module, class or function."""
    first = next(iter(getattr(node, "body", [])), None)
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1 if isinstance(first.value.value, str) else 0


def members(node: ast.ClassDef) -> set[str]:
    """The public methods and attributes of a class, as far as its body declares them."""
    names = {one.name for one in node.body if isinstance(one, FUNCTIONS)}
    names.update(name for some, _ in assignments(node) for name in some)
    return {name for name in names if not name.startswith("_")}


# ---------------------------------------------------------------- files


def sources(folder: Path) -> Iterator[tuple[Path, str]]:
    """The Python files below a folder, with their text; none where there is no such folder."""
    for path in sorted(folder.rglob("*.py")):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path, path.read_text(encoding="utf-8")


def folders() -> dict[str, Counter[str]]:
    """What each folder of the package, its own modules, and each folder beside it hold."""
    found: dict[str, Counter[str]] = {}
    for top in (PACKAGE, *OTHERS):
        for path, text in sources(TOP / top):
            parts = path.relative_to(TOP / top).parts
            name = f"{top}/{parts[0]}" if top == PACKAGE and len(parts) > 1 else top
            found.setdefault(name, Counter()).update(measure(text))
    return found


def core() -> Counter[str]:
    """What the core holds; its ``constants`` are those of modules, of private functions, and inline."""
    found = Counter[str]()
    for path, text in sources(TOP / PACKAGE):
        if not {*path.relative_to(TOP / PACKAGE).parts, path.stem} & {*FRONT_ENDS, *NOT_CORE}:
            found += measure(text)
    found["constants"] += found["private"] + found["floats"]
    return found


def protocols() -> dict[str, int]:
    """Public members of each of the main protocols."""
    found = {}
    for _, text in sources(TOP / PACKAGE):
        if any(f"class {name}(" in text for name in PROTOCOLS):
            classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
            found.update({node.name: len(members(node)) for node in classes if node.name in PROTOCOLS})
    return {name: found[name] for name in PROTOCOLS}


def static(found: dict[str, Counter[str]]) -> dict[str, dict[str, Any]]:
    """The numbers that are recorded, from what the folders hold."""
    sizes = {name: {one: count[one] for one in MEASURES} for name, count in found.items()}
    return {"folders": sizes, "protocols": protocols()}


def growth(now: dict[str, dict[str, Any]], recorded: dict[str, dict[str, Any]]) -> list[str]:
    """A line for each number that is larger than the recorded one."""
    said = []
    for name, sizes in now["folders"].items():
        before = recorded["folders"].get(name, {})
        said += [f"{name}: {k} {before.get(k, 0)} -> {v}" for k, v in sizes.items() if v > before.get(k, 0)]
    before = recorded["protocols"]
    return said + [
        f"{k}: members {before.get(k, 0)} -> {v}" for k, v in now["protocols"].items() if v > before.get(k, 0)
    ]


# ---------------------------------------------------------------- runs


def trace(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Files and functions of the package that a call runs through, and the deepest stack of these functions."""
    root, functions = str(TOP / PACKAGE), set()
    depth = deepest = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        if not code.co_filename.startswith(root) or code.co_name.startswith("<"):  # modules, lambdas, comprehensions
            return
        if event == "call":
            functions.add((code.co_filename, code.co_qualname))
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len({file for file, _ in functions}), len(functions), deepest


def runs() -> dict[str, tuple[int, int, int]]:
    """Traces of one `minimize` and one `fit` on a small table, after a first run that imports what they need."""
    sys.path.insert(0, str(TOP / "src"))
    import numpy as np

    from projfree import ConstrainedClassifier, Logistic, LpBall, Objective, as_data, minimize

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 10))
    y = np.where(X @ rng.standard_normal(10) + rng.standard_normal(200) > 0, 1, -1)
    calls: dict[str, Callable[[], Any]] = {
        "minimize": lambda: minimize(Objective(Logistic(), as_data(X, y)), LpBall(1.5, radius=1.0)),
        "fit": lambda: ConstrainedClassifier(radius=1.0).fit(X, y),
    }
    for call in calls.values():
        call()
    return {name: trace(call) for name, call in calls.items()}


# ---------------------------------------------------------------- the command


def show(found: dict[str, Counter[str]]) -> None:
    """Print a table of folders, and the package as a whole."""
    whole = sum((count for name, count in found.items() if name.startswith(PACKAGE)), Counter[str]())
    print(f"{'folder':26}" + "".join(f"{name:>11}" for name in ("docstrings", *MEASURES)))
    for name, count in {**found, "src/projfree in all": whole}.items():
        share = f"{count['docstrings'] / max(count['lines'], 1):.0%}"
        print(f"{name:26}{share:>11}" + "".join(f"{count[one]:>11,}" for one in MEASURES))


def main() -> None:
    """Print all numbers, and record them if asked to."""
    parser = argparse.ArgumentParser(description="Measure how large the project is.")
    parser.add_argument("--record", action="store_true", help="write the numbers that the test compares with")
    asked, found = parser.parse_args(), folders()
    if asked.record:
        RECORDED.write_text(json.dumps(static(found), indent=1) + "\n", encoding="utf-8")
    show(found)
    inside = core()
    print("\ncore: " + ", ".join(f"{inside[one]:,} {one}" for one in ("lines", "files", "functions", "constants")))
    print("public members: " + ", ".join(f"{name} {count}" for name, count in protocols().items()))
    for name, (files, functions, depth) in runs().items():
        print(f"one {name}: {files} files, {functions} functions, {depth} calls deep")


if __name__ == "__main__":
    main()
