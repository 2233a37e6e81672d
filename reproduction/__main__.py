"""The command: ``python -m reproduction --quick``; see ``--help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from reproduction.base import Mode
from reproduction.report import build
from reproduction.runner import STORE, Store, discover, measure

NEEDED = ("cvxpy", "jinja2", "matplotlib", "pandas")


def parser() -> argparse.ArgumentParser:
    """The options."""
    out = argparse.ArgumentParser(prog="python -m reproduction", description="Measure and judge the paper's claims.")
    out.add_argument("experiments", nargs="*", help="measure these alone; all by default")
    size = out.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="packaged data, at most five minutes (the default)")
    size.add_argument("--full", action="store_true", help="the sizes of the paper, about an hour")
    out.add_argument("--out", type=Path, default=Path("reproduction-report"), help="the folder of the report")
    out.add_argument("--report-only", action="store_true", help="judge and draw what is stored, measure nothing")
    out.add_argument("--force", action="store_true", help="measure anew what is stored, in place of going on")
    return out


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fail(sentence: str) -> int:
    """Say why, and return the exit code."""
    sys.stderr.write(f"reproduction: {sentence}\n")
    return 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is not stored yet, and write the report."""
    options = parser().parse_args(arguments)
    mode: Mode = "full" if options.full else "quick"
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return fail(f"{', '.join(missing)} must be installed; `pip install -e '.[reproduce]'` does so.")
    experiments = discover()
    unknown = [name for name in options.experiments if name not in experiments]
    if unknown:
        return fail(f"`experiments` must be some of {', '.join(experiments)}, got {unknown[0]!r}.")
    store = Store(options.out, mode)
    stored = store.modes()
    if options.report_only and not stored:
        return fail(f"`--report-only` needs measurements in {options.out / STORE}, where there are none; leave it out.")
    if options.report_only:
        store.mode = "full" if stored == {"full"} else "quick"
    elif stored - {mode}:
        return fail(f"`--out` must hold measurements of one size, and {options.out} holds {', '.join(stored)} ones.")
    chosen = [experiments[name] for name in options.experiments or experiments]
    failed: list[str] = []
    if not options.report_only:
        if options.force:
            for experiment in chosen:
                for task in experiment.tasks(mode):
                    store.path(experiment.name, task).unlink(missing_ok=True)
        failed = measure(chosen, store, lambda _: True, say)
    shown = build(experiments, store, options.out)
    sys.stdout.write(f"{shown['sentence']}\n{options.out / 'report.html'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
