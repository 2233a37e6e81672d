"""Apply known faults to a copy of the source, one at a time, and check that the tests find each of them.

    python tools/faults.py                 # all faults; fails if a fault is not found, or no longer applies
    python tools/faults.py --check         # only whether each one applies to the source, in a second
    python tools/faults.py Minorant splits # those whose symbol contains one of these words

A fault names a symbol, a text in it, and what replaces the text. It survives changes of other symbols; if its own
text is gone, adapt the fault here.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]


class Fault(NamedTuple):
    """A wrong version of a symbol, and the tests that must fail with it."""

    symbol: str
    old: str
    new: str
    tests: str


FAULTS = [
    # certificates
    Fault("algebra.minorant:Minorant.minimum", "- support - allowance", "- support", "tests/algebra"),
    Fault("algebra.minorant:Minorant.minimum", "- support - allowance", "+ support - allowance", "tests/algebra"),
    Fault("algebra.minorant:Minorant.minimum", "* reach + error", "* reach", "tests/algebra tests/sets"),
    Fault("algebra.minorant:Minorant.__mul__", "not a >= 0.0", "False", "tests/algebra"),
    Fault("run.lower_bound:LowerBound.take", "bound > self.bound", "True", "tests/run"),
    Fault("run.lower_bound:AveragedMinorant.add", "new * m", "1.01 * m", "tests/run"),
    Fault("run.certificate:Certificate.verify", "inside is not False and", "", "tests/run"),
    Fault("run.certificate:Certificate.verify", "abs(value - self.value) <= of_value", "True", "tests/run"),
    Fault("run.certificate:Certificate.verify", "<= max(lower + of_value + of_bound, least)", "< 1e300", "tests/run"),
    Fault("run.certificate:refuse_contradiction", "bound > value", "bound > 1e300 + value", "tests/run"),
    Fault("run.certificate:multiplier", "/ radius)", "* radius)", "tests/run"),
    Fault("run.loop:Run.certify", "relative_gap <= self.tol and", "relative_gap <= 9 * self.tol and", "tests/run"),
    Fault("run.loop:_result", "run.bound if run.convex else None", "run.bound", "tests/run"),
    Fault("sets.base:frank_wolfe_gap", "ball.support(-gradient)", "ball.support(gradient)", "tests/run tests/solvers"),
    Fault("objectives.intercept:Intercept.minorant", "sums.value - sums.along", "sums.value", "tests/objectives"),
    # oracles and losses, of which bounds are made
    Fault("sets.lp:LpBall.lmo", "-self.radius *", "self.radius *", "tests/sets"),
    Fault("sets.lp:spread", "p <= 2.0", "p <= 4.0", "tests/sets"),
    Fault("sets.group:GroupBall.lmo", "conjugate(self.p)", "self.p", "tests/sets"),
    Fault("sets.schatten:SchattenBall.support_error", "return own + ", "return own + 0.0 * ", "tests/sets"),
    Fault("losses.quantile:Quantile.smoothing_error", "0.5 *", "0.25 *", "tests/losses"),
    Fault("losses.logistic:Logistic.second", "expit(m) * expit(-m)", "expit(m)", "tests/losses"),
    Fault("losses.huber:Huber.derivative", "-self.delta", "-2 * self.delta", "tests/losses"),
    # weights
    Fault("data.local:checked_weights", "weight / weight.sum()", "weight / len(weight)", "tests/data"),
    Fault("data.local:LocalData.representative", "(self.n / len(rows))", "1.0", "tests/data tests/solvers"),
    Fault("data.local:LocalData.labels", "self.y[self.weight > 0]", "self.y", "tests/estimators"),
    Fault("estimators.classifier:ConstrainedClassifier._weights", "by_row * weight", "by_row", "tests/estimators"),
    # intercepts
    Fault("objectives.intercept:Centred._best", "- self.mean_prediction", "+ self.mean_prediction", "tests/objectives"),
    Fault("objectives.intercept:Centred.minorant", "g - outer(", "g + outer(", "tests/objectives"),
    Fault("data.column_stats:ColumnStats.raw", "intercept - self", "intercept + self", "tests/estimators"),
    Fault("estimators.problem:make_problem", "raw(w, b + centre)", "raw(w, b)", "tests/estimators"),
    Fault("estimators.problem:_tasks", "ym - np.einsum", "ym + np.einsum", "tests/estimators"),
    # folds
    Fault("data.local:LocalData.subset", "== rows.inside", "!= rows.inside", "tests/data tests/estimators"),
    Fault("cli.fit:split", "np.sort(order[held:])", "np.sort(order)", "tests/cli/test_fit.py"),
    Fault("cli.fit:fit", "fitted(np.arange(len(rows))", "fitted(train", "tests/cli/test_fit.py"),
    # persistence
    Fault("persist:_read_array", "member.compress_type != zipfile.ZIP_STORED", "False", "tests/persist"),
    Fault("persist:atomic_write", "_flush(temporary)", "pass", "tests/persist"),
    Fault("persist:_read", 'content["kind"] == kind', "True", "tests/persist"),
    Fault("run.checkpoint:_restore", "run.unproved = True", "run.unproved = False", "tests/run"),
    Fault("estimators.encoding:unpack_encoder", "medians or ", "", "tests/estimators/test_untrusted_models.py"),
    Fault("cli.output:check_place", "and not force and", "and", "tests/cli/test_files.py"),
    Fault("cli.output:text_file", "check_place(out, inputs, force)", "pass", "tests/cli/test_files.py"),
]


def path_of(fault: Fault, source: Path) -> Path:
    """The file of a fault's symbol."""
    return source / "projfree" / (fault.symbol.partition(":")[0].replace(".", "/") + ".py")


