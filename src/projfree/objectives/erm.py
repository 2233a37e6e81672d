"""`Objective`: the mean of a loss over data, with an intercept that is minimised out."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from projfree.algebra import Minorant, Point
from projfree.checks import Array, flag, instance
from projfree.data.base import Data
from projfree.data.gram import Gram, largest_eigenvalue
from projfree.deadline import expired
from projfree.losses.base import Loss, SmoothedLoss
from projfree.losses.softmax import Softmax
from projfree.losses.squared import is_squared
from projfree.objectives.base import FunctionStructure, SmoothFunction, check_point
from projfree.objectives.evaluation import Evaluation, Memory
from projfree.objectives.hessian import RowHessian
from projfree.objectives.hull import Hull
from projfree.objectives.intercept import Centred, Intercept, Profiled, smoothness_of
from projfree.objectives.quadratic import QuadraticForm, gram_form
from projfree.objectives.row_steps import ValueSum


class Objective(SmoothFunction):
    r"""The weighted mean :math:`f(w) = \min_b \sum_i s_i\,\ell((A w)_i + b, y_i)`, without b if not asked for.

    Parameters
    ----------
    loss : Loss
        The loss of one row.
    data : Data
        The linear map and the targets, from `as_data`.
    fit_intercept : bool
        Whether to fit an intercept, which is not constrained: it is minimised out exactly for convex losses, locally
        for others.

    Notes
    -----
    A tangent costs one read of X: predictions, residuals and the adjoint are formed block by block. With an intercept
    and a loss that is not quadratic it costs two, because the intercept depends on all predictions; for squares it is
    corrected afterwards, through the mean row.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Objective, Squared, as_data
    >>> f = Objective(Squared(), as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]))
    >>> f(f.point([1.0]))
    2.0
    """

    #: Whether values are those of the exact loss, of which this one is a smoothed form.
    _exact = False

    def __init__(self, loss: Loss, data: Data, fit_intercept: bool = False) -> None:
        instance("loss", loss, Loss, "Objective(Squared(), as_data(X, y))")
        instance("data", data, Data, "Objective(Squared(), as_data(X, y))")
        self.fit_intercept, kind = flag("fit_intercept", fit_intercept), Intercept
        if self.fit_intercept and loss.coupled and type(loss) is not Softmax:
            raise TypeError(
                f"`fit_intercept=True` needs a loss of single outputs, or `Softmax()`: how far those of {loss!r} may "
                "lie apart is not known; leave it out, or give `X` a column of ones."
            )
        if self.fit_intercept:
            kind = Centred if is_squared(loss) else Profiled
        self._hold(loss, data, kind)

    def _hold(self, loss: Loss, data: Data, kind: Any) -> None:
        """Take the data in, with targets as the loss wants them and the strategy for the intercept."""
        self.loss, self.convex, self.data = loss, loss.convex, data.with_targets(loss.targets)
        self.outputs = loss.outputs(self.data.quantile(1.0)[None])
        self.shape, k = data.shape(self.outputs), math.prod(self.outputs)
        self.intercept_strategy = strategy = cast("Intercept", kind(loss, self.data, self.outputs))
        # A Hessian needs a table of features, for entries of a matrix have too many parameters; of losses that couple
        # outputs, softmax is the one whose curvature is known to be a sum of squares over pairs.
        hessian = len(data.shape(())) == 1 and (not loss.coupled or type(loss) is Softmax)
        self.structure = FunctionStructure(
            name=f"{loss!r}{strategy.described}",
            n=data.n,
            outputs=k,
            quadratic=is_squared(loss),
            hessian=hessian,
            own_rows=not hessian and self.data.column_stats.terms > 0,
            coupled=loss.coupled,
            loss=loss if strategy.measured else None,  # whoever recomputes it needs the offsets too
            least=loss.lower_bound,  # values are means of losses, and offsets add a penalty
            smoothing_error=loss.smoothing_error * k if isinstance(loss, SmoothedLoss) else 0.0,
            term_size=None if math.isfinite(loss.smoothness) else strategy.rounding.floor,
            pattern=getattr(self.data.column_stats.mean, "pattern", None),
            intercept_shape=None if strategy.constant is None else strategy.constant.shape,
            rounding=strategy.rounding if strategy.measured else None,
        )
        self.workspace, self._memory = self.data.open(), Memory()
        #: What one pass found for good, such as the Gram matrix, shared by all that were opened from this one.
        self.shared: dict[str, Any] = {}

    def open(self) -> Self:
        f = copy(self)
        f.workspace, f._memory = self.data.open(), Memory()
        return f

    @property
    def passes(self) -> float:
        return self.workspace.rows_read / self.data.n

    def evaluate(
        self,
        x: Point,
        also: tuple[Point, ...] = (),
        *,
        tangent: bool = True,
        read: bool = True,
        keep: bool = False,
        near: bool = False,
    ) -> Evaluation:
        check_point(self, x)
        known = None if also or near else self._memory.recall(x, tangent)
        if known is not None:
            return known
        if not read and (tangent or not self.workspace.holds(x)):
            return Evaluation(x, math.nan)
        strategy, workspace, points = self.intercept_strategy, self.workspace, (x, *also)
        alone = tangent and not (x.of or near or workspace.holds(x))
        b = tuple(map(strategy.guess, points)) if near else strategy.locate(workspace, points)
        if tangent:
            found = strategy.tangent(workspace, points, b, keep=keep or self._exact, near=near)
        else:
            found = strategy.value_with(workspace, x, b[0])
        # A search for the intercept ends early at a deadline, which the check at exit has not.
        found = replace(found, fresh=alone and not expired() and not self._exact)
        if self._exact or self.structure.smoothing_error:
            found = self._report(found)
        return self._memory.keep(found)

    def _report(self, found: Evaluation) -> Evaluation:
        """An evaluation of a smoothed loss with that of the reported function, which exceeds it by so much at most.

        Tangents of the smoothed loss lie below the reported one as well.
        """
        also = tuple([self._report(each) for each in found.also])
        if self._exact:  # at the intercept that is best for the smoothed loss
            exact = self.workspace.fold(ValueSum(self.loss, found.intercept, exact=True), (found.point,))
            return replace(found, value=float(exact[0]), also=also)
        inner = Evaluation(found.point, found.value + self.structure.smoothing_error, found.tangent)
        return replace(found, also=also, inner=inner)

    @property
    def reported(self) -> Objective:
        """For a smoothed loss the mean of the exact one, whose values cost one more read of predictions.

        Examples
        --------
        >>> from projfree import Objective, Quantile, as_data
        >>> f = Objective(Quantile(0.5, delta=1.0), as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]))
        >>> x = f.point([1.0])
        >>> f(x), f.reported(x)
        (0.4375, 0.5)
        """
        if not self.structure.smoothing_error:
            return self
        f = self.open()
        f.structure, f._exact = replace(self.structure, smoothing_error=0.0), True
        return f

    def estimate(self, x: Point, m: int, rng: np.random.Generator) -> Minorant:
        strategy, sample = self.intercept_strategy, self.workspace.sample(m, rng)
        return Minorant(-np.inf, strategy.tangent(sample, (x,), (strategy.guess(x),)).slope.gradient)

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None) -> Hull:
        return self.intercept_strategy.hull(self, points, gradient)

    def hessian(self, x: Point, features: Array | None = None) -> RowHessian:
        return RowHessian(self, x, features)

    def located_intercept(self, x: Point) -> Array | None:
        """The intercept at ``x``: the one that was found before, for a convex loss the one that it has, or the best."""
        known = self._memory.recall(x, tangent=False)
        if known is not None:
            return known.intercept
        strategy, near = self.intercept_strategy, self.convex and x.intercept is not None
        return strategy.guess(x) if near else strategy.locate(self.workspace, (x,))[0]

    def quadratic_form(self) -> QuadraticForm | None:
        if self.structure.quadratic_form and "quadratic form" not in self.shared:
            self.workspace.rows_read += self.data.n  # first, for a read that a deadline cuts short counts as well
            self.use_gram(self.data.gram())
        return self.shared.get("quadratic form")

    def use_gram(self, gram: Gram) -> None:
        """Form the quadratic form from moments of the same rows that were added up elsewhere, which saves the pass."""
        self.shared["quadratic form"] = gram_form(gram, self.fit_intercept, self.data.column_stats.errors)

    def smoothness(self) -> float:
        smoothness = smoothness_of(self.loss)
        self.workspace.rows_read += self.data.n if self.data.column_stats.terms else 0
        return smoothness * largest_eigenvalue(self.data, centred=self.fit_intercept and self.convex)

    def fingerprint(self) -> str:
        if "fingerprint" not in self.shared:  # runs of a path need it again and again
            self.shared["fingerprint"] = f"{self.loss!r} intercept={self.fit_intercept} {self.data.fingerprint()}"
        return str(self.shared["fingerprint"])
