"""Callbacks of scikit-learn, which are called between the iterations of a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from projfree.run import Run

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]  # the one of the two that exists
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


__all__ = ["Bridge", "CallbackSupportMixin", "context_of", "with_callbacks"]


def context_of(model: Any, subtasks: int) -> Any:
    """The context of a fit that begins, with its callbacks set up; None where nobody looks at it.

    Somebody does where callbacks are set, or where the fit is a task of a search that has some.
    """
    held = vars(model)
    looked_at = "_skl_callbacks" in held or "_parent_callback_ctx" in held
    return model._init_callback_context(max_subtasks=subtasks) if looked_at else None


class Bridge:
    """Tells the callbacks of scikit-learn about each iteration; ends the run where one asks for it.

    Parameters
    ----------
    model, context
        The estimator and the context of its fit.
    attributes : callable
        ``attributes(run)``: what makes a copy of the estimator ready to predict as of now; asked for only where a
        callback looks at it, since it may cost a pass.
    given : dict
        X, y and metadata of the fit.
    """

    def __init__(self, model: Any, context: Any, attributes: Callable[[Run], dict[str, Any]], given: Any) -> None:
        self.model, self.context, self.attributes, self.given = model, context, attributes, given

    def __call__(self, run: Run) -> bool:
        step = self.context.subcontext(task_name="iteration")
        ready = {"estimator": self.model, **self.given}
        step.call_on_fit_task_begin(**ready)
        return bool(step.call_on_fit_task_end(**ready, reconstruction_attributes=lambda: self.attributes(run)))
