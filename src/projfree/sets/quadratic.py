"""Minimisation of convex quadratics over sets, exactly where the set has a solver, else by projected gradients."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.fista import project_descent
from projfree.numerics.group_l1_qp import Columns, minimize_group_l1
from projfree.numerics.lp_quadratic import minimise_quadratic
from projfree.sets.base import ConstraintSet, Structure
from projfree.sets.shifted import Shifted
from projfree.sets.unpenalized import WithUnpenalized

#: Relative threshold below which eigenvalues of the block of free features count as zero.
RCOND = 1e-13


def minimise_model(H: Array, b: Array, ball: ConstraintSet, start: Array) -> Array:
    r"""Return the minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over the set.

    The solution is exact for l_p balls, sets equal to an l_p ball, group-l_1 balls, and translates of these. Other sets
    use accelerated projected gradients.

    Parameters
    ----------
    H : array of shape (D, D) or (d, d)
        Positive semidefinite matrix, applied to the D entries of w in C order, or to each column of d entries.
    b, start : array
        Linear term and start, of the shape of w.
    """
    every = len(H) == b.size
    if isinstance(ball, Shifted):
        offset = ball.offset + np.zeros(b.shape)
        moved = b - (H @ offset.reshape(len(H), -1)).reshape(b.shape)
        return np.asarray(minimise_model(H, moved, ball.ball, start - offset) + offset)
    if isinstance(ball, WithUnpenalized):
        w = _minimise_with_free(H, b, ball, start)
        if np.abs(ball.split(w)[1]).max() <= ball.bound:
            return w
    structure = ball.structure(b.shape)
    lp, d = structure.lp, structure.weights
    if lp is not None and d is not None and not len(structure.free) and (every or d.ndim == 1 or (d == d[:, :1]).all()):
        by = np.ravel(d) if every or d.ndim == 1 else d[:, 0]
        return np.asarray(minimise_model(H / by / by[:, None], b / d, lp, start * d) / d)
    if structure.group_l1 is not None and len(H) == len(b):
        start, exact = _minimise_group_l1(H, b, structure, start)
        if exact or structure.group_l1.groups is None or expired():
            return start
        # H may be singular on a curved face: projected gradients are slower, but do not need a regular system.
    lp = structure.plain_lp
    if lp is not None:
        shape = (b.size,) if every else b.shape
        first = start.reshape(shape) if start.any() else None
        return minimise_quadratic(H, b.reshape(shape), lp.p, lp.radius, first).reshape(b.shape)
    if not every:
        H = np.kron(H, np.eye(b.size // len(b)))
    return project_descent(H, b, ball.project, start)


def _minimise_with_free(H: Array, b: Array, ball: WithUnpenalized, start: Array) -> Array:
    """Return the minimiser without the bound on the free block, by the Schur complement of H.

    Free directions without curvature keep their value in ``start``.
    """
    m = len(H) // len(b)  # entries of H for each row of b
    free = (np.array(ball.free)[:, None] * m + np.arange(m)).ravel()
    kept = np.delete(np.arange(len(H)), free)
    side, x = b.reshape(len(H), -1), start.reshape(len(H), -1)
    inverse = np.linalg.pinv(H[np.ix_(free, free)], rcond=RCOND, hermitian=True)
    response = inverse @ H[np.ix_(free, kept)]
    # The best free block is rest - response @ w for the other entries w.
    rest = x[free] + inverse @ (side[free] - H[np.ix_(free, free)] @ x[free])
    inner_shape = (len(b) - len(ball.free), *b.shape[1:])
    schur = H[np.ix_(kept, kept)] - H[np.ix_(kept, free)] @ response
    slope = (side[kept] - H[np.ix_(kept, free)] @ rest).reshape(inner_shape)
    w = minimise_model(0.5 * (schur + schur.T), slope, ball.ball, x[kept].reshape(inner_shape))
    v = np.empty_like(x)
    v[kept] = w.reshape(len(kept), -1)
    v[free] = rest - response @ v[kept]
    return v.reshape(b.shape)


def _minimise_group_l1(H: Array, b: Array, structure: Structure, start: Array) -> tuple[Array, bool]:
    """Return the minimiser over an l_1 or group-l_1 ball and free features, and whether it is exact.

    The features of a group need not be contiguous.
    """
    flat, free = structure.group_l1, structure.free
    assert flat is not None
    m = len(b) - len(free)
    kept = np.arange(m) if flat.groups is None else np.argsort(flat.groups, kind="stable")
    order = np.append(np.delete(np.arange(len(b)), free)[kept], free)
    back, own = np.argsort(order), flat.among(kept)
    H, start = H[np.ix_(order, order)], start[order]
    slope = H @ start - b[order]
    columns = Columns.of_matrix(H, b.size // len(b))
    found = minimize_group_l1(
        columns, slope, own, start, own.level(slope[:m]), free=len(free), bound=structure.free_bound
    )
    return found.w[back], found.exact
