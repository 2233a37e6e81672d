"""A set of your own that is not the ball of a norm: an ellipsoid around a point."""

from dataclasses import dataclass

import numpy as np

from projfree import Objective, Squared, as_data, minimize
from projfree.sets.base import ConstraintSet, slack
from projfree.sets.inputs import finite, like, unit_scale


@dataclass(frozen=True, eq=False)
class Ellipsoid(ConstraintSet):
    r"""All vectors with :math:`\sum_j ((w_j - c_j) / a_j)^2 \le 1`."""

    middle: np.ndarray
    axes: np.ndarray

    def check_shape(self, shape):
        """This set, unlike a norm ball, has points of one shape only."""
        if shape != self.axes.shape:
            raise ValueError(
                f"`Ellipsoid` has points of shape {self.axes.shape}, got {shape}; use as many axes."
            )

    def lmo(self, g):
        c = finite("lmo(g)", g)
        self.check_shape(c.shape)
        u = self.axes * (c / unit_scale(c))  # scaled, so that squares neither overflow nor vanish
        size = np.linalg.norm(u)
        return like(g, self.middle - self.axes * (u / size if size > 0.0 else u))

    def support(self, g):
        c = finite("support(g)", g)
        scale = unit_scale(c)
        return scale * float((c / scale) @ self.middle + np.linalg.norm(self.axes * (c / scale)))

    def contains(self, w, rtol=1e-11):
        size = np.linalg.norm((np.asarray(w, dtype=np.float64) - self.middle) / self.axes)
        return bool(size <= 1.0 + slack(w, rtol))  # points in float32 round more

    def centre(self, shape):
        self.check_shape(shape)
        return self.middle.copy()

    def reach(self, shape):
        return float(np.linalg.norm(self.middle) + self.axes.max())


def main():
    """Minimise squares near an earlier model, with more freedom where less was known."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.standard_normal(100)
    earlier = Ellipsoid(np.array([1.0, 1.5, 1.0]), np.array([0.1, 0.5, 1.0]))
    result = minimize(Objective(Squared(), as_data(X, y)), earlier, tol=1e-6)
    assert result.status.converged
    return result


if __name__ == "__main__":
    print(main())
