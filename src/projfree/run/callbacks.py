"""Callbacks: what a run shows, and what may stop it."""

from __future__ import annotations

import math
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


def open_bar(console: Any, text: str, *, transient: bool = False) -> Any:
    """A progress bar of rich with a text after it and the time left, drawn on terminals only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = console or Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=max(8, min(30, console.width - 70))),  # beside 70 columns of text
        TextColumn(text),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
        disable=not console.is_terminal,
        transient=transient,
    )
    bar.start()
    return bar


def close_bar(bar: Any) -> None:
    """Leave the last state of a bar; some versions of rich end one that was never drawn with an empty line."""
    if not bar.disable:
        bar.stop()


class ProgressBar:
    """A terminal progress bar with the certified gap and the time left; silent if the output is no terminal.

    The bar measures how far the gap has come from its first size to the tolerance, on a logarithmic scale. If the work
    has stages of several runs, such as the path and the sweeps of a matrix completion, it names the stage and counts
    its iterations.

    Parameters
    ----------
    console : rich.console.Console, optional
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

    def __init__(self, console: Any = None, *, label: str | None = None, transient: bool = False) -> None:
        self._console, self._label, self._transient = console, label, transient
        self._bar: Any = None
        self._task: Any = None
        self._reset()

    def _reset(self, stage: str = "", most: int | None = None) -> None:
        """Begin a stage: its name, the largest number of its iterations, how many were seen, and its first gap."""
        self._stage, self._most, self._seen, self._first = stage, most, 0, math.nan
        if self._task is not None:  # a new task, because the old one knows how fast another kind of work was
            self._bar.remove_task(self._task)
            self._task = None

    def begin(self, stage: str, most: int | None = None) -> None:
        """Name the stage that work of several runs enters, and the largest number of its iterations."""
        self._reset(stage, most)
        self._open(self._label)

    def _open(self, label: str | None) -> None:
        if self._bar is None:
            self._bar = open_bar(self._console, "{task.fields[words]}", transient=self._transient)
        if self._task is None:
            self._task = self._bar.add_task(": ".join(filter(None, (label, self._stage))), total=1.0, words="")

    def __call__(self, run: Run) -> None:
        """Draw the state of the run."""
        self._open(self._label or type(run.solver).__name__)
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
        self._bar.update(self._task, completed=done, words=words)

    def close(self) -> None:
        """Leave the last state and give the terminal back."""
        if self._bar is not None:
            close_bar(self._bar)
            self._bar = self._task = None
            self._reset()


class IterationLines:
    """A line for each iteration: passes, value, bound, relative gap.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to write; by default the standard error stream.
    """

    def __init__(self, console: Any = None) -> None:
        self._console = console

    def __call__(self, run: Run) -> None:
        """Write the line of this iteration."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(stderr=True)
        gap = f"{run.relative_gap:.2e}" if math.isfinite(run.relative_gap) else "-"
        bound = f"{run.bound:.8g}" if run.convex and math.isfinite(run.bound) else "-"
        text = f"iteration {run.iteration:6d}  passes {run.passes:<6.4g}  value {run.value:<13.8g}  bound {bound:<13}  "
        text += f"relative gap {gap}"
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
