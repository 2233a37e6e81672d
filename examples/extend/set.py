"""A set of your own: the hull of all vectors with k entries of one size and no others."""

from dataclasses import dataclass

import numpy as np

from projfree import Objective, Squared, as_data, minimize
from projfree.sets.base import NormBall, Structure
from projfree.sets.inputs import finite, like


@dataclass(frozen=True)
class KSparseBall(NormBall):
    r"""All arrays with :math:`\max(\|w\|_\infty, \|w\|_1 / k) \le r`.

    Its vertices have k entries of size r. The dual norm is the sum of the k largest entries.
    """

    k: int
    radius: float

    def structure(self, shape):
        """Say what solvers can exploit: `lmo` returns one of finitely many vertices."""
        return Structure(polytope=True, absolute=True)

    def lmo(self, g):
        c = finite("lmo(g)", g)  # as float64, or a sentence about what is not finite
        v = np.zeros(c.size)
        # A stable sort, so that ties are broken in the same way every time.
        places = np.argsort(-np.abs(c).ravel(), kind="stable")[: self.k]
        v[places] = -self.radius * np.sign(c.ravel()[places])
        return like(g, v.reshape(c.shape))  # in the precision of g

    def norm(self, w):
        size = np.abs(np.asarray(w, dtype=np.float64))
        return max(float(size.max()), float(size.sum()) / self.k)

    def dual_norm(self, g):
        size = np.sort(np.abs(np.asarray(g, dtype=np.float64)).ravel())
        return float(size[-self.k :].sum())

    def reach(self, shape):
        return self.radius * float(np.sqrt(min(self.k, int(np.prod(shape)))))


def main():
    """Minimise squares over the ball; the plan finds a method for polytopes by itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 30))
    y = X[:, :4].sum(axis=1) + 0.1 * rng.standard_normal(100)
    result = minimize(Objective(Squared(), as_data(X, y)), KSparseBall(4, radius=0.8), tol=1e-8)
    assert result.status.converged
    return result


if __name__ == "__main__":
    print(main())
