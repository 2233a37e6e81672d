"""What goes along with the run of a fit: what is shown of it, and what the user calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from projfree.checks import shown
from projfree.run import ProgressBar, Run
from projfree.run.callbacks import as_callbacks, print_iteration


def shown_by(verbose: Any, **of_bar: Any) -> list[Callable[[Run], Any]]:
    """The callbacks that ``verbose`` asks for: none, a bar with these settings, or a line an iteration."""
    if isinstance(verbose, bool | int) and verbose >= 0:
        return [] if verbose == 0 else [ProgressBar(**of_bar)] if verbose == 1 else [print_iteration]
    raise ValueError(f"`verbose` must be 0, 1 (a progress bar) or 2 (a line an iteration), got {shown(verbose)}.")


class PartsBar:
    """A bar over the parts of a search, its exponents and folds; None for ``total`` draws nothing."""

    def __init__(self, total: int | None, label: str = "cross-validation") -> None:
        self.total, self.done = total, -1
        self._bar = ProgressBar(label=label, transient=True)
        self()

    def __call__(self) -> None:
        """Count a part."""
        self.done += 1
        if self.total is not None:
            self._bar.draw(self.done / self.total, f"{self.done} of {self.total} fits")

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


def given_callbacks(callbacks: Any) -> list[Callable[[Run], Any]]:
    """The callbacks that were given: one, several or none."""
    return [] if callbacks is None else list(as_callbacks(callbacks))
