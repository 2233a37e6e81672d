"""The numbers that the plan's rules look at."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from projfree import Entries, LpBall, Objective, SchattenBall, Squared, as_data
from projfree.solvers.auto import Problem


def test_the_plan_counts_the_numbers_that_a_read_meets():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    sparse = sp.csr_array(np.where(X > 1.0, X, 0.0))
    tables = {"dense": X, "single": X.astype(np.float32), "sparse": sparse}
    sizes = {name: Problem(Objective(Squared(), as_data(A, y)), LpBall(2, 1.0), 4.0).size for name, A in tables.items()}
    assert sizes == {"dense": 240.0, "single": 240.0, "sparse": float(sparse.nnz)}
    view = Objective(Squared(), as_data(sparse, y, scale=np.full(6, 2.0)))
    assert Problem(view, LpBall(2, 1.0), 4.0).size == sparse.nnz
    entries = as_data(Entries([0, 1], [1, 0], (3, 2)), [1.0, 2.0])
    assert Problem(Objective(Squared(), entries), SchattenBall(1.5, 1.0), 4.0).size == 6.0
