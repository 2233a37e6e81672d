"""Quadratics solved outright: one pass for the Gram matrix, then nothing but the certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.fista import project_descent
from projfree.numerics.group_l1_qp import Columns, minimize_group_l1
from projfree.numerics.lp_quadratic import minimise_quadratic
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet, Structure
from projfree.solvers.base import GapBound, Solver, State
from projfree.solvers.choose import memory_limit


@dataclass(frozen=True, repr=False)
class Direct(Solver):
    r"""Minimise a quadratic over the set exactly; the first step is the last.

    .. math:: x_1 = \arg\min_{w \in C} \tfrac12\langle w, H w\rangle - \langle b, w\rangle

    For the squared loss H and b are sums over rows that one pass forms. The tangent on the rows themselves then shows
    what rounding has left, and one solve with :math:`b = H x - \nabla f(x)` in place of b, at one more read, removes
    it; later steps do the same again. Over l_p balls, and those that coincide with one, the solve is exact (see
    `projfree.numerics.lp_quadratic`), and so it is over simplices and balls of the group lasso (see
    `projfree.numerics.group_l1_qp`); other sets need a quick projection.

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
        if not f.structure.quadratic_form:
            raise TypeError(
                f"Direct needs a quadratic of features, a QuadraticForm or Squared() on a table, got {f.structure}; "
                "use ConstrainedNewton or CorrectivePrimalAveraging."
            )
        if not f.convex:
            raise TypeError("Direct needs a convex objective; use FrankWolfe(ExactLineSearch()).")
        d, limit = f.shape[0], memory_limit()
        if 8 * d * d > limit:
            raise ValueError(
                f"Direct forms a matrix of {d:,} x {d:,} numbers, more than half of the memory ({limit:,} bytes; see "
                "PROJFREE_MEMORY); use HessianFreeNewton or CorrectivePrimalAveraging."
            )
        check_model(ball, f.shape)

    def init(self, f: SmoothFunction, ball: ConstraintSet, start: Point, seed: int) -> State:
        return State(t=0, x=start, seed=seed)

    def step(self, f: SmoothFunction, ball: ConstraintSet, state: State) -> State:
        form, x, also = f.quadratic_form(), state.x, tuple[Point, ...]()
        assert form is not None
        if state.t == 0:
            x, also = f.point(minimise_model(form.H, form.b, ball, x.w), x.intercept), (x,)
        here = f.evaluate(x, also)
        bound = GapBound.of(ball, here)
        done = bound.within_rounding
        if not done:  # solve again, with the gradient of the data itself in place of b
            w, b = here.point.w, form.H @ here.point.w - here.slope.gradient
            new = f.evaluate(f.point(minimise_model(form.H, b, ball, w), here.point.intercept))
            there = GapBound.of(ball, new)
            # Else rounding has won. Gaps come first: were a lower value enough, two points could take turns for ever.
            done = not (there.gap, new.value) < (bound.gap, here.value)
            here, bound = (here, bound) if done else (new, there)
        return replace(state, t=state.t + 1, x=here.point, evaluation=here, bound=bound, gamma=1.0, done=done)


def check_model(ball: ConstraintSet, shape: tuple[int, ...]) -> None:
    """Raise ValueError where quadratic models over this set cannot be minimised quickly."""
    if ball.structure(shape).projection != "fast":
        raise ValueError(
            f"a quadratic model over {ball!r} needs a quick projection, and it has none; use CorrectivePrimalAveraging."
        )


def minimise_model(H: Array, b: Array, ball: ConstraintSet, start: Array) -> Array:
    r"""The minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over the set.

    Exact for l_p balls, the balls that coincide with one, and sums of norms of groups; by accelerated projected
    gradients elsewhere.

    Parameters
    ----------
    H : array of shape (D, D) or (d, d)
        Without negative eigenvalues; acts on all D entries of w in C order, or on each column of d.
    b, start : array
        Of the shape of w.
    """
    every = len(H) == b.size
    structure = ball.structure(b.shape)
    lp, d = structure.lp, structure.weights
    if lp is not None and d is not None and not len(structure.free) and (every or d.ndim == 1 or (d == d[:, :1]).all()):
        by = np.ravel(d) if every or d.ndim == 1 else d[:, 0]
        return np.asarray(minimise_model(H / by / by[:, None], b / d, lp, start * d) / d)
    if structure.group_l1 is not None and len(H) == len(b):
        start, exact = _minimise_group_l1(H, b, structure, start)
        if exact or structure.group_l1.groups is None or expired():
            return start
        # A singular H on curved faces: projected gradients take longer, but need no regular face.
    lp = structure.plain_lp
    if lp is not None:
        shape = (b.size,) if every else b.shape
        first = start.reshape(shape) if start.any() else None
        return minimise_quadratic(H, b.reshape(shape), lp.p, lp.radius, first).w.reshape(b.shape)
    if not every:
        H = np.kron(H, np.eye(b.size // len(b)))
    return project_descent(H, b, ball.project, start)


def _minimise_group_l1(H: Array, b: Array, structure: Structure, start: Array) -> tuple[Array, bool]:
    """The minimiser over an l_1 or group-l_1 ball beside the free features, and whether it is exact.

    Groups need not be neighbours.
    """
    flat, free = structure.group_l1, structure.free
    assert flat is not None
    m = len(b) - len(free)
    kept = np.arange(m) if flat.groups is None else np.argsort(flat.groups, kind="stable")
    order = np.append(np.delete(np.arange(len(b)), free)[kept], free)
    back, own = np.argsort(order), flat.among(kept)
    H, b, start = H[np.ix_(order, order)], b[order], start[order]
    level = own.level((H @ start - b)[:m])
    columns = Columns.of_matrix(H, b.size // len(b))
    found = minimize_group_l1(columns, b, own, start, level, free=len(free), bound=structure.free_bound)
    return found.w[back], found.exact
