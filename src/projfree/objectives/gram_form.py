"""Least squares after one pass: the mean squared error as a quadratic form."""

from __future__ import annotations

from projfree.data.gram import Gram
from projfree.objectives.quadratic import QuadraticForm


def gram_form(gram: Gram, fit_intercept: bool = False) -> QuadraticForm:
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

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import as_data
    >>> data = as_data(np.array([[1.0], [2.0]]), [1.0, 4.0])
    >>> f = gram_form(data.gram())
    >>> f.value(f.point([1.0]))
    2.0
    """
    return QuadraticForm(*gram.quadratic(fit_intercept))
