"""`Objective`: the mean of a loss over data, with an intercept that is minimised out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from projfree.algebra import Minorant, Pattern, Point, is_frozen, zeros
from projfree.checks import Array, flag, instance
from projfree.data.base import Data
from projfree.deadline import expired
from projfree.losses.base import Loss
from projfree.losses.softmax import Softmax
from projfree.losses.squared import is_squared
from projfree.objectives.base import SmoothFunction, rows_at
from projfree.objectives.curvature import bend, curvature, shared_curvature
from projfree.objectives.evaluation import Bend, Evaluation, Memory
from projfree.objectives.gram_form import diagonal_of, form_of
from projfree.objectives.hull import Hull
from projfree.objectives.intercepts import Centred, Intercept, NoIntercept, Profiled
from projfree.objectives.quadratic import QuadraticForm
from projfree.objectives.rounding import Rounding, SteepRounding
from projfree.objectives.row_steps import DiagonalCurvatures
from projfree.objectives.workload import Workload

if TYPE_CHECKING:
    from projfree.numerics.group_l1_qp import Columns
    from projfree.objectives.hessian_products import HessianProducts
    from projfree.sets.base import ConstraintSet

FORMS = ("auto", "gram", "data")


class Objective(SmoothFunction):
    r"""The weighted mean :math:`f(w) = \min_b \sum_i s_i\,\ell((A w)_i + b, y_i)`, without b if not asked for.

    Parameters
    ----------
    loss : Loss
        The loss of one row.
    data : Data
        The linear map and the targets, from `as_data`.
    fit_intercept : bool
        Whether an unconstrained offset is minimised out: exactly for convex losses, locally for others.
    form : {"auto", "gram", "data"}
        For the squared loss, whether the plan may go through the Gram matrix: one pass in all, then O(d^2) an
        iteration. "gram" asks for it, "data" rules it out, "auto" leaves it to the plan.

    Notes
    -----
    A tangent costs one read of X: images, residuals and the adjoint are formed block by block. With an intercept and a
    loss that is not quadratic it costs two, because the intercept depends on the whole image; for squares it is
    corrected afterwards, through the mean row.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Objective, Squared, as_data
    >>> f = Objective(Squared(), as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]))
    >>> f.value(f.point([1.0]))
    2.0
    """

    def __init__(self, loss: Loss, data: Data, fit_intercept: bool = False, form: str = "auto") -> None:
        instance("loss", loss, Loss, "Objective(Squared(), as_data(X, y))")
        instance("data", data, Data, "Objective(Squared(), as_data(X, y))")
        if form not in FORMS:
            raise ValueError(f"`form` must be one of {', '.join(map(repr, FORMS))}, got {form!r}.")
        if form == "gram" and not (is_squared(loss) and len(data.shape(())) == 1):
            raise ValueError(
                f'`form="gram"` needs the squared loss on a table of features, got {loss!r}; leave it out.'
            )
        self.form, self.fit_intercept = form, flag("fit_intercept", fit_intercept)
        kind: type[Intercept] = NoIntercept
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
        self.loss, self.convex, self.quadratic, self.rows = loss, loss.convex, is_squared(loss), data.n
        self.data = data.with_targets(loss.targets)
        self.outputs = self.data.outputs(loss.outputs)
        self.shape = data.shape(self.outputs)
        self.excess = loss.excess * math.prod(self.outputs)
        self.intercept_strategy: Intercept = kind(loss, self.data, self.outputs)
        self.workspace, self._memory = self.data.open(), Memory()
        #: What one pass found for good, such as the Gram matrix, shared by all that were opened from this one.
        self.shared: dict[str, Any] = {}

    def open(self) -> Self:
        f = self.alike()
        f.workspace, f._memory = self.data.open(), Memory()
        return f

    def reopened(self, work: int) -> Self:
        f = self.open()
        f.workspace.meter.rows = work  # late compilation looks at all that was read
        return f

    @property
    def intercept_shape(self) -> tuple[int, ...] | None:
        constant = self.intercept_strategy.constant
        return None if constant is None else constant.shape

    @property
    def work(self) -> int:
        return self.workspace.meter.rows

    @property
    def pass_work(self) -> int:
        return self.data.n

    def knows(self, x: Point) -> bool:
        return x.handle in self._memory or self.workspace.holds(x)

    def evaluate(
        self, x: Point, also: tuple[Point, ...] = (), *, tangent: bool = True, keep: bool = False
    ) -> Evaluation:
        self.check_point(x)
        known = None if also else self._memory.recall(x, tangent)
        if known is not None:
            return known
        if not tangent:
            return self._memory.keep(self._stated(self.intercept_strategy.value(self.workspace, x)))
        alone = not (x.of or also or self.workspace.holds(x))
        found = self._stated(self.intercept_strategy.evaluate(self.workspace, x, also, keep=keep))
        # A search for the intercept ends early at a deadline, which the check at exit has not.
        return self._memory.keep(found, recomputed=alone and not expired())

    def recomputed(self, x: Point) -> Evaluation | None:
        # A subclass may say something else about a point than what is remembered here, and whoever makes a point of an
        # array of his own may have written to it since.
        same = type(self).evaluate is Objective.evaluate and is_frozen(x.w)
        return self._memory.recomputed(x) if same else None

    def evaluate_near(self, x: Point) -> Evaluation:
        if not (self.convex and isinstance(self.intercept_strategy, Profiled) and self._has_intercept(x)):
            return self.evaluate(x, keep=True)
        self.check_point(x)
        return self._memory.keep(self._stated(self.intercept_strategy.near(self.workspace, x)))

    def _has_intercept(self, x: Point) -> bool:
        """Whether a point has an intercept that may be one of this function."""
        return x.intercept is not None and x.intercept.shape == self.outputs

    def _stated(self, found: Evaluation) -> Evaluation:
        """An evaluation with what the reported function says: for a smoothed loss, that it exceeds it by so much."""
        if not self.excess:
            return found
        also = tuple(self._stated(each) for each in found.also)
        above = Evaluation(found.point, found.value + self.excess, found.tangent)
        return replace(found, also=also, inner=above)

    @property
    def reported(self) -> Objective:
        from projfree.objectives.unsmoothed import Unsmoothed

        return Unsmoothed(self) if self.excess else self

    def recheck(self, w: Any, intercept: Any, z: Any, z_intercept: Any) -> tuple[Evaluation, Evaluation]:
        """The value at ``w`` and the tangent at ``z``, in one read.

        Intercepts are as given; for squares that of ``z`` is moved to where it is best.
        """
        return self.intercept_strategy.recheck(self.data.open(), (self.point(z, z_intercept), self.point(w, intercept)))

    def intercept_reach(self, b: Array | None, largest: float) -> float:
        return self.intercept_strategy.reach(b, largest)

    def intercept_fits(self, b: Array, largest: float) -> bool:
        return self.intercept_strategy.fits(b, largest)

    def rounding(self, *, fine: bool = False) -> Rounding | None:
        """How far values and bounds move where the rows are summed in another way; a fine one reads the columns."""
        if not self.intercept_strategy.measured:
            return None
        data, columns, deviations = self.data, None, None
        if fine and data.products:
            columns = data.column_sizes()
            self.workspace.meter.rows += data.n
            if isinstance(self.intercept_strategy, Centred):
                deviations = data.column_deviation(0.0)
                self.workspace.meter.rows += data.n
        loss, units, floor = self.loss, self.intercept_strategy.units, self.intercept_strategy.floor
        kind = Rounding if math.isfinite(loss.smoothness) else SteepRounding
        return kind(data.products, units, loss.smoothness, data, columns, loss.steepness, floor, deviations)

    def reported_value(self, found: Evaluation) -> float:
        value, x = found.value, found.point
        if not self.convex:  # nothing is proved about it
            return value
        for fine in (False, True):
            rounding = self.rounding(fine=fine)
            hidden = value if rounding is None else rounding.value(value, x.w, x.intercept)
            if value < 0.0 or hidden <= value:
                return value
        return hidden

    def estimate(self, x: Point, m: int, rng: np.random.Generator) -> Minorant:
        return Minorant(-np.inf, self.intercept_strategy.estimate(self.workspace.sampled(m, rng), x))

    def reference(self, ball: ConstraintSet) -> Any:
        # Exponentials at a centre far from zero are so large that any value would be small beside them.
        return super().reference(ball) if math.isfinite(self.loss.smoothness) else zeros(self.shape)

    @property
    def term_size(self) -> float:
        return 0.0 if math.isfinite(self.loss.smoothness) else self.intercept_strategy.floor

    def centred_intercept(self, w: Array) -> Array | None:
        """The intercept of the squared loss at ``w``, None where there is none; no pass."""
        return self.intercept_strategy.at(w) if isinstance(self.intercept_strategy, Centred) else None

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None, tilt: Array | None = None) -> Hull:
        return self.intercept_strategy.hull(self.workspace, points, gradient, tilt)

    def hessian(self, x: Point) -> Array:
        return curvature(self.intercept_strategy, self.workspace, x, self._located(x))

    def bend(self, x: Point) -> Bend:
        if not (self.convex and isinstance(self.intercept_strategy, Profiled)):
            return Bend(self.hessian(x))
        b = x.intercept if self._has_intercept(x) else self._located(x)
        return bend(self.intercept_strategy, self.workspace, x, b)

    def rough_bend(self, x: Point, m: int, rng: np.random.Generator) -> Bend:
        part = self.alike()
        part.workspace = self.workspace.sampled(m, rng)
        return part.bend(x)

    def hessian_among(self, x: Point, features: Array, places: Array | None = None) -> Array:
        b = self._located(x)
        if is_squared(self.loss):
            return shared_curvature(self.intercept_strategy, self.workspace, x, b, features, places)
        return rows_at(
            curvature(self.intercept_strategy, self.workspace, x, b, features), places, math.prod(self.outputs)
        )

    def hessian_columns(self, x: Point, features: Array) -> Columns | None:
        from projfree.numerics.group_l1_qp import MOST_FACTORIZED, weighted_columns

        b, free = self._located(x), self.intercept_strategy.constant is not None
        exact = self.loss.coupled and len(features) * math.prod(self.outputs) <= MOST_FACTORIZED
        table = None if exact or not self.has_hessian else self.data.feature_columns(features, centred=free)
        h = None
        if table is not None:
            h = self.workspace.row_residuals(DiagonalCurvatures(self.loss, 0.0 if b is None else b), x)
        if table is None or h is None:
            return None
        h = h.reshape(len(h), -1)
        return weighted_columns(*table, h[:, :1] if self.quadratic else h, math.prod(self.outputs), intercept=free)

    def _located(self, x: Point) -> Array | None:
        """The intercept at ``x``, from memory where it was found before."""
        known = self._memory.recall(x, tangent=False)
        return self.intercept_strategy.locate(self.workspace, (x,))[0] if known is None else known.intercept

    def hessian_at(self, x: Point) -> HessianProducts:
        from projfree.objectives.hessian_products import RowProducts

        return RowProducts(self.intercept_strategy, self.workspace, x)

    @property
    def has_hessian(self) -> bool:
        # A table of features, for entries of a matrix have too many parameters; of losses that couple outputs, softmax
        # is the one whose curvature is known to be a sum of squares over pairs.
        return len(self.data.shape(())) == 1 and (not self.loss.coupled or type(self.loss) is Softmax)

    def curvature_among(self, x: Point, points: tuple[Point, ...], others: tuple[Point, ...] = ()) -> Array:
        from projfree.objectives.among import curvature_among

        return curvature_among(self.intercept_strategy, self.workspace, x, self._located(x), points, others)

    def quadratic_form(self) -> QuadraticForm | None:
        return form_of(self) if self.has_quadratic_form else None

    @property
    def has_quadratic_form(self) -> bool:
        return is_squared(self.loss) and self.has_hessian

    def diagonal_form(self) -> tuple[Array, Array] | None:
        return diagonal_of(self) if self.has_diagonal_form else None

    @property
    def has_diagonal_form(self) -> bool:
        return is_squared(self.loss) and self.intercept_strategy.constant is None and self.data.diagonal

    def workload(self) -> Workload:
        rows, outputs = float(self.data.n * self.shape[0]), math.prod(self.outputs)
        return Workload(
            name=f"{self.loss!r}{self.intercept_strategy.described}",
            outputs=outputs,
            stored=rows if self.data.stored is None else max(1.0, float(self.data.stored)),
            measured=self.intercept_strategy.measured,
            own_rows=not self.has_hessian and not self.data.diagonal,
            coupled=self.loss.coupled,
            searches=isinstance(self.intercept_strategy, Profiled),
            data=type(self.data).__name__ if self.intercept_strategy.measured else "",
            form=self.form,
            round_numbers=self.data.round_numbers,
            copied=self.data.copied(outputs),
        )

    @property
    def least(self) -> float:
        return self.loss.least  # values are means of losses, and offsets add a penalty

    @property
    def row_loss(self) -> Loss | None:
        return self.loss

    def smoothness(self) -> float:
        if not math.isfinite(self.loss.smoothness):
            return self.intercept_strategy.steepest()
        self.workspace.meter.rows += 0 if self.data.diagonal else self.data.n
        return self.loss.smoothness * self.data.smoothness(centred=self.fit_intercept and self.convex)

    @property
    def pattern(self) -> Pattern | None:
        return self.data.pattern

    def fingerprint(self) -> str:
        if "fingerprint" not in self.shared:  # runs of a path ask for it again and again
            self.shared["fingerprint"] = f"{self.loss!r} intercept={self.fit_intercept} {self.data.fingerprint()}"
        found: str = self.shared["fingerprint"]
        return found
