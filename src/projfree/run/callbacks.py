"""Callbacks: what a run shows, and what may stop it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from projfree.checks import shown

if TYPE_CHECKING:
    from projfree.run.progress import Run

#: Called with the run after every iteration; True ends it.
Callback = Callable[["Run"], bool | None]
#: The text after a bar, the columns that are left for all words beside it, and a width below which few words fit.
TEXT, WORDS, NARROW = "{task.fields[words]}", 70, 70


def listed(callbacks: Any) -> tuple[Callback, ...]:
    """Callbacks that were given as one or as several, or a sentence on what is none."""
    one = callable(callbacks) or not isinstance(callbacks, Iterable)
    found = (callbacks,) if one else tuple(callbacks)
    wrong = [each for each in found if not callable(each)]
    if wrong:
        raise TypeError(
            f"`callbacks` must be a function of the run, or a sequence of such functions, got {shown(wrong[0])}; "
            "leave it out where there is none."
        )
    return found


@contextmanager
def closed(callbacks: Sequence[Callback]) -> Iterator[None]:
    """Call the ``close`` method of those callbacks that have one, whatever happens."""
    with ExitStack() as stack:
        for callback in callbacks:
            close = getattr(callback, "close", None)
            if close is not None:
                stack.callback(close)
        yield


def announce(callbacks: Sequence[Callback], stage: str, most: int | None = None) -> None:
    """Call the ``begin`` method of those callbacks that have one: work of several runs enters a stage.

    Parameters
    ----------
    stage : str
        What it is called.
    most : int, optional
        The largest number of iterations of all its runs, where that is known.
    """
    for callback in callbacks:
        getattr(callback, "begin", lambda stage, most: None)(stage, most)


def open_bar(console: Any, text: str, *, transient: bool = False) -> Any:
    """A bar of rich with a text after it and the time left, drawn on terminals alone; narrow ones have no bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        """The time left, or at the end the time it took, each with its word; nothing where it is not known."""

        def render(self, task: Task) -> Text:
            time = super().render(task)
            return Text.assemble("took " if task.finished else "left ", time) if time.plain else time

    console = console or Console(stderr=True)
    picture = BarColumn(bar_width=max(8, min(30, console.width - WORDS)))
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        *(() if is_narrow(console) else (picture,)),
        TextColumn(text),
        TimeLeft(compact=True, elapsed_when_finished=True, table_column=Column(no_wrap=True)),
        console=console,
        disable=not console.is_terminal,
        transient=transient,
    )
    bar.start()
    return bar


def is_narrow(console: Any) -> bool:
    """Whether a terminal has no place for a bar and for all words."""
    return bool(console.width < NARROW)


def close_bar(bar: Any) -> None:
    """Leave the last picture of a bar; some versions of rich end one that was never drawn with an empty line."""
    if not bar.disable:
        bar.stop()


class ProgressBar:
    """A terminal progress bar with the certified gap and the time left; silence where the output is no terminal.

    The bar measures how far the gap has come from its first size to the tolerance, on a logarithmic scale. Where the
    work has stages of several runs, such as the path and the sweeps of a matrix completion, it names the stage and
    counts its iterations; the time left is then that of the largest number of them.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to draw; by default the standard error stream.
    label : str, optional
        What stands before the bar; by default the name of the solver.
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
        self._console, self._first = console, math.nan
        self._label, self._transient = label, transient
        self._bar: Any = None
        self._task: Any = None
        #: The stage of some work, the largest number of its iterations, and how many were seen.
        self._stage: tuple[str, int | None] = ("", None)
        self._seen = 0

    def begin(self, stage: str, most: int | None = None) -> None:
        """Name the stage that work of several runs enters, and the largest number of its iterations."""
        self._stage, self._seen, self._first = (stage, most), 0, math.nan
        if self._bar is not None:  # a new task, because the old one knows how fast another kind of work was
            self._bar.remove_task(self._task)
        self._open(self._label, None if most is None else 1.0, anew=True)

    def _open(self, label: str | None, total: float | None = 1.0, *, anew: bool = False) -> None:
        if self._bar is None:
            self._bar, anew = open_bar(self._console, TEXT, transient=self._transient), True
        if anew:
            names = (None if self._narrow else label, self._stage[0])
            self._task = self._bar.add_task(": ".join(name for name in names if name), total=total, words="")

    @property
    def _narrow(self) -> bool:
        return is_narrow(self._bar.console)

    def __call__(self, run: Run) -> None:
        """Draw the state of the run."""
        self._open(self._label or type(run.solver).__name__)
        self._seen += 1
        _, most = self._stage
        if most is not None:
            words = f"{self._seen}/{most}" if self._narrow else f"{self._seen} of at most {most}"
            self._bar.update(self._task, completed=self._seen / most, words=words)
            return
        gap = run.relative_gap
        if math.isnan(self._first) and math.isfinite(gap) and gap > 0:
            self._first = max(gap, run.tol)
        words = f"{'gap' if self._narrow else _kind(run)} {gap:.1e}" if math.isfinite(gap) else "no gap yet"
        if not self._narrow and not self._stage[0]:
            words += f"  iteration {run.iteration}"
        self._bar.update(self._task, total=1.0, completed=self._done(gap, run), words=words)

    def _done(self, gap: float, run: Run) -> float:
        by_iterations = run.iteration / run.max_iter
        if not (math.isfinite(self._first) and gap > 0 and run.tol > 0) or self._first <= run.tol:
            return by_iterations
        return max(by_iterations, min(1.0, math.log(self._first / gap) / math.log(self._first / run.tol)))

    def close(self) -> None:
        """Leave the last picture and give the terminal back."""
        if self._bar is not None:
            close_bar(self._bar)
            self._bar, self._first, self._stage = None, math.nan, ("", None)


def _kind(run: Run) -> str:
    """What the gap is: only a convex function has a bound; elsewhere it says how far from stationary the point is."""
    return "certified gap" if getattr(getattr(run, "f", None), "convex", True) else "Frank-Wolfe gap"


class IterationLines:
    """A line for each iteration: passes, value, bound, relative gap.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to write; by default the standard error stream.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from rich.console import Console
    >>> from projfree import LpBall, QuadraticForm, minimize
    >>> from projfree.run.callbacks import IterationLines
    >>> out = io.StringIO()
    >>> f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    >>> _ = minimize(f, LpBall(2, radius=1.0), callbacks=[IterationLines(Console(file=out))])
    >>> out.getvalue().split()[:2]
    ['iteration', '1']
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
