r"""Minimisers of a quadratic plus :math:`\tfrac\lambda2\|w\|^2` for all :math:`\lambda` at once, and their freedom."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy

import numpy as np

from projfree.checks import Array
from projfree.numerics.lanczos import Lanczos
from projfree.numerics.secular import decomposed

#: Eigenvalues below this part of the largest are rounding.
RANK = 1e-12
#: The penalties that are tried: this many a decade, from the first to the last power of ten times the largest
#: curvature.
A_DECADE, LOWEST, HIGHEST = 6, -10, 2
#: The seed of the vector with which traces are estimated, and dimensions of Krylov spaces.
SEED, DIMENSION, MIDDLE, SHORT = 20250101, 40, 8, 5
#: Spectra are even where no curvature is this many times the mean.
EVEN = 3.0


class RidgeModel(ABC):
    """A convex quadratic with ridge penalties.

    Attributes
    ----------
    penalties : ndarray
        In increasing order.
    """

    penalties: Array

    def _spread(self, largest: float) -> None:
        powers = np.arange(LOWEST * A_DECADE, HIGHEST * A_DECADE + 1) / A_DECADE
        self.penalties = max(largest, 1e-300) * 10.0**powers

    @abstractmethod
    def point(self, penalty: float) -> Array:
        """The minimiser."""

    @abstractmethod
    def freedom(self, penalty: float) -> float:
        """The trace of ``(H + penalty)^-1 H``."""

    def expected(self, cost: float) -> int:
        """The place of the penalty at which the value of the quadratic plus ``cost`` times the freedom is smallest."""
        h, energy, nodes, weights = self._parts()
        lam = self.penalties[:, None]
        # In this order, as (h + lam)^2 leaves the range of floats for columns of size 1e150 or 1e-150.
        values = -0.5 * ((1.0 + lam / (h + lam)) * (energy / (h + lam))).sum(axis=1)
        return int(np.argmin(values + cost * (nodes / (nodes + lam)) @ weights))

    @abstractmethod
    def _parts(self) -> tuple[Array, Array, Array, Array]:
        """Eigenvalues with the squares of b along them, and nodes with the weights of the trace."""

    @abstractmethod
    def squares(self, c: float, n: float, intercepts: int) -> Array:
        """Generalised cross-validation for each penalty, where the quadratic plus ``c`` is the mean squared error."""


class EigenModel(RidgeModel):
    """From a matrix and its spectrum; columns of ``b`` may share the matrix."""

    def __init__(self, H: Array, b: Array) -> None:
        self.h, self.V = decomposed(H)
        self.shape, self.columns = b.shape, b.size // len(H)
        self.h = np.where(self.h > RANK * max(float(self.h[-1]), 0.0), self.h, 0.0)
        self.beta = self.V.T @ b.reshape(len(H), -1)
        self._spread(float(self.h[-1]))

    def point(self, penalty: float) -> Array:
        return np.asarray(self.V @ (self.beta / (self.h + penalty)[:, None])).reshape(self.shape)

    def freedom(self, penalty: float) -> float:
        return self.columns * float((self.h / (self.h + penalty)).sum())

    def moved(self, factor: float, w: Array, slope: Array) -> EigenModel:
        """The model with ``factor`` times the matrix that has this slope at ``w``."""
        new = copy(self)
        turned = self.V.T @ np.column_stack([w.reshape(len(self.h), -1), slope.reshape(len(self.h), -1)])
        new.h = factor * self.h
        new.beta = new.h[:, None] * turned[:, : self.columns] - turned[:, self.columns :]
        new._spread(float(new.h[-1]))
        return new

    def _parts(self) -> tuple[Array, Array, Array, Array]:
        return self.h, (self.beta**2).sum(axis=1), self.h, np.full(len(self.h), float(self.columns))

    def squares(self, c: float, n: float, intercepts: int) -> Array:
        # What is left of value and rows is a sum of positive terms: fits which use up all leave no rounding.
        used = self.h > 0.0
        h, energy = self.h[used], 0.5 * (self.beta[used] ** 2).sum(axis=1) / self.h[used]
        outside = max(c - float(energy.sum()), 1e-15 * c)
        left = self.penalties[:, None] / (h + self.penalties[:, None])
        rows = n * self.columns
        free = max(rows - self.columns * len(h) - intercepts, 0.0) + self.columns * left.sum(axis=1)
        return np.asarray((outside + left**2 @ energy) / np.maximum(free / rows, 1e-12) ** 2)

    def likelihood(self, c: float, n: float, intercepts: int) -> Array:
        """The negative logarithm of the restricted likelihood of each penalty as a variance of coefficients."""
        used = self.h > 0.0
        h, energy = self.h[used], 0.5 * (self.beta[used] ** 2).sum(axis=1) / self.h[used]
        outside = max(c - float(energy.sum()), 1e-15 * c)
        spread = 1.0 + h / self.penalties[:, None]
        rows = n * self.columns - intercepts
        return np.asarray(rows * np.log(outside + (1.0 / spread) @ energy) + self.columns * np.log(spread).sum(axis=1))


class KrylovModel(RidgeModel):
    """From products with a matrix: minimisers over a Krylov space, and a trace from another one by quadrature.

    Parameters
    ----------
    product : callable
        With the matrix, of vectors of the shape of ``b``.
    spectrum : pair of ndarray, optional
        Nodes and weights of the trace, from `quadrature`.
    share : float
        The space ends where another dimension adds no more than this part to the norm of the minimiser, if no curvature
        is several times the mean: else a few large ones hide what others have to add.
    """

    def __init__(
        self,
        product: Callable[[Array], Array],
        b: Array,
        size: int,
        spectrum: tuple[Array, Array],
        share: float = 0.0,
    ) -> None:
        even = EVEN * float(spectrum[0] @ spectrum[1]) / b.size
        self.space = space = krylov(product, b, size, share, even)
        self.shape, self.Q, self.length = b.shape, space.Q[: space.size], space.length
        theta, self.Y = ritz(space)
        self.theta, self.spectrum = np.maximum(theta, 0.0), spectrum
        self._spread(max(float(self.theta[-1]) if len(theta) else 0.0, float(spectrum[0].max(initial=0.0))))

    def point(self, penalty: float) -> Array:
        small = self.Y @ (self.Y[0] * self.length / (self.theta + penalty))
        return np.asarray(small @ self.Q).reshape(self.shape)

    def freedom(self, penalty: float) -> float:
        nodes, weights = self.spectrum
        return float(weights @ (nodes / (nodes + penalty)))

    def _parts(self) -> tuple[Array, Array, Array, Array]:
        return self.theta, (self.Y[0] * self.length) ** 2, *self.spectrum

    def squares(self, c: float, n: float, intercepts: int) -> Array:
        rows = n * max(1, intercepts, self.shape[1] if len(self.shape) > 1 else 1)
        small = self.Y[0] * self.length / (self.theta + self.penalties[:, None])
        values = c - self.length * small @ self.Y[0] + 0.5 * small**2 @ self.theta
        nodes, weights = self.spectrum
        used = (nodes / (nodes + self.penalties[:, None])) @ weights + intercepts
        left = np.maximum(1.0 - used / rows, 0.0)
        return np.asarray(np.where(left > 0.01, np.maximum(values, 1e-15 * c) / np.maximum(left, 0.01) ** 2, np.inf))


def krylov(
    product: Callable[[Array], Array], b: Array, size: int, share: float = 0.0, even: float = math.inf
) -> Lanczos:
    """The Krylov space of a matrix that begins at ``b``.

    It ends early where another dimension adds no more than ``share`` to the norm of the minimiser without a penalty,
    and no curvature in it is larger than ``even``.
    """
    space, norm = Lanczos.begun(b.ravel()), 0.0
    for _ in range(min(size, b.size)):
        if space.closed:
            break
        space = space.extended(product(space.Q[-1].reshape(b.shape)).ravel())
        if share > 0.0:
            theta, Y = ritz(space)
            if not theta[-1] > 0.0:  # no curvature, as of Huber's loss where all residuals are large
                continue
            last, norm = norm, float(np.linalg.norm(Y[0] / np.maximum(theta, RANK * theta[-1])))
            if norm <= (1.0 + share) * last and theta[-1] <= even:
                break
    return space


def ritz(space: Lanczos) -> tuple[Array, Array]:
    """The spectral decomposition of the matrix within the space."""
    T = np.diag(space.alpha) + np.diag(space.beta[:-1], 1) + np.diag(space.beta[:-1], -1)
    theta, Y = np.linalg.eigh(T)
    return theta, Y


def quadrature(product: Callable[[Array], Array], shape: tuple[int, ...], size: int) -> tuple[Array, Array]:
    r"""Nodes and weights with :math:`\mathrm{tr}\,g(H) \approx \sum_j \tau_j g(\theta_j)`, from one vector of signs.

    Golub and von Matt, "Generalized cross-validation for large-scale problems", JCGS 6 (1997).
    """
    signs = np.random.default_rng(SEED).choice([-1.0, 1.0], size=shape)
    space = krylov(product, signs, size)
    theta, Y = ritz(space)
    return np.maximum(theta, 0.0), math.prod(shape) * Y[0] ** 2