def faulty(fault: Fault, text: str) -> str:
    """The text of a module with the fault in it; raises ValueError unless it applies exactly once."""
    node: ast.AST = ast.parse(text)
    for name in fault.symbol.partition(":")[2].split("."):
        inside = [child for child in ast.walk(node) if getattr(child, "name", None) == name]
        if not inside:
            raise ValueError(f"{fault.symbol}: there is no {name}")
        node = inside[0]
    lines = text.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno  # type: ignore[attr-defined]  # functions and classes have both
    body = "".join(lines[first:last])
    if body.count(fault.old) != 1:
        raise ValueError(f"{fault.symbol}: {fault.old!r} is in it {body.count(fault.old)} times")
    return "".join(lines[:first]) + body.replace(fault.old, fault.new) + "".join(lines[last:])


def outcome(fault: Fault, source: Path) -> str:
    """Run the tests of a fault on a copy of the source: "found", "NOT FOUND", or what else went wrong."""
    path = path_of(fault, source)
    original = path.read_text(encoding="utf-8")
    try:
        path.write_text(faulty(fault, original), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(source), str(TOP)))}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *fault.tests.split()], cwd=TOP, env=environment, capture_output=True, text=True, check=False
        )
    finally:
        path.write_text(original, encoding="utf-8")
    if done.returncode == 1:
        return "found by " + next((line[7:97] for line in done.stdout.splitlines() if line.startswith("FAILED ")), "?")
    return "NOT FOUND" if done.returncode == 0 else f"ERROR {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"


def main() -> int:
    """Run the faults that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only faults whose symbol contains one of these")
    parser.add_argument("--check", action="store_true", help="only check that each fault applies")
    asked, bad = parser.parse_args(), 0
    chosen = [f for f in FAULTS if not asked.words or any(word in f.symbol for word in asked.words)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(TOP / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for fault in chosen:
            try:
                faulty(fault, path_of(fault, source).read_text(encoding="utf-8"))
                result = "applies" if asked.check else outcome(fault, source)
            except (OSError, ValueError) as error:
                result = f"ERROR {error}"
            bad += not result.startswith(("applies", "found"))
            print(f"{fault.symbol}: {fault.old!r} -> {fault.new!r}: {result}", flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} faults {'apply' if asked.check else 'were found'}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
