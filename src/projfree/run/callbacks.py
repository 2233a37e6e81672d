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


class TextBar:
    """A line of text with a bar and the time left, redrawn in place on a terminal or in a notebook; else nothing.

    Parameters
    ----------
    stream : text stream, optional
        Where to draw; by default the standard error stream.
    transient : bool
        Whether the line disappears at the end.
    """

    def __init__(self, stream: Any = None, *, transient: bool = False) -> None:
        self.stream = sys.stderr if stream is None else stream
        notebook = type(self.stream).__module__.startswith("ipykernel")
        self.visible = notebook or bool(getattr(self.stream, "isatty", bool)())
        self.transient, self.label, self.line, self.width = transient, "", "", 0
        self.begun = self.drawn = time.perf_counter()

    def draw(self, label: str, done: float, words: str) -> None:
        """Show that a part ``done`` of the work named by the label is over; a new label starts the clock again."""
        if not self.visible:
            return
        now = time.perf_counter()
        if label != self.label:
            self.label, self.begun, self.drawn = label, now, 0.0
        done = min(max(done, 0.0), 1.0)
        left = f"  {(now - self.begun) * (1.0 - done) / done:.0f} s left" if 0.0 < done < 1.0 else ""
        filled = round(20 * done)
        self.line = f"{label} [{'#' * filled}{'.' * (20 - filled)}] {words}{left}"
        if now - self.drawn >= 0.1:  # as often as an eye can follow
            self.drawn = now
            self._write(self.line)

    def close(self) -> None:
        """Draw the last state, or remove it."""
        if self.visible and self.line:
            self._write("" if self.transient else self.line)
            self.stream.write("\r" if self.transient else "\n")
            self.stream.flush()
            self.line, self.width = "", 0

    def _write(self, line: str) -> None:
        line = line[: shutil.get_terminal_size().columns - 1]
        self.stream.write("\r" + line.ljust(self.width))
        self.stream.flush()
        self.width = len(line)


class ProgressBar:
    """A progress bar with the certified gap and the time left, on a terminal or in a notebook; else silent.

    The bar measures how far the gap has come from its first size to the tolerance, on a logarithmic scale. If the work
    has stages of several runs, such as the path and the sweeps of a matrix completion, it names the stage and counts
    its iterations.

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
        self._bar: TextBar | None = None
        self.begin("")

    def begin(self, stage: str, most: int | None = None) -> None:
        """Name the stage that work of several runs enters, and the largest number of its iterations."""
        self._stage, self._most, self._seen, self._first = stage, most, 0, math.nan

    def __call__(self, run: Run) -> None:
        """Draw the state of the run."""
        if self._bar is None:
            self._bar = TextBar(self._stream, transient=self._transient)
        label = self._label if self._stage else self._label or type(run.solver).__name__
        self._seen += 1
        if self._most is not None:
            done, words = self._seen / self._most, f"{self._seen} of at most {self._most}"
        else:
            done, gap, kind = (
                run.iteration / run.max_iter,
                run.relative_gap,
                "certified" if run.convex else "Frank-Wolfe",
            )
            if math.isnan(self._first) and math.isfinite(gap) and gap > 0:
                self._first = gap
            if 0.0 < run.tol < self._first and 0.0 < gap < math.inf:
                done = max(done, min(1.0, math.log(self._first / gap) / math.log(self._first / run.tol)))
            words = f"{kind} gap {gap:.1e}" if math.isfinite(gap) else "no gap yet"
            words += "" if self._stage else f"  iteration {run.iteration}"
        self._bar.draw(": ".join(filter(None, (label, self._stage))), done, words)

    def close(self) -> None:
        """Leave the last state, or remove the bar if it is transient."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
            self.begin("")


class IterationLines:
    """A line for each iteration: passes, value, bound, relative gap.

    Parameters
    ----------
    stream : text stream, optional
        Where to write; by default the standard error stream.
    """

    def __init__(self, stream: Any = None) -> None:
        self._stream = stream

    def __call__(self, run: Run) -> None:
        """Write the line of this iteration."""
        gap = f"{run.relative_gap:.2e}" if math.isfinite(run.relative_gap) else "-"
        bound = f"{run.bound:.8g}" if run.convex and math.isfinite(run.bound) else "-"
        text = f"iteration {run.iteration:6d}  passes {run.passes:<6.4g}  value {run.value:<13.8g}  bound {bound:<13}  "
        text += f"relative gap {gap}"
        (self._stream or sys.stderr).write(text + "\n")
