"""Least squares after one pass: the mean squared error as a quadratic form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import Structured, zeros
from projfree.checks import Array
from projfree.data.base import TableErrors
from projfree.data.gram import Gram
from projfree.objectives.quadratic import QuadraticForm

if TYPE_CHECKING:
    from projfree.objectives.erm import Objective


#: Of rows that are what they stand for.
EXACT = TableErrors()


def gram_form(gram: Gram, fit_intercept: bool = False, table_errors: TableErrors = EXACT) -> QuadraticForm:
    r"""The mean squared error of the rows in ``gram``, with the intercept minimised out if asked.

    Its value at w is that of ``Objective(Squared(), data, fit_intercept)`` up to rounding, at O(d^2) a look however
    many rows there were; ``gram.intercept(w)`` is the intercept. A certificate is one for the form: its numbers are
    sums over rows that were rounded once.

    Parameters
    ----------
    gram : Gram
        From ``data.gram()``, possibly with rows added.
    fit_intercept : bool
        Whether an unconstrained offset is minimised out.
    table_errors : TableErrors
        Those of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import as_data
    >>> data = as_data(np.array([[1.0], [2.0]]), [1.0, 4.0])
    >>> f = gram_form(data.gram())
    >>> f.value(f.point([1.0]))
    2.0
    """
    H, b, c = gram.quadratic(fit_intercept)
    (e, k), sizes = gram.errors(fit_intercept), (math.sqrt(max(c, 0.0)), math.sqrt(0.5 * np.trace(H)))
    more_e, more_k = _moved(*sizes, table_errors)
    return QuadraticForm.of_sums(H, b, c, (e + more_e, k + more_k))


def form_of(f: Objective) -> QuadraticForm:
    """The squares over the rows of ``f`` as a quadratic form, after one pass, which is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Objective, Squared, as_data
    >>> f = Objective(Squared(), as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]))
    >>> form = f.quadratic_form()
    >>> form.value(form.point([1.0])), f.quadratic_form() is form
    (2.0, True)
    """
    if "quadratic form" not in f.shared:
        f.workspace.meter.rows += f.data.n  # first, for a read that a deadline cuts short counts as well
        f.shared["quadratic form"] = gram_form(f.data.gram(), f.fit_intercept, f.data.table_errors)
    form: QuadraticForm = f.shared["quadratic form"]
    return form


def _moved(Y: float, X: float, off: TableErrors) -> tuple[float, float]:
    r"""Numbers e and k such that errors of the rows move the form by at most :math:`e + k \|w\|^2 / 2`.

    With Y and X the root mean squares of targets and rows, residuals are at most Y + X t at :math:`\|w\| = t` and move
    by a = targets + features t, so that their mean square moves by at most 2 (Y + X t) a + a^2, and by the square of
    what is left of other columns.
    """
    targets, features = off.targets, off.features
    cross = 2.0 * (Y * features + X * targets + targets * features)
    s = Y / X if X and Y else 1.0  # t <= (s + t^2 / s) / 2
    e = targets * (2.0 * Y + targets) + 0.5 * s * cross + 2.0 * off.targets_left**2
    return e, 2.0 * features * (2.0 * X + features) + cross / s + 4.0 * off.features_left**2


def know_form(f: Objective, gram: Gram) -> None:
    """Give f its quadratic form from moments of the same rows that were added up elsewhere, which saves the pass."""
    f.shared["quadratic form"] = gram_form(gram, f.fit_intercept, f.data.table_errors)


def diagonal_of(f: Objective) -> tuple[Array, Array]:
    """The curvature of each observed entry of a matrix, and b; one read."""
    h = f.loss.smoothness * entries(f.data.mean_row())
    return h, -entries(f.minorant(f.point(zeros(f.shape))).gradient)


def entries(w: Any) -> Array:
    """The entries of a matrix as a vector, those on the pattern where there is one."""
    return w.on.values if isinstance(w, Structured) and w.on is not None else np.ravel(w)
