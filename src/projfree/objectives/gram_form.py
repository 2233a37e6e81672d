"""Least squares after one pass: the mean squared error as a quadratic form."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from projfree.data.gram import Gram
from projfree.objectives.base import SmoothFunction
from projfree.objectives.erm import Objective
from projfree.objectives.perturbed import Perturbed
from projfree.objectives.quadratic import QuadraticForm

# What one pass or one decomposition found, for as long as the objective lives: `path` asks many times.
_FORMS: WeakKeyDictionary[Objective, QuadraticForm] = WeakKeyDictionary()


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
    return QuadraticForm(*gram.quadratic(fit_intercept), errors=gram.errors(fit_intercept))


def is_quadratic(f: SmoothFunction) -> bool:
    """Whether ``f`` is a quadratic of a parameter with features, so that `quadratic_model` gives its form."""
    if isinstance(f, Perturbed):
        return is_quadratic(f.f)
    return isinstance(f, QuadraticForm) or (isinstance(f, Objective) and f.loss.quadratic and f.has_hessian)


def quadratic_model(f: SmoothFunction) -> QuadraticForm:
    """The function as a quadratic form: itself, or the squares over its rows after one pass, which is kept.

    Parameters
    ----------
    f : SmoothFunction
        A `QuadraticForm`, an `Objective` with the squared loss on a table, or either of them perturbed.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Objective, Squared, as_data
    >>> f = Objective(Squared(), as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]))
    >>> form = quadratic_model(f)
    >>> form.value(form.point([1.0])), quadratic_model(f) is form
    (2.0, True)
    """
    if not is_quadratic(f):
        raise TypeError(f"{type(f).__name__} is not a quadratic of features; use CorrectivePrimalAveraging.")
    if isinstance(f, QuadraticForm):
        return f
    if isinstance(f, Perturbed):
        form = quadratic_model(f.f)
        return QuadraticForm(form.H, form.b - f.theta * f.xi, form.c)
    assert isinstance(f, Objective)
    if f not in _FORMS:
        _FORMS[f] = gram_form(f.data.gram(), f.fit_intercept)
    return _FORMS[f]
