"""Callbacks: what a run shows, and what may stop it."""

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

#: Called with the run after every iteration; True ends it.
Callback = Callable[["Run"], bool | None]


def as_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """The callbacks, given as one or as several; raises TypeError if one is not callable."""
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
    """A context at whose end the ``close`` methods are called of those callbacks that have one, whatever happens."""
    stack = ExitStack()
    for callback in callbacks:
        if hasattr(callback, "close"):
            stack.callback(callback.close)
    return stack


def announce(callbacks: Sequence[Callback], stage: str, most: int | None = None) -> None:
    """Call the ``begin`` method of those callbacks that have one: work of several runs enters a stage.

    ``most`` is the largest number of iterations of all its runs, if that is known.
    """
    for callback in callbacks:
        getattr(callback, "begin", lambda stage, most: None)(stage, most)


class ProgressBar:
    """A line with a bar, the certified gap and the time left, redrawn in place on a terminal or in a notebook.

    The bar measures how far the gap has come from its first size to the tolerance, on a logarithmic scale. If the work
    has stages of several runs, such as the path and the sweeps of a matrix completion, it names the stage and counts
    its iterations. Nothing is written to other streams.

    Parameters
    ----------
    stream : text stream, optional
        Where to draw; by default the standard error stream.
    label : str, optional
        The text before the bar; by default the name of the solver.
    transient : bool
        Whether the bar disappears at the end of the run.

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
        """Name the stage that work of several runs enters, and the largest number of its iterations."""
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
        """Show that a part ``done`` of the work is over; the label is for bars that have none."""
        now, done = time.perf_counter(), min(max(done, 0.0), 1.0)
        self._begun = now if math.isnan(self._begun) else self._begun
        left = f"  {(now - self._begun) * (1.0 - done) / done:.0f} s left" if 0.0 < done < 1.0 else ""
        filled = round(20 * done)
        title = ": ".join(filter(None, (self._label or ("" if self._stage else label), self._stage)))
        self._line = f"{title} [{'#' * filled}{'.' * (20 - filled)}] {words}{left}"
        if now - self._drawn >= 0.1:  # as often as an eye can follow
            self._drawn = now
            self._write(self._line)

    def close(self) -> None:
        """Leave the last state, or remove the bar if it is transient."""
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
    """Write a line for an iteration to the standard error stream: passes, value, bound, relative gap."""
    gap = f"{run.relative_gap:.2e}" if math.isfinite(run.relative_gap) else "-"
    bound = f"{run.bound:.8g}" if run.convex and math.isfinite(run.bound) else "-"
    text = f"iteration {run.iteration:6d}  passes {run.passes:<6.4g}  value {run.value:<13.8g}  bound {bound:<13}  "
    sys.stderr.write(f"{text}relative gap {gap}\n")
