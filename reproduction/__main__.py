"""The command ``python -m reproduction --quick``; see ``--help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from reproduction.base import Mode
from reproduction.report import build_report
from reproduction.runner import FolderError, Store, discover, measure_tasks

NEEDED = ("cvxpy", "jinja2", "matplotlib", "pandas")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    out = argparse.ArgumentParser(prog="python -m reproduction", description="Measure and judge the paper's claims.")
    out.add_argument("experiments", nargs="*", help="measure these alone; all by default")
    size = out.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="packaged data, at most five minutes (the default)")
    size.add_argument("--full", action="store_true", help="the sizes of the paper, about an hour")
    out.add_argument("--out", type=Path, default=Path("reproduction-report"), help="the folder of the report")
    out.add_argument("--report-only", action="store_true", help="judge and draw what is stored, measure nothing")
    out.add_argument("--force", action="store_true", help="measure anew what is stored, in place of going on")
    return out


def fail(sentence: str) -> int:
    """Print an error message, and return the exit code."""
    sys.stderr.write(f"reproduction: {sentence}\n")
    return 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tasks that are not stored yet, and write the report."""
    options = parser().parse_args(arguments)
    mode: Mode = "full" if options.full else "quick"
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return fail(f"{', '.join(missing)} must be installed; `pip install -e '.[all]' --group reproduction` does so.")
    experiments = discover()
    unknown = [name for name in options.experiments if name not in experiments]
    if unknown:
        return fail(f"`experiments` must be some of {', '.join(experiments)}, got {unknown[0]!r}.")
    chosen = [experiments[name] for name in options.experiments or experiments]
    store = Store(options.out, mode)
    try:
        check(store, options.report_only)
        if options.force and not options.report_only:
            for experiment in chosen:
                for task in experiment.tasks(mode):
                    store.path(experiment.name, task).unlink(missing_ok=True)
        failed = [] if options.report_only else measure_tasks(chosen, store, lambda _: True, partial(print, flush=True))
        shown = build_report(experiments, store, options.out)
    except KeyboardInterrupt:
        return fail("interrupted; the same command without `--force` goes on where it was.")
    except OSError as error:
        return fail(f"`--out` must be a folder that can be written, got {options.out}: {error.strerror or error}.")
    except FolderError as error:
        return fail(str(error))
    sys.stdout.write(f"{shown['sentence']}\n{options.out / 'report.html'}\n")
    return 1 if failed else 0


def check(store: Store, report_only: bool) -> None:
    """Raise FolderError if the folder is not that of a report, or has measurements of the other mode."""
    out, stored = store.folder.parent, {str(entry["mode"]) for entry in store.entries()}
    if report_only and not stored:
        raise FolderError(f"`--report-only` needs measurements in {store.folder}, where there are none; leave it out.")
    if report_only:
        store.mode = "full" if stored == {"full"} else "quick"
    elif stored - {store.mode}:
        raise FolderError(f"`--out` must hold measurements of one size, and {out} holds {', '.join(stored)} ones.")
    elif not store.folder.is_dir() and any(out.iterdir() if out.is_dir() else ()):
        raise FolderError(f"`--out` must be a new or empty folder or that of a report, got {out}; name another one.")
    else:
        store.folder.mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    sys.exit(main())
