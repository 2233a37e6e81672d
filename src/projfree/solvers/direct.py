"""Quadratics solved outright: one pass for the Gram matrix, then nothing but the certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.group_l1_qp import Columns, minimize_group_l1
from projfree.numerics.lp_quadratic import minimise_quadratic
from projfree.numerics.secular import decomposed
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.gram_form import entries
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Known, Solver, State
from projfree.solvers.diagonal import is_diagonal, minimise_diagonal
from projfree.solvers.model import check_model, minimise_model
from projfree.solvers.restoring import member
from projfree.solvers.working_set import FIRST_LEVEL

#: The most features for which a Gram matrix is formed: it takes 3.2 GB.
MOST_FEATURES = 20_000


@dataclass(frozen=True, kw_only=True)
class DirectState(State):
    """A state with the matrix ``H`` of the quadratic, at first None."""

    H: Array | None = field(default=None, metadata=member("..."))

    def consistent(self, f: SmoothFunction, ball: ConstraintSet) -> bool:
        return self.H is None or self.H.shape == _form_shape(f, ball)


@dataclass(frozen=True, repr=False)
class Direct(Solver):
    r"""Minimise a quadratic over the set exactly; the first step is the last.

    .. math:: x_1 = \arg\min_{w \in C} \tfrac12\langle w, H w\rangle - \langle b, w\rangle

    For the squared loss H and b are sums over rows that one pass forms. The tangent on the rows themselves then shows
    what rounding has left, and one solve with :math:`b = H x - \nabla f(x)` in place of b, at one more read, removes
    it; later steps do the same again. Over l_p balls, and those that coincide with one, the solve is exact (see
    `projfree.numerics.lp_quadratic`), and so it is over simplices and balls of the group lasso (see
    `projfree.numerics.group_l1_qp`); other sets need a quick projection. Squares over observed entries of a matrix
    are solved over the Frobenius ball, entry by entry with one multiplier.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Direct, LpBall, Objective, Squared, as_data, minimize
    >>> f = Objective(Squared(), as_data(np.diag([1.0, 2.0, 3.0]), [1.0, 1.0, 1.0]))
    >>> result = minimize(f, LpBall(1.5, radius=0.5), Direct(), tol=1e-12)
    >>> result.w.round(4), result.n_iter
    (array([0.2073, 0.2727, 0.2388]), 1)
    """

    def check(self, f: SmoothFunction, ball: ConstraintSet) -> None:
        super().check(f, ball)
        if is_diagonal(f, ball):
            return
        if not f.has_quadratic_form:
            raise TypeError(
                f"Direct needs a quadratic of features, a QuadraticForm or Squared() on a table, got {f.workload()}; "
                "use ConstrainedNewton or CorrectivePrimalAveraging."
            )
        if not f.convex:
            raise TypeError("Direct needs a convex objective; use FrankWolfe(ExactLineSearch()).")
        if f.shape[0] > MOST_FEATURES:
            raise ValueError(
                f"Direct forms a matrix of {f.shape[0]:,} x {f.shape[0]:,} numbers, and takes at most "
                f"{MOST_FEATURES:,} features; use TrustRegionLanczos or CorrectivePrimalAveraging."
            )
        check_model(ball)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> DirectState:
        return DirectState(t=0, x=start, seed=seed)

    def carry(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> DirectState:
        assert isinstance(state, DirectState)
        return DirectState(t=0, x=state.x, seed=state.seed, H=state.H)  # which does not know the set

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        assert isinstance(state, DirectState)
        if state.H is None:
            H, b = _terms(f, ball)
            return self._refined(f, ball, state, H, _solve(f, ball, H, b, state.x, also=(state.x,)))
        return self._refined(f, ball, state, state.H, f.evaluate(state.x))

    def _refined(
        self, f: SmoothFunction, ball: ConstraintSet, state: DirectState, H: Array, here: Evaluation
    ) -> DirectState:
        """The state after a solve with b corrected by the data's own gradient, if there is anything to gain."""
        known, first, t = Known.of(ball, here), here, state.t + 1
        done = known.exact
        if not done:
            w, g = here.point.w, here.slope.gradient
            slope = H * entries(w) - entries(g) if H.ndim == 1 else H @ w - g
            new = _solve(f, ball, H, slope, here.point)
            there = Known.of(ball, new)
            # Else rounding has won. Gaps come first: were a lower value enough, two points could take turns for ever.
            done = not (there.gap, new.value) < (known.gap, here.value)
            here, known = (here, known) if done else (new, there)
        return state.moved(
            t=t,
            x=here.point,
            H=H,
            evaluation=here,
            found=(*((state.t, start) for start in first.also), (t, here)),
            bound=known.bound if f.convex else -math.inf,
            allowance=known.allowance,
            gap=known.gap,
            gamma=1.0,
            done=done,
        )


