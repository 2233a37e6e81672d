"""Callbacks, which display or stop a run."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from projfree.checks import shown

if TYPE_CHECKING:
    from projfree.run.loop import Run

#: Function of the run, called after every iteration; the run ends if it returns True.
Callback = Callable[["Run"], bool | None]


def as_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Return one or several callbacks as a tuple; raise TypeError if one is not callable."""
    single = callable(callbacks) or not isinstance(callbacks, Iterable)
    several = (callbacks,) if single else tuple(callbacks)
    for each in several:
        if not callable(each):
            raise TypeError(
                f"`callbacks` must be a function of the run, or a sequence of such functions, got {shown(each)}; leave "
                "it out where there is none."
            )
    return several


def closing(callbacks: Sequence[Callback]) -> ExitStack:
    """Return a context manager that calls the ``close`` methods of callbacks on exit, also after an exception."""
    stack = ExitStack()
    for callback in callbacks:
        if hasattr(callback, "close"):
            stack.callback(callback.close)
    return stack


def announce(callbacks: Sequence[Callback], stage: str, most: int | None = None) -> None:
    """Call the ``begin`` methods of callbacks at the start of a stage with several runs.

    ``most`` is the maximum number of iterations of all its runs, if known.
    """
    for callback in callbacks:
        getattr(callback, "begin", lambda stage, most: None)(stage, most)


class ProgressBar:
    """A line with a bar, the certified gap and the remaining time, updated in place on a terminal or in a notebook.

    The bar shows the progress of the gap from its first value to the tolerance on a logarithmic scale. If a computation
    has stages with several runs, such as the path and the sweeps of matrix completion, it shows the stage and the
    number of iterations. Nothing is written to streams that are not interactive.

    Parameters
    ----------
    stream : text stream, optional
        Stream to write to; by default standard error.
    label : str, optional
        Text before the bar; by default the name of the solver.
    transient : bool
        Whether to remove the bar at the end of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, ProgressBar, QuadraticForm, minimize
    >>> f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    >>> minimize(f, LpBall(2, radius=1.0), callbacks=[ProgressBar()]).status.converged
    True
    """

    def __init__(self, stream: Any = None, *, label: str | None = None, transient: bool = False) -> None:
        self._stream, self._label, self._transient = stream, label, transient
        self._line, self._width = "", 0
        self.begin("")

    def begin(self, stage: str, most: int | None = None) -> None:
        """Start a stage with several runs and at most ``most`` iterations."""
        self._stage, self._most, self._seen = stage, most, 0
        self._first, self._begun, self._drawn = math.nan, math.nan, 0.0

    def __call__(self, run: Run) -> None:
        """Draw the state of the run."""
        self._seen += 1
        if self._most is not None:
            self.draw(self._seen / self._most, f"{self._seen} of at most {self._most}")
            return
        done, gap = run.iteration / run.max_iter, run.relative_gap
        if math.isnan(self._first) and math.isfinite(gap) and gap > 0:
            self._first = gap
        if 0.0 < run.tol < self._first and 0.0 < gap < math.inf:
            done = max(done, math.log(self._first / gap) / math.log(self._first / run.tol))
        kind = "certified" if run.convex else "Frank-Wolfe"
        words = f"{kind} gap {gap:.1e}" if math.isfinite(gap) else "no gap yet"
        words += "" if self._stage else f"  iteration {run.iteration}"
        self.draw(done, words, type(run.solver).__name__)

    def draw(self, done: float, words: str, label: str = "") -> None:
        """Draw the bar for the fraction ``done`` of the work; ``label`` is used if the bar has no label."""
        now, done = time.perf_counter(), min(max(done, 0.0), 1.0)
        self._begun = now if math.isnan(self._begun) else self._begun
        left = f"  {(now - self._begun) * (1.0 - done) / done:.0f} s left" if 0.0 < done < 1.0 else ""
        filled = round(20 * done)
        title = ": ".join(filter(None, (self._label or ("" if self._stage else label), self._stage)))
        self._line = f"{title} [{'#' * filled}{'.' * (20 - filled)}] {words}{left}"
        if now - self._drawn >= 0.1:  # ten updates per second
            self._drawn = now
            self._write(self._line)

    def close(self) -> None:
        """Finish the line, or remove the bar if it is transient."""
        if self._line:
            self._write("" if self._transient else self._line, "\r" if self._transient else "\n")
            self._line, self._width = "", 0
            self.begin("")

    def _write(self, line: str, end: str = "") -> None:
        stream = sys.stderr if self._stream is None else self._stream
        if type(stream).__module__.startswith("ipykernel") or getattr(stream, "isatty", bool)():
            line = line[: shutil.get_terminal_size().columns - 1]
            stream.write("\r" + line.ljust(self._width) + end)
            stream.flush()
            self._width = len(line)


def print_iteration(run: Run) -> None:
    """Write a line with passes, value, bound and relative gap of an iteration to standard error."""
    gap = f"{run.relative_gap:.2e}" if math.isfinite(run.relative_gap) else "-"
    bound = f"{run.bound:.8g}" if run.convex and math.isfinite(run.bound) else "-"
    text = f"iteration {run.iteration:6d}  passes {run.passes:<6.4g}  value {run.value:<13.8g}  bound {bound:<13}  "
    sys.stderr.write(f"{text}relative gap {gap}\n")
