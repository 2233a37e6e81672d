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
from functools import cache
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]


class Fault(NamedTuple):
    """A wrong version of a symbol, and the files of tests of which one must fail with it."""

    symbol: str
    old: str
    new: str
    tests: str


FAULTS = [
    # certificates
    Fault("algebra.minorant:Minorant.minimum", "- support - allowance", "- support", "algebra/test_minorant"),
    Fault(
        "algebra.minorant:Minorant.minimum", "- support - allowance", "+ support - allowance", "algebra/test_minorant"
    ),
    Fault("algebra.minorant:Minorant.minimum", "* reach + error", "* reach", "algebra/test_minorant"),
    Fault("algebra.minorant:Minorant.__mul__", "not a >= 0.0", "False", "algebra/test_minorant"),
    Fault("run.lower_bound:LowerBound.take", "bound > self.bound", "True", "run/test_lower_bound"),
    Fault("run.lower_bound:LowerBound.add", "new * m", "1.01 * m", "run/test_lower_bound"),
    Fault("run.certificate:Certificate.verify", "inside is not False and", "", "run/test_certificate"),
    Fault("run.certificate:Certificate.verify", "abs(value - self.value) <= of_value", "True", "run/test_certificate"),
    Fault(
        "run.certificate:Certificate.verify", "<= max(lower + of_value", "<= max(1e9 + of_value", "run/test_certificate"
    ),
    Fault("run.certificate:refuse_contradiction", "bound > value", "bound > 1e300 + value", "run/test_contradictions"),
    Fault("run.certificate:multiplier", "/ radius)", "* radius)", "run/test_result"),
    Fault("run.loop:Run.certify", "self.scale <= self.tol and", "self.scale <= 9 * self.tol and", "run/test_result"),
    Fault("run.loop:minimize", "run.bound if run.convex else None", "run.bound", "run/test_contradictions"),
    Fault("sets.base:frank_wolfe_gap", "inner(gradient, w) +", "", "run/test_status"),
    Fault("objectives.erm:Objective._minorant", "sums.value - sums.along", "sums.value", "objectives/test_erm"),
    # oracles and losses, of which bounds are made
    Fault("sets.lp:LpBall.lmo", "-self.radius *", "self.radius *", "sets/test_laws"),
    Fault("sets.lp:spread", "p <= 2.0", "p <= 4.0", "sets/test_allowances"),
    Fault("sets.group:GroupBall.lmo", "conjugate(self.p)", "self.p", "sets/test_laws"),
    Fault(
        "sets.schatten:SchattenBall.support_error", "return own + ", "return own + 0.0 * ", "sets/test_support_rounding"
    ),
    Fault("losses.quantile:Quantile.smoothing_error", "0.5 *", "0.25 *", "losses/test_laws losses/test_values"),
    Fault("losses.logistic:Logistic.second", "expit(m) * expit(-m)", "expit(m)", "losses/test_laws"),
    Fault("losses.huber:Huber.derivative", "-self.delta", "-2 * self.delta", "losses/test_laws"),
    # weights
    Fault("data.local:checked_weights", "weight / weight.sum()", "weight / len(weight)", "data/test_dense"),
    Fault("data.local:LocalData.representative", "(self.n / len(rows))", "1.0", "data/test_dense"),
    Fault(
        "data.local:LocalData.labels",
        "self.y[self.weight > 0]",
        "self.y",
        "objectives/test_intercept",
    ),
    Fault("estimators.classifier:Classification._targets", "factors * weight", "factors", "estimators/test_weights"),
    # intercepts
    Fault("objectives.intercept:Intercept.locate", "constant - self", "constant + self", "objectives/test_intercept"),
    Fault("objectives.erm:Objective", "g - outer(", "g + outer(", "objectives/test_intercept"),
    Fault("data.column_stats:ColumnStats.raw", "intercept - self", "intercept + self", "estimators/test_models"),
    # folds
    Fault("cli.fit:split_rows", "np.sort(order[held:])", "np.sort(order)", "cli/test_fit"),
    Fault("cli.fit:fit", "fit_rows(np.arange(len(rows.y))", "fit_rows(train", "cli/test_fit"),
    # persistence
    Fault("persist:_read_array", "member.compress_type != zipfile.ZIP_STORED", "False", "persist/test_untrusted"),
    Fault("persist:atomic_write", "_flush(temporary)", "pass", "persist/test_power_cut persist/test_atomic"),
    Fault("persist:_read", 'content["kind"] == kind', "True", "persist/test_refusals persist/test_round_trip"),
    Fault("run.checkpoint:_restore", "run.unproved = True", "run.unproved = False", "run/test_forged_checkpoints"),
    Fault("estimators.encoding:unpack_encoder", "medians or ", "", "estimators/test_untrusted_models"),
    Fault("cli.output:check_output", "and not force and", "and", "cli/test_files"),
    Fault("cli.output:write_csv", "check_output(out, inputs, force)", "pass", "cli/test_files"),
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


def run(tests: str, source: Path) -> subprocess.CompletedProcess[str]:
    """Run some tests on a copy of the source until the first one fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(source), str(TOP)))}
    files = [f"tests/{name}.py" for name in tests.split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *files]
    return subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=False)


@cache
def passes(tests: str, source: Path) -> bool:
    """Whether the tests pass without a fault; else their failures would prove nothing."""
    return run(tests, source).returncode == 0


def outcome(fault: Fault, source: Path) -> str:
    """Run the tests of a fault on a copy of the source: "found by", "NOT FOUND", or what else went wrong."""
    if not passes(fault.tests, source):
        return f"ERROR {fault.tests} fail without it"
    path = path_of(fault, source)
    original = path.read_text(encoding="utf-8")
    try:
        path.write_text(faulty(fault, original), encoding="utf-8")
        done = run(fault.tests, source)
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
