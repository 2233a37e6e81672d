"""A data backend of your own: a table of separate columns, such as a column store gives."""

import numpy as np

from projfree import LpBall, Objective, Squared, minimize
from projfree.data.local import LocalData, checked_targets, checked_weights

ROWS = 1024  # of a block


class ColumnTable(LocalData):
    """Columns of equal length, never joined into one table; `run` works block by block."""

    def __init__(self, columns, y, sample_weight=None):
        self.store = [np.asarray(column) for column in columns]
        self.n = len(self.store[0])
        self.y, self.weight = checked_targets(y, self.n), checked_weights(sample_weight, self.n)
        self.measure()

    def tables(self, nbytes=1 << 20):
        """The rows in blocks of float64, in order."""
        for start in range(0, self.n, ROWS):
            rows = slice(start, min(start + ROWS, self.n))
            yield rows, np.column_stack([column[rows] for column in self.store]).astype(np.float64)

    def run(self, work):
        """One read: hand `work` the images of its vectors on each block, and add up its answers."""
        total = adjoint = None
        for rows, part in self.tables():
            residual, sums = work(rows, *[part @ w for w in work.vectors])
            total = sums if total is None else total + sums
            if residual is not None:
                adjoint = part.T @ residual if adjoint is None else adjoint + part.T @ residual
        return total, adjoint

    def take(self, rows, weight):
        part = self.shallow_copy()
        part.store = [column[rows] for column in self.store]
        part.n, part.y, part.weight = len(rows), self.y[rows], weight
        return part

    def shape(self, outputs):
        return (len(self.store), *outputs)

    @property
    def rounding_units(self):
        """By how many units of rounding a sum over rows may err, in any order within a block."""
        return float(min(self.n, ROWS) + -(-self.n // ROWS) + 12)


def main():
    """Fit a model to columns of different types."""
    rng = np.random.default_rng(0)
    columns = [
        rng.standard_normal(3000),
        rng.integers(0, 5, 3000),
        rng.uniform(size=3000).astype(np.float32),
    ]
    y = columns[0] - 0.5 * columns[1] + 0.1 * rng.standard_normal(3000)
    f = Objective(Squared(), ColumnTable(columns, y), fit_intercept=True)
    result = minimize(f, LpBall(1.5, radius=3.0), tol=1e-8)
    assert result.status.converged
    return result


if __name__ == "__main__":
    print(main())