def _form_shape(f: SmoothFunction, ball: ConstraintSet) -> tuple[int, ...]:
    """The shape of H, or of its diagonal where it has no more."""
    if not is_diagonal(f, ball):
        return (f.shape[0], f.shape[0])
    return (math.prod(f.shape) if f.pattern is None else f.pattern.count,)


def _terms(f: SmoothFunction, ball: ConstraintSet) -> tuple[Array, Array]:
    """H, or its diagonal where it has no more, and b."""
    if is_diagonal(f, ball):
        terms = f.diagonal_form()
        assert terms is not None
        return terms
    form = f.quadratic_form()
    assert form is not None
    return form.H, form.b


def _solve(
    f: SmoothFunction, ball: ConstraintSet, H: Array, b: Array, near: Point, also: tuple[Point, ...] = ()
) -> Evaluation:
    """The evaluation of f at the minimiser of the quadratic, with the values at further points."""
    if H.ndim == 1:
        lp = ball.as_lp(f.shape)
        assert lp is not None
        x = f.point(minimise_diagonal(f, H, b, lp.radius))
    else:
        x = f.point(minimise_form(ball, H, b, near.w), near.intercept)
    return f.evaluate(x, also)


def minimise_form(ball: ConstraintSet, H: Array, b: Array, start: Array) -> Array:
    """The minimiser of the quadratic over the set; columns share the matrix."""
    scaled = ball.as_scaled_lp(b.shape)
    if scaled is not None and _same_in_columns(scaled[1]):
        inner, d = scaled
        by = d if d.ndim == 1 else d[:, 0]
        w = minimise_form(inner, H / by / by[:, None], b / d, start * d)
        return np.asarray(w / d)
    lp, flat = ball.as_lp(b.shape), ball.as_flat(b.shape)
    if flat is not None:
        return group_l1_minimum(flat, H, b, start, ball.free_features(), ball.free_bound)
    if lp is None:
        return minimise_model(np.kron(H, np.eye(int(np.prod(b.shape[1:])))), b, ball, start)
    first = start if start.any() else None
    return minimise_quadratic(H, b, lp.p, lp.radius, first, decomposed(H) if lp.p == 2.0 else None).w


def group_l1_minimum(flat: FlatBall, H: Array, b: Array, start: Array, free: Array, bound: float) -> Array:
    """The minimiser over an l_1 or group-l_1 ball, whose groups need not be neighbours.

    The ``free`` features lie outside the ball, between ``-bound`` and ``bound``.
    """
    m = len(b) - len(free)
    kept = np.arange(m) if flat.groups is None else np.argsort(flat.groups, kind="stable")
    order = np.append(np.delete(np.arange(len(b)), free)[kept], free)
    back, own = np.argsort(order), flat.among(kept)
    H, b, start = H[np.ix_(order, order)], b[order], start[order]
    level = own.level((H @ start - b)[:m]) * (1.0 if start[:m].any() else FIRST_LEVEL)
    columns = Columns.of_matrix(H, b.size // len(b))
    return minimize_group_l1(columns, b, own, start, level, free=len(free), bound=bound).w[back]


def _same_in_columns(d: Array) -> bool:
    """Whether the scales of all columns agree, so that these still share a matrix."""
    return d.ndim == 1 or bool((d == d[:, :1]).all())
