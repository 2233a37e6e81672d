"""Watching a run: a bar with the certified gap and the time left, and what Ctrl-C leaves behind."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from projfree.run import Run
from projfree.run.checkpoint import write


class Bar:
    """A progress bar on a terminal, nothing in a pipe; the bar is how far the gap has come, on a logarithmic scale."""

    def __init__(self, label: str, quiet: bool = False) -> None:
        self.label, self.quiet, self.first = label, quiet or not sys.stderr.isatty(), math.nan
        self._bar: Any = None
        self._task: Any = None

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[gap]}  [dim]iteration[/] {task.fields[iteration]}  [dim]left[/]"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(self.label, total=1.0, gap="", iteration=0)

    def __call__(self, run: Any) -> None:
        """Show where the run is."""
        if self.quiet:
            return
        if self._bar is None:
            self._open()
        gap = float(getattr(run, "relative_gap", math.inf))
        tol, most = float(getattr(run, "tol", 0.0) or 0.0), int(getattr(run, "max_iter", 0) or 0)
        iteration = int(getattr(run, "iteration", 0))
        if math.isnan(self.first) and math.isfinite(gap) and gap > 0:
            self.first = gap
        # Only a convex function has a bound; elsewhere the gap says how far from stationary the point is.
        kind = "certified gap" if getattr(getattr(run, "f", None), "convex", True) else "Frank-Wolfe gap"
        text = f"[dim]{kind}[/] {gap:.1e}" if math.isfinite(gap) else "[dim]no gap yet[/]"
        self._bar.update(self._task, completed=self._done(gap, tol, iteration, most), gap=text, iteration=iteration)

    def _done(self, gap: float, tol: float, iteration: int, most: int) -> float:
        share = iteration / most if most else 0.0
        if math.isfinite(gap) and 0 < tol < self.first and gap > 0:
            share = max(share, min(1.0, math.log(self.first / gap) / math.log(self.first / tol)))
        return share

    def close(self) -> None:
        """Give the terminal back."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class Lines:
    """A line for each iteration, on the error stream."""

    def __call__(self, run: Run) -> None:
        """Print where the run is."""
        bound = f"{run.bound:.8g}" if run.f.convex else "-"
        gap = f"{run.relative_gap:.2g}" if math.isfinite(run.relative_gap) else "-"
        print(
            f"iteration {run.iteration:>6}  passes {run.passes:>8.4g}  value {run.value:<14.8g}  bound {bound:<14}  "
            f"relative gap {gap}",
            file=sys.stderr,
            flush=True,
        )


class Keeper:
    """Writes the run down when it is interrupted, before anything else is done with it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wrote = folder, False

    def __call__(self, run: Run) -> None:
        """Nothing to do while all is well."""

    def interrupted(self, run: Run) -> None:
        """Write a checkpoint, unless the run had not begun."""
        if run.iteration > 0:
            write(self.folder, run)
            self.wrote = True


@contextmanager
def logged(wanted: bool) -> Iterator[None]:
    """Show what the package logs, such as compilations, on the error stream."""
    if not wanted:
        yield
        return
    log, shown = logging.getLogger("projfree"), logging.StreamHandler(sys.stderr)
    level = log.level
    log.addHandler(shown)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.setLevel(level)
