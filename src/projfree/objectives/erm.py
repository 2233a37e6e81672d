"""`Objective`: the mean of a loss over data, with an intercept that is minimised out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from projfree.algebra import UNIT, Image, Minorant, Pattern, Point, Source, is_structured
from projfree.checks import Array, instance
from projfree.data import blocks
from projfree.data.base import Data
from projfree.data.image_value import can_sum, image_value, slope_sums
from projfree.data.spare import Spare
from projfree.losses.base import Loss
from projfree.objectives.base import SmoothFunction
from projfree.objectives.curvature import curvature
from projfree.objectives.gram_form import diagonal_of, form_of
from projfree.objectives.hull import Hull
from projfree.objectives.image_hull import ImageHull, SquaresHull
from projfree.objectives.intercept import no_minimum, profile
from projfree.objectives.quadratic import QuadraticForm
from projfree.objectives.rounding import Rounding
from projfree.objectives.tangent import Beside, Sums, TangentKernel, weigh
from projfree.objectives.workload import Workload

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
    A tangent costs one read of X: the image of the one new vector, the residual and the adjoint are formed block by
    block. With an intercept and a loss that is not quadratic it costs two, because the intercept depends on the
    whole image; for squares it is corrected afterwards, through the mean row.

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
        if form == "gram" and not (loss.quadratic and len(data.shape(())) == 1):
            raise ValueError(
                f'`form="gram"` needs the squared loss on a table of features, got {loss!r}; leave it out.'
            )
        self.form = form
        self.loss, self.data, self.fit_intercept = loss, data, bool(fit_intercept)
        self.y = loss.targets(data.y)
        self.outputs = loss.outputs(self.y)
        self.shape, self.rows, self.convex = (
            data.shape(self.outputs),
            data.n,
            loss.convex,
        )
        self.quadratic = loss.quadratic
        self._spare = Spare()
        self.constant_intercept: Array | None = None
        if self.fit_intercept:
            self.constant_intercept = self._constant_intercept()

    def _constant_intercept(self) -> Array:
        """The intercept at w = 0, where every search for an intercept starts."""
        if self.loss.labels:
            self._check_classes()
        u = np.zeros((self.data.n, *self.outputs))
        return self.profiled(u, self._first_guess())

    def _check_classes(self) -> None:
        """Refuse targets whose intercept has no finite minimum: each output needs every class, with some weight."""
        counted = self.y if self.data.weight is None else self.y[self.data.weight > 0]
        needed = self.outputs[0] if self.loss.coupled else 2
        for column in counted.reshape(len(counted), -1).T:
            if len(np.unique(column)) < needed:
                raise no_minimum(column)

    def _first_guess(self) -> Array | None:
        # A regression loss that is not convex has its minimum among the targets: begin at their median.
        return None if self.loss.labels else np.median(self.y, axis=0)

    def point(self, w: Any, intercept: Any = None) -> Point:
        x = super().point(w, intercept)
        if not x.w.any():  # the image of zero needs no pass
            x.image.settle(np.zeros((self.data.n, *self.outputs)))
        return x

    @property
    def work(self) -> int:
        return self.data.meter.rows

    @property
    def pass_work(self) -> int:
        return self.data.n

    def value(self, x: Point) -> float:
        if x.value is None and self.constant_intercept is None and can_sum(self.loss, self.data, self.outputs):
            x.value = self._image_value(x)
        if x.value is None:
            u = self.settled(x)
            b = self._intercept(x, u)
            losses = self.loss.value(u if b is None else u + b, self.y)
            x.value = float(np.sum(weigh(losses, self.data.weights(slice(None)))))
        return x.value

    def _image_value(self, x: Point) -> float:
        """The value from the image in compiled code, which mixes a new image with an old one on the way."""
        if not x.settled or not x.image.terms:
            self.settled(x)
        ((source, c),) = x.image.folded().items()
        parts = source.parts
        if parts is None or len(parts) > 2 or c != 1.0:
            assert source.image is not None
            parts = [(c, source.image)]
        whole = len(parts) == 1 and parts[0][0] == 1.0
        mixed = None if whole else self._spare.empty((self.data.n, *self.outputs))
        value = image_value(self.loss, self.data, self.y, None, parts, mixed)
        if mixed is not None and c == 1.0:
            source.image = mixed  # for all mixtures with it
        elif mixed is not None:
            x.image.settle(mixed)
        return value

    def settled(self, x: Point) -> Array:
        """The image of ``x``; costs one read if part of it is pending."""
        if not x.settled:
            self._pass(x, None, adjoint=False)
        base, scale = self._known(x)
        assert base is not None
        image = base if scale == 1.0 else scale * base
        x.image.settle(image)
        return image

    def _known(self, x: Point) -> tuple[Array | None, float]:
        """The known part of the image as an array and its factor; zero where all terms of a mixture have cancelled."""
        if not x.image.terms:
            return np.zeros((self.data.n, *self.outputs)), 1.0
        known = [(source.image, c) for source, c in x.image.folded().items() if source.image is not None]
        return known[0] if known else (None, 1.0)

    def _intercept(self, x: Point, u: Array) -> Array | None:
        if self.constant_intercept is None:
            return None
        if x.intercept is None:
            x.anchored(self.profiled(u, self.hint(x)))
        return x.intercept

    def profiled(self, u: Array, start: Array | float | None) -> Array:
        """The intercept of the image ``u``, searched for from ``start``."""
        sums = None if self.outputs else slope_sums(self.loss, self.data, self.y)
        return profile(self.loss, u, self.y, self.data.weights(slice(None)), start, sums)

    def hint(self, x: Point) -> Array | float | None:
        """Where the search for the intercept of ``x`` starts."""
        start = x.hint()
        return self.constant_intercept if start is None else start

    def minorant(self, x: Point) -> Minorant:
        if self.constant_intercept is None:
            return self._tangent(x, None)
        if self.loss.quadratic:
            return self._tangent(x, self._centring(x.w))
        return self._tangent(x, self._intercept(x, self.settled(x)))

    def recheck(
        self, w: Array, intercept: Array | None, z: Array, z_intercept: Array | None
    ) -> tuple[Point, Point, Minorant]:
        """The points ``w`` and ``z`` with their values, and the tangent at ``z``, in one read.

        Intercepts are as given; for squares that of ``z`` is moved to where it is best.
        """
        at, tangent_at = self.point(w), self.point(z)
        # With the coefficient zero w joins the vectors that the pass meets, but not the image of z.
        tangent_at.image = Image({**tangent_at.image.terms, **dict.fromkeys(at.image.terms, 0.0)})
        if self.constant_intercept is not None and z_intercept is None:
            m = self.minorant(tangent_at)  # finds the intercept itself: a tangent without one bounds another function
        else:
            m = self._tangent(tangent_at, z_intercept)
        if intercept is not None:
            at.anchored(intercept)
        self.value(at)
        return at, tangent_at, m

    def _units(self) -> float:
        """Each sum over rows and each loss err by at most this many units of rounding of their absolute terms."""
        return self.data.summation() + 2.0 * self.loss.rounding + 8.0 + sum(self.outputs)

    def rounding(self, *, fine: bool = False) -> Rounding:
        """How far values and bounds move where the rows are summed in another way; a fine one reads the columns."""
        data, columns = self.data, None
        if fine and data.products:
            columns = data.column_sizes()
        root = float(np.sqrt(data.mean_square))
        return Rounding(data.products, self._units(), self.loss.smoothness, root, data.row_norm, columns)

    def reported_value(self, x: Point) -> float:
        value = self.value(x)
        if value < 0.0 or self.rounding().value(value, x.w, x.intercept) <= value:
            return value
        return max(value, self.rounding(fine=True).value(value, x.w, x.intercept))

    def intercept_reach(self, b: Array | None, largest: float) -> float:
        """How far ``b`` is from the best intercepts where predictions are up to ``largest``, added over outputs."""
        if b is None or self.constant_intercept is None:
            return 0.0
        apart, factor = self._spread()
        return float(np.abs(b - self.constant_intercept).sum()) + b.size * (apart + factor * largest)

    def _tangent(self, x: Point, b: Array | None) -> Minorant:
        packed, g = self._pass(x, b, adjoint=True)
        assert g is not None
        sums, units = Sums.unpack(packed), self._units()
        constant_error, gradient_error = sums.errors(units, self.data.mean_square, self.data.row_norm)
        if b is not None:
            if self.loss.quadratic:
                slope = sums.slope.reshape(self.outputs)
                g = g - _outer(self.data.mean_row(), slope)
                gradient_error += UNIT * units * self.data.row_norm * float(np.abs(slope).sum())
                b = b + sums.recentre(self.loss.smoothness).reshape(self.outputs)
            x.anchored(b)
            constant_part, gradient_part = self._intercept_error(sums, b, units)
            constant_error, gradient_error = (
                constant_error + constant_part,
                gradient_error + gradient_part,
            )
        x.value = sums.value
        return Minorant(sums.value - sums.along, g, constant_error, gradient_error)

    def _intercept_error(self, sums: Sums, b: Array, units: float) -> tuple[float, float]:
        """What the derivative in b, zero only up to rounding, may cost: its size times how far b may have to go."""
        rest = np.abs(sums.slope) + UNIT * units * sums.slope_size
        away = np.abs(np.ravel(b - self.constant_intercept)) if self.constant_intercept is not None else 0.0
        apart, factor = self._spread()
        return float(np.sum(rest * (away + apart))), factor * self.data.row_norm * float(rest.sum())

    def _spread(self) -> tuple[float, float]:
        r"""``(a, c)`` such that optimal intercepts of feasible w differ from that of w = 0 by at most a + c max|u|.

        For an elementwise convex loss the derivative increases, so the intercept moves by at most ``max|u|``. For
        softmax, comparing the class frequencies that both must reproduce gives a range of ``2 max|u|`` and the
        logarithm of the rarest frequency.
        """
        if not self.loss.coupled or self.constant_intercept is None:
            return 0.0, 1.0
        spread = float(np.ptp(self.constant_intercept)) + float(np.log(len(self.constant_intercept)))
        return spread, 2.0

    def _pass(self, x: Point, b: Array | None, *, adjoint: bool) -> tuple[Array, Array | None]:
        """One read of the data: meets the pending vectors of ``x`` and, if asked, forms the tangent's sums."""
        pending, (base, scale) = x.image.pending(), self._known(x)
        shape = (self.data.n, *self.outputs)
        met = self._spare.empty((len(pending), *shape))
        beside = self._beside(x, pending) if adjoint else None
        # The image of a single vector is its own whole, and so is one that was known before. A mixture with a point
        # beside it is left in parts, since it is that point that goes on.
        single = len(pending) == 1 and base is None and pending[0][1] == 1.0
        in_parts = single or beside is not None
        whole = met[0] if in_parts else self._spare.empty(shape) if pending or base is None or scale != 1.0 else base
        kernel = TangentKernel(
            loss=self.loss,
            y=self.y,
            b=b,
            data=self.data,
            base=base,
            scale=scale,
            coefficients=np.array([c for _, c in pending]),
            met=met,
            whole=whole,
            keep=whole is not base and not in_parts,
            tangent=adjoint,
            beside=beside,
        )
        vectors = [source.vector for source, _ in pending if source.vector is not None]
        sums, g = self.data.accumulate(vectors, kernel)
        # Only now, so that an interrupted pass leaves every source as it was.
        for (source, _), image in zip(pending, kernel.met, strict=True):
            source.image = image
        if beside is None:
            x.image.settle(whole)
            return sums, g
        assert x.beside is not None
        x.beside.image.settle(beside.image)
        x.beside.value, x.beside = float(sums[-1]), None
        return sums[:-1], g

    def _beside(self, x: Point, pending: list[tuple[Source, float]]) -> Beside | None:
        """The point beside ``x``, where a compiled pass completes its image."""
        other = x.beside
        if other is None or other.settled or self.outputs or self.constant_intercept is not None:
            return None
        met, terms = [source for source, _ in pending], other.image.folded()
        known = [source for source in x.image.folded() if source.known]
        if not set(terms) <= {*met, *known} or not self.loss.native or self.data.nbytes < blocks.NATIVE_BYTES:
            return None
        coefficients = np.array([terms.get(source, 0.0) for source in met])
        return Beside(sum(terms.get(source, 0.0) for source in known), coefficients, self._spare.empty((self.data.n,)))

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        return self.data.sample(m, rng)

    def estimate(self, x: Point, rows: Array) -> Minorant:
        part, y = self.data.subset(rows), self.y[rows]
        start = self.hint(x) if self.constant_intercept is not None else 0.0
        centred = self.constant_intercept is not None and self.loss.quadratic
        if centred:  # with the means of all rows, which keeps the estimate unbiased
            start = self._centring(x.w)

        def kernel(rows: slice, u: Array) -> tuple[Array, Array]:
            r = weigh(self.loss.derivative(u + start, y[rows]), part.weights(rows))
            return r, r.sum(axis=0)

        slope, g = part.accumulate([x.w], kernel)
        assert g is not None
        return Minorant(
            -np.inf,
            g - _outer(self.data.mean_row(), slope) if centred else g,
        )

    def centred_intercept(self, w: Array) -> Array | None:
        """The intercept of the squared loss at ``w``, None where there is none; no pass."""
        return None if self.constant_intercept is None else self._centring(w)

    def _centring(self, w: Array) -> Array:
        """The intercept of the squared loss, from the mean row of A: O(d), no pass."""
        row = self.data.mean_row()
        assert self.constant_intercept is not None
        along: Any = row.inner(w) if is_structured(row) else np.tensordot(row, w, axes=row.ndim)
        return np.asarray(self.constant_intercept - along)

    def hull(
        self,
        points: tuple[Point, ...],
        gradient: Array | None = None,
        tilt: Array | None = None,
    ) -> Hull:
        kind = SquaresHull if self.loss.quadratic else ImageHull
        return kind(self, points, gradient, tilt)

    def hessian(self, x: Point) -> Array:
        u = self.settled(x)
        b = self._intercept(x, u)
        full = u if b is None else u + b
        return curvature(self.loss, self.data, full, self.y, intercept=b is not None)

    @property
    def has_hessian(self) -> bool:
        return len(self.data.shape(())) == 1  # a table of features; entries of a matrix have too many parameters

    def quadratic_form(self) -> QuadraticForm | None:
        return form_of(self) if self.has_quadratic_form else None

    @property
    def has_quadratic_form(self) -> bool:
        return self.loss.quadratic and self.has_hessian

    def diagonal_form(self) -> tuple[Array, Array] | None:
        return diagonal_of(self) if self.has_diagonal_form else None

    @property
    def has_diagonal_form(self) -> bool:
        return self.loss.quadratic and not self.fit_intercept and self.data.diagonal

    def workload(self) -> Workload:
        rows, outputs = float(self.data.n * self.shape[0]), math.prod(self.outputs)
        return Workload(
            name=f"{self.loss!r}{' with intercept' if self.fit_intercept else ''}",
            outputs=outputs,
            stored=rows if self.data.stored is None else max(1.0, float(self.data.stored)),
            measured=True,
            own_rows=not self.has_hessian and not self.data.diagonal,
            coupled=self.loss.coupled,
            searches=self.fit_intercept and not self.loss.quadratic,
            data=type(self.data).__name__,
            form=self.form,
        )

    @property
    def row_loss(self) -> Loss:
        return self.loss

    def smoothness(self) -> float:
        return self.loss.smoothness * self.data.smoothness(centred=self.fit_intercept and self.convex)

    @property
    def pattern(self) -> Pattern | None:
        return self.data.pattern

    def fingerprint(self) -> str:
        return f"{self.loss!r} intercept={self.fit_intercept} {self.data.fingerprint()}"


def _outer(row: Array, slope: Array) -> Array:
    """The outer product of a parameter with one output and the slopes of all outputs."""
    outer: Array = row * float(slope) if is_structured(row) else np.multiply.outer(row, slope)
    return outer
