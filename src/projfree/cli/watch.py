"""Watching a run: a bar with the certified gap and the time left, and what Ctrl-C leaves behind."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import Any

from projfree.run import Checkpoint, Run


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


class Keeper:
    """Remembers the run, so that it can be written down when it was interrupted."""

    def __init__(self) -> None:
        self.run: Run | None = None

    def __call__(self, run: Run) -> None:
        """Remember."""
        self.run = run

    def save(self, folder: Path) -> bool:
        """Write a checkpoint; False where the run had not begun."""
        if self.run is None or self.run.iteration == 0:
            return False
        Checkpoint(folder, every=1)(self.run)
        return True


def checkpoint_of(out: Path) -> Path:
    """Where the checkpoint of a model lies: beside it."""
    return out.with_name(out.name + ".checkpoint")


def resume_command() -> str:
    """The command that was given, with --resume."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return shlex.join(["projfree", *words, "--resume"])
