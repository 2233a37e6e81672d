"""A radius chosen from the data, without any rows held out; and the grid of a path around it."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.deadline import Expired, deadline
from projfree.estimators.balls import own_norm
from projfree.estimators.climbing import climb
from projfree.estimators.left_out import left_out_loss, rows_in, scale_of
from projfree.estimators.many_rows import followed_ridge
from projfree.estimators.ridge_models import DIMENSION, MIDDLE, SHORT, EigenModel, KrylovModel, RidgeModel, quadrature
from projfree.objectives import Objective, QuadraticForm
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.run import Result
from projfree.runtime import single_blas
from projfree.sets.base import ConstraintSet
from projfree.solvers import Direct, plan

log = logging.getLogger(__name__)

#: The default grid goes from the chosen radius divided by the first number to it times the second.
BELOW, ABOVE = 30.0, 30.0
#: The most parameters for which a Hessian is formed where the plan does without one.
FEW_PARAMETERS = 200
#: Quadratic models that are made one after the other of a loss that is not quadratic, and how far apart the penalties
#: are that are tried on each; none where radii are tried afterwards.
STEPS, ROUGH_STEPS = ((), (4,), (2,)), ((), (), ())
#: So many places further a penalty is tried where one is so small that the fit leaves nothing to tell, or that its loss
#: is so many times that at zero: curvatures of few rows know little of the others.
LARGER, NONSENSE = 3, 2.0
#: Another model is made unless the last one has improved the loss by less than this part.
SETTLED = 1e-2
#: With so many rows for each parameter any radius that leaves the fit free is as good, to a hundredth of the loss.
MANY_ROWS = 200.0
#: Tables of so many entries leave little time for trials, and need none with so many rows for each parameter.
LARGE, ENOUGH = 1e6, 40.0
#: With so many rows for each parameter the penalty is the one that a model leads one to expect, without a trial.
SOME_ROWS = 8.0
#: Products with a Hessian may take this many multiplications in all, between the two dimensions of Krylov spaces.
PRODUCTS = 1e7
#: With many rows for each parameter a Krylov space ends where another dimension adds no more than this part to the norm
#: of the answer: what is sought is that norm, and the next model is made at the answer.
LEFT = 0.03
#: Below so many rows the restricted likelihood is what squares go by: it errs less there than cross-validation does.
#: Other losses try penalties on the rows then.
FEW_ROWS = 50
#: Products of so many parameters are over before threads of BLAS have met, which then wait for each other.
SMALL = 500
#: Slopes that are this part of what the sizes of features and residuals allow are rounding.
FLAT = 1e-12
#: The mean square of targets that is so many times what rounding may do to it is known without a look at the rows.
CLEAR = 1e3


@dataclass(frozen=True, eq=False)
class RadiusChoice:
    """A radius, a point near the answer over its ball, and a run over that ball or a smaller one, if there was one."""

    radius: float
    start: Array | None = None
    run: Result | None = None


@dataclass(frozen=True, eq=False)
class Ridge:
    """The best ridge regression: its coefficients, its model of the objective, and H and b where they were formed.

    For squares also the mean squared error as a form, how many intercepts are minimised out of it, and the share of the
    targets' variance that should be left unexplained in new rows.
    """

    w: Array
    model: RidgeModel | None
    H: Array | None = None
    b: Array | None = None
    form: QuadraticForm | None = None
    intercepts: int = 0
    unexplained: float = 1.0


def auto_radius(f: Objective, ball: ConstraintSet) -> float:
    """The radius of `choose_radius`."""
    return choose_radius(f, ball).radius


def radius_grid(f: Objective, ball: ConstraintSet, count: int) -> Array:
    """``count`` radii in geometric progression, from `auto_radius` / 30 to 30 times it."""
    middle = auto_radius(f, ball)
    return np.geomspace(middle / BELOW, middle * ABOVE, count) if count > 1 else np.array([middle])


def choose_radius(f: Objective, ball: ConstraintSet) -> RadiusChoice:
    r"""The radius whose fit is expected to predict rows best that it has not seen.

    First the ridge penalty :math:`\lambda` with the smallest loss of rows left out, see
    `projfree.estimators.left_out`, is found: for squares from the spectrum of the Gram matrix, or from Krylov spaces
    where there are many features; for other losses on quadratic models of the objective, each at the answer of the
    last. The norm of that answer is the radius where the ball is Euclidean. Other balls are fitted at a handful of
    radii around it, and the best by the same measure is chosen. All sums go through the weights, so that a weight of
    two equals a row that is repeated; nothing is drawn at random but signs with a fixed seed.
    """
    with single_blas(math.prod(f.shape) <= SMALL):
        found = _chosen(_smoothed(f) if f.excess else f, ball)
    return replace(found, run=None) if f.excess else found  # that would be one of another function


def _chosen(f: Objective, ball: ConstraintSet) -> RadiusChoice:
    n, form = rows_in(f), _own_form(f, ball)
    if form is not None and form.c > CLEAR * form.errors[0] and _form_slopes(form):
        return _widened(f, ball, _of_form(form, n, _intercepts(f)), n)
    zero = f.evaluate(f.point(np.zeros(f.shape)))
    if not _sloped(f, zero):
        own_norm(ball, np.zeros(f.shape))  # a sentence where the set has no norm
        return RadiusChoice(1.0)
    if form is not None:
        return _widened(f, ball, _of_form(form, n, _intercepts(f)), n)
    return _widened(f, ball, _squares(f, ball, zero, n) if f.quadratic else _others(f, ball, zero, n), n)


def choose_within(limit: float | None, f: Objective, ball: ConstraintSet) -> RadiusChoice:
    """The same, in half of the seconds of a time limit; the best radius until then where they do not suffice."""
    if limit is None:
        return choose_radius(f, ball)
    try:
        with deadline(0.5 * limit):
            return choose_radius(f, ball)
    except Expired:
        log.warning("`radius='auto'` found no radius in half of `time_limit`, and takes 1; raise it, or give a radius.")
        return RadiusChoice(1.0)


def choose_from_form(form: QuadraticForm, ball: ConstraintSet, n: float, intercepts: int) -> RadiusChoice:
    """The same for least squares of which nothing is known but their form and for how many rows it stands."""
    own_norm(ball, form.b)
    if not _form_slopes(form):
        return RadiusChoice(1.0)
    with single_blas(math.prod(form.shape) <= SMALL):
        return _widened(form, ball, _of_form(form, n, intercepts), n)


def _widened(f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, n: float) -> RadiusChoice:
    """From the best ridge regression to the ball that was asked for."""
    from projfree.estimators.around import around

    radius = _usable(own_norm(ball, ridge.w))
    # A parameter costs a part 1 / n of what is unexplained, and no ball could spare more than all of them.
    gains = _tried(f, ball, n / ridge.unexplained)
    return around(f, ball, ridge, radius, n) if gains else RadiusChoice(radius, ridge.w)


def _tried(f: SmoothFunction, ball: ConstraintSet, n: float) -> bool:
    """Whether radii around the norm of the best ridge regression are tried."""
    lp = ball.as_lp(f.shape)
    return not (lp is not None and lp.p == 2.0) and n < _enough(f) * math.prod(f.shape)


def _enough(f: SmoothFunction) -> float:
    """How many rows for each parameter make the norm of the best ridge regression good enough for any ball."""
    return MANY_ROWS if f.workload().stored < LARGE else ENOUGH


def _smoothed(f: Objective) -> Objective:
    """The objective to choose by: a loss with corners is smoothed so widely that most rows have a curvature."""
    value = f.reported.value(f.point(np.zeros(f.shape))) / math.prod(f.outputs)
    return Objective(f.loss.smoothed_for(value), f.data, fit_intercept=f.fit_intercept, form=f.form)


def _sloped(f: Objective, zero: Evaluation) -> bool:
    """Whether there is anything to explain: a slope at zero that is more than rounding."""
    slope = np.abs(zero.slope.gradient).max(initial=0.0)
    size = math.sqrt(scale_of(f, zero.point)[0]) + f.term_size
    return bool(slope > FLAT * size * math.sqrt(f.data.mean_square))


def _usable(radius: float) -> float:
    return radius if 0.0 < radius < np.inf else 1.0


def _form_slopes(form: QuadraticForm) -> bool:
    """Whether the slope of a form at zero is more than rounding."""
    scale = math.sqrt(max(form.c, 0.0) * max(float(np.trace(form.H)), 0.0))
    return bool(np.abs(form.b).max(initial=0.0) > FLAT * scale)


def _own_form(f: Objective, ball: ConstraintSet) -> QuadraticForm | None:
    """The squares as a form, where that is cheap or the fit needs it too."""
    if not (f.quadratic and f.has_quadratic_form):
        return None
    few = f.shape[0] <= FEW_PARAMETERS or isinstance(plan(f, ball, 1e-6).solver, Direct)
    return f.quadratic_form() if few else None


def _intercepts(f: Objective) -> int:
    return math.prod(f.outputs) if f.fit_intercept else 0


def _squares(f: Objective, ball: ConstraintSet, zero: Evaluation, n: float) -> Ridge:
    """By generalised cross-validation, without another look at the rows but for products."""
    size = _affordable(f, MIDDLE if _tried(f, ball, n) else DIMENSION)
    model = _krylov(f, zero.point, -zero.slope.gradient, size)[0]
    f.keep_krylov(model.space, zero.value)  # a fit over the Euclidean ball goes on from it
    best = int(np.argmin(model.squares(zero.value, n, _intercepts(f))))
    return Ridge(model.point(float(model.penalties[best])), model)


def _of_form(form: QuadraticForm, n: float, intercepts: int) -> Ridge:
    model = EigenModel(form.H, form.b)
    errors = model.squares(form.c, n, intercepts)
    best = int(np.argmin(model.likelihood(form.c, n, intercepts) if n < FEW_ROWS else errors))
    unexplained = min(float(errors[best]) / form.c, 1.0)
    return Ridge(model.point(float(model.penalties[best])), model, form.H, form.b, form, intercepts, unexplained)


def _others(f: Objective, ball: ConstraintSet, first: Evaluation, n: float) -> Ridge:
    """On quadratic models, each at the best answer of the last, whose loss is measured on the rows."""
    tried, parameters = _tried(f, ball, n), math.prod(f.shape)
    formed = f.has_hessian and parameters <= FEW_PARAMETERS
    enough = n >= max(SOME_ROWS * parameters, FEW_ROWS)
    if enough and formed:
        w, reached = followed_ridge(f, first, n, fresh=tried)
        if not tried:
            return Ridge(w, reached.model)
        if reached.bend > 0.0:  # the radii around it are tried on a model at the answer
            return Ridge(w, reached.model, reached.bent.H, reached.b)
    many = enough and not tried
    g = first.slope.gradient
    x, best, at = first.point, np.inf, 0.0
    found = Ridge(x.w, None)
    spectrum = None
    # The spectrum of a model that is not formed stays the first one, of the curvatures there.
    bend = 0.0 if formed else scale_of(f, x)[1]
    for steps in ROUGH_STEPS if tried or many else STEPS:
        H, b, model, spectrum = _modelled(f, x, g, spectrum, LEFT if many else 0.0)
        trial = Trial(f, model, n, x.intercept, bend)
        known = at and not many
        near = np.abs(np.log(model.penalties / at)).argmin() if known else model.expected(_cost(f, x, n))
        told = _telling(trial, int(near), len(model.penalties), NONSENSE * abs(first.value))
        k = climb(trial, told, len(model.penalties), steps)
        score, last = trial(k), best
        if not score < last:
            break
        best, at = score, float(model.penalties[k])
        found = Ridge(model.point(at), model, H, b)
        # So few rows that a fit may use them up say too little for another model.
        if score > last - SETTLED * abs(last) or (told != near and n <= x.w.size):
            break
        here = f.evaluate(trial.points[k])
        x, g = here.point, here.slope.gradient
    return found


def _telling(trial: Trial, k: int, count: int, most: float) -> int:
    """The place of a penalty that leaves something to tell, and is no worse than this: here, or a larger one."""
    while not trial(k) <= most and k + LARGER < count:
        k += LARGER
    return k


class Trial:
    r"""The loss of rows left out for each penalty of a model, computed once.

    Parameters
    ----------
    bend : float
        The mean curvature of the rows that the model's spectrum belongs to, zero where it belongs to the point that is
        tried, about. Rows that are fitted well are less curved, so that with the share c of that curvature the degrees
        of freedom are those of :math:`cH`: as of H with the penalty over c.
    """

    def __init__(self, f: Objective, model: RidgeModel, n: float, intercept: Array | None, bend: float = 0.0) -> None:
        self.f, self.model, self.n, self.intercept, self.bend = f, model, n, intercept, bend
        self.known: dict[int, float] = {}
        self.points: dict[int, Point] = {}

    def __call__(self, k: int) -> float:
        if k not in self.known:
            penalty = float(self.model.penalties[k])
            x = self.f.point(self.model.point(penalty), self.intercept)
            here = self.f.evaluate(x, tangent=False)
            self.points[k], self.intercept = here.point, here.intercept
            left = scale_of(self.f, here.point, here.intercept)[1] if self.bend > 0.0 else 0.0
            share = min(left / self.bend, 1.0) if left > 0.0 else 1.0
            self.known[k] = left_out_loss(self.f, x, self.model.freedom(penalty / share), self.n)
        return self.known[k]


def _cost(f: Objective, x: Point, n: float) -> float:
    r"""What a degree of freedom costs, about: the mean of :math:`\ell'^2` over that of :math:`\ell''`, over n."""
    slopes, bend = scale_of(f, x)
    return slopes / bend / n if bend > 0.0 else 0.0


def _modelled(
    f: Objective, x: Point, g: Array, spectrum: tuple[Array, Array] | None, share: float
) -> tuple[Array | None, Array | None, RidgeModel, tuple[Array, Array] | None]:
    """The quadratic that touches f at ``x``: with H and b where there are few parameters."""
    if f.has_hessian and math.prod(f.shape) <= FEW_PARAMETERS:
        H = f.hessian(x)
        b = np.asarray(H @ x.w.ravel()).reshape(f.shape) - g
        return H, b, EigenModel(H, b), None
    return None, None, *_krylov(f, x, -g, _affordable(f, MIDDLE), spectrum, share)


def _affordable(f: Objective, most: int) -> int:
    """The dimension of Krylov spaces: smaller where a product, which is a read of the data, takes long."""
    return int(np.clip(PRODUCTS / f.workload().stored / math.prod(f.outputs), SHORT, most))


def _krylov(
    f: Objective,
    x: Point,
    descent: Array,
    size: int,
    spectrum: tuple[Array, Array] | None = None,
    share: float = 0.0,
) -> tuple[KrylovModel, tuple[Array, Array]]:
    product = f.hessian_at(x).product
    parameters = float(math.prod(f.shape))
    if spectrum is None and f.data.n >= _enough(f) * parameters:  # as of equal curvatures: a bound, close then
        spectrum = np.array([scale_of(f, x)[1] * f.data.mean_square / parameters]), np.array([parameters])
    elif spectrum is None:
        spectrum = quadrature(product, f.shape, size)
    b = descent + product(x.w) if x.w.any() else descent
    return KrylovModel(product, b, size, spectrum, share), spectrum
