"""`QuadraticForm`: a quadratic function given by its matrix, such as least squares after one pass over the data."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, inner, size
from projfree.checks import Array, all_finite, real_array
from projfree.data.column_stats import EXACT, TableErrors
from projfree.data.gram import Gram
from projfree.objectives.base import CalledFunction, Evaluation, FunctionStructure
from projfree.objectives.hessian import Hessian
from projfree.objectives.hull import Hull, Local
from projfree.objectives.rounding import FEW


class QuadraticForm(CalledFunction):
    r"""The function :math:`f(w) = \tfrac12 \langle w, H w\rangle - \langle b, w\rangle + c`.

    Parameters
    ----------
    H : array of shape (d, d)
        A symmetric matrix. Its eigenvalues are computed once: f is convex if they are non-negative up to rounding; a
        negative eigenvalue within rounding of zero increases the rounding allowance of every bound.
    b : array of shape (d,) or (d, k)
        The linear term, which has the shape of the parameter; H acts on its columns.
    c : float
        The constant.
    errors : pair of float
        Numbers e and k that bound the rounding errors of H, b and c: the exact function differs from this one by at
        most ``e + k |w|^2 / 2``. Bounds are lowered so that they and the gaps hold for the exact function.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import QuadraticForm
    >>> f = QuadraticForm(np.diag([2.0, 4.0]), np.array([2.0, 0.0]))
    >>> f(f.point([1.0, 0.0]))
    -1.0
    """

    #: Means of the rows and the targets if an intercept was eliminated.
    centre: tuple[Array, Array] | None = None

    def __init__(self, H: Any, b: Any, c: float = 0.0, errors: tuple[float, float] = (0.0, 0.0)) -> None:
        self.b = all_finite("b", real_array("b", b)).astype(np.float64)
        H = all_finite("H", real_array("H", H)).astype(np.float64)
        if self.b.ndim not in (1, 2) or H.shape != (len(self.b),) * 2:
            raise ValueError(f"`H` must be square with as many rows as `b`, got {H.shape} and {self.b.shape}.")
        largest = float(np.abs(H).max(initial=0.0))
        if np.abs(H - H.T).max(initial=0.0) > 1e-12 * largest:
            raise ValueError("`H` must be symmetric; pass `(H + H.T) / 2`.")
        self.H, self.c, self.errors = (H + H.T) / 2.0, float(c), errors
        self._norm, outputs = size(self.H), math.prod(self.b.shape[1:])
        structure = FunctionStructure(type(self).__name__, outputs=outputs, quadratic=True, hessian=True)
        super().__init__(self.b.shape, structure)

    def intercept(self, w: Array) -> Array | None:
        """Return the optimal intercept at ``w``; None if the form has no intercept."""
        return None if self.centre is None else np.asarray(self.centre[1] - self.centre[0] @ w)

    @cached_property
    def eigenvalues(self) -> Array:
        """The eigenvalues of H in increasing order."""
        return np.linalg.eigvalsh(self.H)

    @cached_property
    def _floor(self) -> float:
        """The error bound of eigenvalues: a small multiple of d units of roundoff of the largest."""
        return FEW * UNIT * len(self.H) * float(np.abs(self.eigenvalues).max(initial=0.0))

    @cached_property
    def convex(self) -> bool:  # type: ignore[override]  # read-only here: it follows from H
        return bool(self.eigenvalues[0] >= -self._floor)

    def _evaluate(self, x: Point, tangent: bool) -> Evaluation:
        self._calls += 1
        image = self.H @ x.w
        value = inner(0.5 * image - self.b, x.w) + self.c
        length = size(x.w)
        gradient_error = UNIT * (len(self.b) + FEW) * (self._norm * length + size(self.b))
        constant_error = UNIT * (x.w.size + FEW) * (abs(self.c) + self._norm * length**2) + gradient_error * length
        # If the smallest eigenvalue is -s, a tangent exceeds f by at most s |w - x|^2 / 2 <= s |w|^2 + s |x|^2.
        slack = max(0.0, -float(self.eigenvalues[0])) + self._floor
        # Twice the errors of the sums: once for the bound, once for the value.
        constant_error, slack = constant_error + slack * length**2 + 2.0 * self.errors[0], slack + self.errors[1]
        constant = self.c - 0.5 * inner(image, x.w)
        m = Minorant(constant, image - self.b, constant_error, gradient_error, slack)
        return Evaluation(x.alone(None), value, m, fresh=True)

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None) -> Hull:
        def look(own: tuple[Point, ...], m: Array, b: Array) -> Local:
            here, *others = [self.evaluate(p) for p in own]
            g, ways = here.slope.gradient, [p.w - own[0].w for p in own[1:]]
            images = [other.slope.gradient - g for other in others]
            hessian = np.array([[inner(d, image) for image in images] for d in ways])
            return Local(here.value, np.array([inner(g, d) for d in ways]), (hessian + hessian.T) / 2.0)

        return Hull(self, points, look, gradient=gradient, convex=self.convex)

    def hessian(self, x: Point, features: Array | None = None) -> FormHessian:
        return FormHessian(self, features)

    def quadratic_form(self) -> QuadraticForm:
        return self

    def smoothness(self) -> float:
        return float(self.eigenvalues[-1]) + self._floor

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.H.tobytes() + self.b.tobytes() + str(self.c).encode())
        return f"quadratic {self.shape} {digest.hexdigest()[:16]}"


class FormHessian(Hessian):
    """The matrix of a form, which acts on each column of a parameter; each product counts as a pass over it."""

    def __init__(self, f: QuadraticForm, features: Array | None) -> None:
        self._f, self._H = f, f.H if features is None else f.H[np.ix_(features, features)]
        # All outputs share the submatrix of the features.
        self._outputs = f.shape[1:] if features is None else ()

    @cached_property
    def matrix(self) -> Array:  # type: ignore[override]
        return np.kron(self._H, np.eye(math.prod(self._outputs)))

    def times(self, v: Array) -> Array:
        self._f._calls += 1
        return np.asarray(self._H @ v)

    def diagonal(self) -> Array:
        return np.asarray(np.multiply.outer(np.diag(self._H), np.ones(self._outputs)))

    def products(self, points: tuple[Point, ...], others: tuple[Point, ...] = ()) -> Array:
        images = [self.times(p.w) for p in points]
        return np.array([[inner(image, q.w) for q in (*points, *others)] for image in images])


def gram_form(gram: Gram, fit_intercept: bool = False, table_errors: TableErrors = EXACT) -> QuadraticForm:
    """Return the mean squared error of the rows in ``gram`` as a quadratic form, optionally with an intercept.

    Its value at w is that of ``Objective(Squared(), data, fit_intercept)`` up to rounding, and costs O(d^2) for any
    number of rows; ``f.intercept(w)`` is the optimal intercept. The form includes bounds on the rounding errors of its
    sums and on the ``table_errors`` of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import as_data
    >>> f = gram_form(as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]).gram())
    >>> f(f.point([1.0]))
    2.0
    """
    H, b, c = gram.quadratic(fit_intercept)
    (e, k), sizes = gram.errors(fit_intercept), (math.sqrt(max(c, 0.0)), math.sqrt(0.5 * np.trace(H)))
    more_e, more_k = _moved(*sizes, table_errors)
    form = QuadraticForm(H, b, c, (e + more_e, k + more_k))
    form.centre = (gram.mean, gram.mean_target) if fit_intercept else None
    return form


def _moved(Y: float, X: float, off: TableErrors) -> tuple[float, float]:
    r"""Return e and k such that errors of the rows change the form by at most :math:`e + k \|w\|^2 / 2`.

    If Y and X are the root mean squares of targets and rows, residuals are at most Y + X t for :math:`\|w\| = t` and
    change by a = targets + features t, so that their mean square changes by at most 2 (Y + X t) a + a^2, plus the
    square of the errors within the span of the other columns.
    """
    targets, features = off.targets, off.features
    cross = 2.0 * (Y * features + X * targets + targets * features)
    s = Y / X if X and Y else 1.0  # t <= (s + t^2 / s) / 2
    e = targets * (2.0 * Y + targets) + 0.5 * s * cross + 2.0 * off.targets_left**2
    return e, 2.0 * features * (2.0 * X + features) + cross / s + (2.0 * off.features_left) ** 2
