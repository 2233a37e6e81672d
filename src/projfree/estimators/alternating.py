r"""Alternating ridge regressions for Schatten-penalised completion: the fast road to a good answer.

With :math:`Y = D_r X D_c = P \Sigma Q^T` and :math:`\sigma^p \le \tfrac p2 s^{p-2}\sigma^2 + \text{const}` the problem

.. math:: \min_{X, b} \sum_i \omega_i\,\ell(X_{r_i c_i} + o_i(b), y_i) + \kappa\|b\|^2
          + \tfrac{2\lambda}{p} \|Y\|_{S_p}^p

has, for :math:`X = L R^T` balanced so that both factors carry :math:`\Sigma^{1/2}`, a majorant in L with the diagonal
ridge :math:`\lambda\,\sigma_j^{p-1} d_i^2` (and likewise in R): each row of L is a regression of its own. A loss other
than squares is majorised by its largest curvature. At a fixed point
:math:`\|\nabla\|_* = 2\lambda \|Y\|_{S_p}^{p-1}`: the answer also minimises over the ball of its own norm, up to the
rank, and the certificate of the convex problem judges that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from projfree.algebra import LowRank, OnPattern, Pattern
from projfree.checks import Array
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared
from projfree.numerics.lp_norm import lp_norm, norming
from projfree.numerics.subspace import spectrum
from projfree.numerics.svd import svd
from projfree.runtime import over_rows

#: Singular values count as at least this part of the largest in the ridge, which p > 1 would let vanish with them.
LEAST = 1e-6


@dataclass(frozen=True)
class Factors:
    """The model ``base + shift + rows_i + cols_j + left_i @ right_j``; ``sigma`` belongs to its weighted matrix."""

    left: Array
    right: Array
    rows: Array
    cols: Array
    shift: float
    base: float
    sigma: Array

    @property
    def matrix(self) -> LowRank:
        """The part inside the ball."""
        return LowRank.of(self.left, self.right)

    @property
    def offsets(self) -> Array:
        """All offsets as one vector: of all, of rows, of columns."""
        return np.concatenate([[self.shift], self.rows, self.cols])

    def norm(self, p: float) -> float:
        """The weighted Schatten norm."""
        return lp_norm(self.sigma, p)


@dataclass(frozen=True, eq=False)
class Alternating:
    """The problem: entries, loss, weights and penalties, all as in the head of this module.

    ``weight`` is empty where every entry counts one; otherwise it has mean one.
    """

    pattern: Pattern
    y: Array
    weight: Array
    loss: Loss
    p: float
    row_weights: Array
    col_weights: Array
    ridge: float
    kinds: tuple[bool, bool, bool]
    base: float

    def begin(self, rank: int, seed: int) -> Factors:
        """Small random factors, and no offsets."""
        (m, n), rng = self.pattern.shape, np.random.default_rng(seed)
        rank = min(rank, m, n)
        right = 0.1 * rng.standard_normal((n, rank))
        return Factors(np.zeros((m, rank)), right, np.zeros(m), np.zeros(n), 0.0, self.base, np.ones(rank))

    def sweep(self, state: Factors, strength: float) -> Factors:
        r"""Rows of the left factor, then of the right one, each with its offsets; balanced after both.

        ``strength`` is :math:`\lambda\sigma_1^{p-1}`, the ridge of the leading component: good ones hardly depend on p.
        """
        for side in (0, 1):
            state = self._centred(self.balanced(self._half(state, strength, side)))
        return state

    def _half(self, state: Factors, strength: float, side: int) -> Factors:
        at = self.pattern
        indptr, indices, order = (at.indptr, at.indices, None) if side == 0 else at.by_column
        other = state.right if side == 0 else state.left
        theirs = (state.cols if side == 0 else state.rows)[indices]
        target, weight = self._surrogate(state)
        target = target - state.base - state.shift
        if order is not None:
            target, weight = target[order], weight[order] if len(weight) else weight
        free = int(self.kinds[1 + side])
        table = np.concatenate([np.ones((len(other), free)), other], axis=1)
        spread = np.maximum(state.sigma / max(float(state.sigma[0]), 1e-300), LEAST) ** (self.p - 1.0)
        ridge = np.concatenate([np.full(free, 0.5 * self.loss.smoothness * self.ridge), strength * spread])
        scale = (self.row_weights if side == 0 else self.col_weights) ** 2
        found = _ridge(indptr, indices, target - theirs, weight, table, ridge, scale, free)
        own, factor = found[:, 0] if free else np.zeros(len(found)), np.ascontiguousarray(found[:, free:])
        return replace(state, left=factor, rows=own) if side == 0 else replace(state, right=factor, cols=own)

    def rows_only(self, state: Factors, strength: float) -> Factors:
        """The left factor and the offsets of rows for a right factor that stays as it is."""
        return self._half(state, strength, 0)

    def _surrogate(self, state: Factors) -> tuple[Array, Array]:
        """Targets and weights of squares that lie above the loss and touch it at the state."""
        if is_squared(self.loss):
            return self.y, self.weight
        u, L = self.predictions(state), self.loss.smoothness
        weight = 0.5 * L * (self.weight if len(self.weight) else np.ones(len(u)))
        return u - self.loss.derivative(u, self.y) / L, weight

    def predictions(self, state: Factors) -> Array:
        """The model at the observed entries."""
        at = self.pattern
        return state.base + state.shift + state.rows[at.rows] + state.cols[at.indices] + state.matrix.on_places(at)

    def _centred(self, state: Factors) -> Factors:
        """The offset of all takes up what rows and columns share, as their ridge wants it."""
        if not self.kinds[0]:
            return state
        shift, parts = state.shift, {}
        for name, on in (("rows", self.kinds[1]), ("cols", self.kinds[2])):
            own = getattr(state, name)
            mean = float(own.mean()) if on else 0.0
            shift, parts[name] = shift + mean, own - mean
        return replace(state, shift=shift, **parts)

    def balanced(self, state: Factors) -> Factors:
        """The same matrix with the root of its weighted singular values in both factors."""
        d, e = self.row_weights[:, None], self.col_weights[:, None]
        q, r = np.linalg.qr(state.left * d)
        o, s = np.linalg.qr(state.right * e)
        u, sigma, vt = svd(r @ s.T)
        root = np.sqrt(sigma)
        return replace(state, left=(q @ u * root) / d, right=(o @ vt.T * root) / e, sigma=sigma)


def _ridge(
    indptr: Array, indices: Array, target: Array, weight: Array, table: Array, ridge: Array, scale: Array, free: int
) -> Array:
    from projfree.numerics.entries_kernels import ridge_rows

    out = np.empty((len(indptr) - 1, table.shape[1]))
    table = np.ascontiguousarray(table)
    given = (indptr, indices, target, weight, table, ridge, scale, free, out)
    over_rows(lambda start, stop: ridge_rows(*given, start, stop), indptr)
    return out


def strongest(problem: Alternating) -> float:
    """The strength from which on the matrix is zero for p = 1, found after a fit of the offsets alone."""
    state = problem.begin(1, 0)
    state = replace(state, left=np.zeros_like(state.left), right=np.zeros_like(state.right), sigma=np.zeros(1))
    for _ in range(5):
        state = problem.sweep(state, 1.0)
    target, weight = problem._surrogate(state)
    residual = (target - problem.predictions(state)) * (weight if len(weight) else 1.0)
    gradient = OnPattern(problem.pattern, residual).scaled(1.0 / problem.row_weights, 1.0 / problem.col_weights)
    found = spectrum(gradient, lambda s: norming(s[None, :], 1.0)[0])
    return max(float(found.values[0]), 1e-300)
