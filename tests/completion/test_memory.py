"""No dense matrix is ever formed: the whole of it would not fit into the memory that these runs may have."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import numpy as np
from projfree import *
from projfree.algebra import LowRank, OnPattern
from projfree import MatrixCompletion
rng, shape = np.random.default_rng(0), (40_000, 30_000)  # 9.6 GB if dense
rows, cols, y = rng.integers(0, shape[0], 100_000), rng.integers(0, shape[1], 100_000), np.ones(100_000)
f = Objective(Squared(), as_data(Entries(rows, cols, shape), y))
{body}
"""
BODIES = {
    "solvers": """
for solver in (FrankWolfe(), CorrectivePrimalAveraging(), AcceleratedProjectedGradient()):
    result = minimize(f, SchattenBall(1.1, 50.0), solver, max_iter=1)
    assert isinstance(result.w, LowRank) and result.bound <= result.value, solver
result = minimize(f, SchattenBall(2.0, 50.0), FrankWolfe())
assert isinstance(result.w, OnPattern) and result.status.converged
""",
    "estimator": """
model = MatrixCompletion(radius=50.0, rank=3, max_sweeps=2).fit((rows, cols, y))
assert model.bound_ <= model.value_
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux here")
@pytest.mark.parametrize("name", [pytest.param("solvers", marks=pytest.mark.slow), "estimator"])
def test_within_a_limit(name):
    code = SCRIPT.format(body=BODIES[name])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
