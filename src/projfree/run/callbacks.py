"""Callbacks: what a run shows, and what may stop it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from projfree.run.progress import Run

#: Called with the run after every iteration; True ends it.
Callback = Callable[["Run"], bool | None]


@contextmanager
def closed(callbacks: Sequence[Callback]) -> Iterator[None]:
    """Call the ``close`` method of those callbacks that have one, whatever happens."""
    with ExitStack() as stack:
        for callback in callbacks:
            close = getattr(callback, "close", None)
            if close is not None:
                stack.callback(close)
        yield


class ProgressBar:
    """A terminal progress bar with the certified gap and the time left; silence where the output is no terminal.

    The bar measures how far the gap has come from its first size to the tolerance, on a logarithmic scale.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to draw; by default the standard error stream.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, ProgressBar, QuadraticForm, minimize
    >>> f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    >>> minimize(f, LpBall(2, radius=1.0), callbacks=[ProgressBar()]).status.converged
    True
    """

    def __init__(self, console: Any = None) -> None:
        self._console, self._first = console, math.nan
        self._bar: Any = None
        self._task: Any = None

    def _open(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = self._console or Console(stderr=True)
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn(
                "relative gap {task.fields[gap]}  iteration {task.fields[iteration]}  passes {task.fields[passes]}"
            ),
            TextColumn("left"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=console,
            disable=not console.is_terminal,
        )
        bar.start()
        return bar

    def __call__(self, run: Run) -> None:
        """Draw the state of the run."""
        if self._bar is None:
            self._bar = self._open()
            fields = {"gap": "-", "iteration": 0, "passes": "0"}
            self._task = self._bar.add_task(type(run.solver).__name__, total=1.0, **fields)
        gap = run.relative_gap
        if math.isnan(self._first) and math.isfinite(gap) and gap > 0:
            self._first = max(gap, run.tol)
        self._bar.update(
            self._task,
            completed=self._done(gap, run),
            gap=f"{gap:.1e}" if math.isfinite(gap) else "-",
            iteration=run.iteration,
            passes=f"{run.passes:.0f}",
        )

    def _done(self, gap: float, run: Run) -> float:
        by_iterations = run.iteration / run.max_iter
        if not (math.isfinite(self._first) and gap > 0 and run.tol > 0) or self._first <= run.tol:
            return by_iterations
        return max(by_iterations, min(1.0, math.log(self._first / gap) / math.log(self._first / run.tol)))

    def close(self) -> None:
        """Leave the last picture and give the terminal back."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._first = None, math.nan


class IterationLines:
    """A line for each iteration: value, relative gap, passes.

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
        gap = f"{run.relative_gap:.2e}" if math.isfinite(run.relative_gap) else "none yet"
        text = f"iteration {run.iteration:6d}  relative gap {gap}  passes {run.passes:.4g}"
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
