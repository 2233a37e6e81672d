"""`Objective`: the mean of a loss over data, minimised over the intercept."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from projfree.algebra import UNIT, Minorant, Point
from projfree.checks import Array, flag, instance
from projfree.data.base import Data
from projfree.data.gram import largest_eigenvalue
from projfree.data.rows import PER_OUTPUT, SCALARS
from projfree.deadline import expired
from projfree.losses.base import LogLinkLoss, Loss, SmoothedLoss
from projfree.losses.softmax import Softmax
from projfree.losses.squared import is_squared
from projfree.objectives.base import Evaluation, FunctionStructure, Memory, SmoothFunction
from projfree.objectives.hessian import RowHessian
from projfree.objectives.hull import Hull, HullSums, Local
from projfree.objectives.intercept import Intercept, outer
from projfree.objectives.quadratic import QuadraticForm, gram_form
from projfree.objectives.rounding import FEW, Rounding
from projfree.objectives.row_steps import SquaredDifference, Sums, TangentSums, ValueSum


class Objective(SmoothFunction):
    r"""The weighted mean :math:`f(w) = \min_b \sum_i s_i\,\ell((A w)_i + b, y_i)`, or with b = 0.

    Parameters
    ----------
    loss : Loss
        Loss of a row.
    data : Data
        The linear map and the targets, from `as_data`.
    fit_intercept : bool
        Whether to fit an intercept. It is not constrained, and is optimised exactly for convex losses and locally for
        others.

    Notes
    -----
    A tangent costs one pass over X: predictions, residuals and the adjoint are computed block by block. With an
    intercept and a loss that is not quadratic it costs two, because the optimal intercept depends on all predictions;
    for squares the tangent is corrected afterwards, with the mean of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Objective, Squared, as_data
    >>> f = Objective(Squared(), as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]))
    >>> f(f.point([1.0]))
    2.0
    """

    #: Whether values are those of the exact loss, of which `loss` is a smoothed version.
    _exact = False

    def __init__(self, loss: Loss, data: Data, fit_intercept: bool = False) -> None:
        instance("loss", loss, Loss, "Objective(Squared(), as_data(X, y))")
        instance("data", data, Data, "Objective(Squared(), as_data(X, y))")
        self.fit_intercept = flag("fit_intercept", fit_intercept)
        if self.fit_intercept and loss.coupled and type(loss) is not Softmax:
            raise TypeError(
                f"`fit_intercept=True` needs a loss of single outputs, or `Softmax()`: how far those of {loss!r} may "
                "lie apart is not known; leave it out, or give `X` a column of ones."
            )
        self.loss, self.convex, self.data = loss, loss.convex, data.with_targets(loss.targets)
        self.outputs = loss.outputs(self.data.quantile(1.0)[None])
        self.shape, k = data.shape(self.outputs), math.prod(self.outputs)
        self.intercept = Intercept(loss, self.data, self.outputs) if self.fit_intercept else None
        units, floor = data.rounding_units + 2.0 * loss.rounding + FEW + sum(self.outputs), 0.0
        if isinstance(loss, LogLinkLoss):
            floor = float(self.data.with_targets(loss.floor).mean_target().sum())
        rounding = Rounding(loss, self.data, units, floor, self.intercept)
        # A Hessian needs a table of features, because matrix parameters have too many entries. Of the losses that
        # couple outputs, only softmax has a curvature that is known to be a sum of squares over pairs.
        hessian = len(data.shape(())) == 1 and (not loss.coupled or type(loss) is Softmax)
        self.structure = FunctionStructure(
            name=f"{loss!r}{' with intercept' if self.fit_intercept else ''}",
            n=data.n,
            outputs=k,
            quadratic=is_squared(loss),
            hessian=hessian,
            own_rows=not hessian and self.data.column_stats.terms > 0,
            coupled=loss.coupled,
            loss=loss,
            least=loss.lower_bound,
            smoothing_error=loss.smoothing_error * k if isinstance(loss, SmoothedLoss) else 0.0,
            term_size=None if math.isfinite(loss.smoothness) else rounding.floor,
            pattern=getattr(self.data.column_stats.mean, "pattern", None),
            rounding=rounding,
        )
        self.workspace, self._memory = self.data.open(), Memory()
        #: Quantities computed once from the data, such as the Gram matrix, shared by all copies that `open` returns.
        self.shared: dict[str, Any] = {}

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"Objective({self.structure.name}, {self.data.n:,} rows, parameter {shape})"

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
        known = self._memory.recall(self, x, tangent)
        if known is not None and not (also or near):
            return known
        points, held = (x, *also), self.workspace.holds(x)
        if not read and (tangent or not held):
            return Evaluation(x, math.nan)
        b = (None,) * len(points) if self.intercept is None else self.intercept.locate(self.workspace, points, near)
        if tangent:
            packed, g = self.workspace.sweep(TangentSums(self.loss, b), points, keep=keep or self._exact)
            packed, further = np.split(packed, [len(packed) - len(also)])
            value, m, at, rest = self._minorant(packed, g, b[0], near)
            # At a deadline the search for the intercept stops early, so that the value must be recomputed at exit.
            fresh = not (x.of or near or held or self._exact or expired())
            values = [Evaluation(p.alone(c), v) for p, c, v in zip(also, b[1:], further.tolist(), strict=True)]
            found = Evaluation(x.alone(at), value, m, tuple(values), rest=rest, fresh=fresh)
        else:
            found = Evaluation(x.alone(b[0]), float(self.workspace.fold(ValueSum(self.loss, b[0]), (x,))[0]))
        if self._exact or self.structure.smoothing_error:
            found = self._report(found)
        return self._memory.keep(found)

    def _minorant(
        self, packed: Array, g: Any, b: Array | None, near: bool = False
    ) -> tuple[float, Minorant, Array | None, Array | None]:
        """Return value, tangent, intercept and the derivative in the intercept, from the sums of one pass.

        The derivative is None unless ``near`` is set, because the intercept ``b`` is otherwise optimal or has been
        corrected.
        """
        sums = Sums(*packed[:SCALARS].tolist(), *packed[SCALARS:].reshape(PER_OUTPUT, -1))
        at, moved, rest = b, 0.0, None
        stats, rounding = self.data.column_stats, self.structure.rounding
        assert rounding is not None
        if self.intercept is not None and at is not None:
            if self.intercept.searched:
                rest = sums.slope if near else None
            else:  # use centred rows, so that the gradient does not depend on the intercept
                slope = sums.slope.reshape(self.outputs)
                moved = UNIT * rounding.units * stats.row_norm * float(np.add.reduce(np.abs(slope), axis=None))
                at = at + sums.recentre(self.loss.smoothness).reshape(self.outputs)
                g = g - outer(stats.mean, slope)
        constant_error, gradient_error = rounding.of_tangent(sums, at)
        # For squares, errors e of the rows change the tangent by at most the norm of the derivative times e
        # (Cauchy-Schwarz). The errors within the span of the other columns add their squares, with (a + b t)^2 <= 2 a^2
        # + 2 b^2 t^2.
        off, steep = stats.errors, math.sqrt(sums.square)
        constant_error += steep * off.targets + 2.0 * off.targets_left**2
        gradient_error += steep * off.features + moved
        m = Minorant(sums.value - sums.along, g, constant_error, gradient_error, 2.0 * off.features_left**2)
        return sums.value, m, at, rest

    def _report(self, found: Evaluation) -> Evaluation:
        """Add the evaluation of the reported loss to that of a smoothed loss, which is lower by a bounded amount.

        Tangents of the smoothed loss are lower bounds of the reported one as well.
        """
        also = tuple([self._report(each) for each in found.also])
        if self._exact:  # at the optimal intercept of the smoothed loss
            exact = self.workspace.fold(ValueSum(self.loss, found.intercept, exact=True), (found.point,))
            return replace(found, value=float(exact[0]), also=also)
        inner = Evaluation(found.point, found.value + self.structure.smoothing_error, found.tangent)
        return replace(found, also=also, inner=inner)

    @property
    def reported(self) -> Objective:
        """For a smoothed loss the mean of the exact loss; its values cost another computation from predictions.

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
        b = (None,) if self.intercept is None else self.intercept.locate(self.workspace, (x,), near=True)
        packed, g = self.workspace.sample(m, rng).sweep(TangentSums(self.loss, b), (x,))
        return Minorant(-math.inf, self._minorant(packed, g, b[0])[1].gradient)

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None) -> Hull:
        loss, intercept = self.loss, self.intercept
        searched = intercept if intercept is not None and intercept.searched else None

        def look(own: tuple[Point, ...], m: Array, b: Array) -> Local:
            # For squares, use the optimal intercept of each point.
            shifts = None if intercept is None or searched else intercept.locate(self.workspace, own)
            step = HullSums(loss, tuple(m.tolist()), b.reshape(self.outputs) if len(b) else None, shifts)
            return step.local(self.workspace, own)

        def bound() -> float:
            # The variance of the difference of predictions, or its mean square, which is at least the variance.
            shift = searched.mean_prediction(points[1].w - points[0].w) if searched and loss.convex else 0.0
            return smoothness_of(loss) * float(self.workspace.fold(SquaredDifference(shift), points[:2])[0])

        b = None if searched is None else searched.guess(points[0])
        bend = None if is_squared(loss) else bound
        return Hull(self, points, look, bend, gradient=gradient, convex=loss.convex, intercept=b)

    def hessian(self, x: Point, features: Array | None = None) -> RowHessian:
        return RowHessian(self, x, features)

    def quadratic_form(self) -> QuadraticForm | None:
        if self.structure.quadratic_form and "quadratic form" not in self.shared:
            self.workspace.rows_read += self.data.n  # first, because interrupted passes count
            form = gram_form(self.data.gram(), self.fit_intercept, self.data.column_stats.errors)
            self.shared["quadratic form"] = form
        return self.shared.get("quadratic form")

    def smoothness(self) -> float:
        smoothness = smoothness_of(self.loss)
        self.workspace.rows_read += self.data.n if self.data.column_stats.terms else 0
        return smoothness * largest_eigenvalue(self.data, centred=self.fit_intercept and self.convex)

    def fingerprint(self) -> str:
        if "fingerprint" not in self.shared:  # used by each run of a path
            self.shared["fingerprint"] = f"{self.loss!r} intercept={self.fit_intercept} {self.data.fingerprint()}"
        return str(self.shared["fingerprint"])


def smoothness_of(loss: Loss) -> float:
    """Return the smoothness constant of a loss; raise an error that lists alternatives if it has none."""
    if not math.isfinite(loss.smoothness):
        raise ValueError(
            f"{loss!r} has no largest curvature, which this step rule needs; use a solver such as "
            "`ConstrainedNewton()`, or a rule that searches: `Backtracking()` or `ExactLineSearch()` for Frank-Wolfe, "
            "`BacktrackingGradient()` for projected gradients."
        )
    return loss.smoothness
