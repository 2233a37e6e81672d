"""A process that checkpoints is killed without warning; another one goes on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from solvers.catalogue import problem, solver

from projfree import Checkpoint, LpBall, minimize, persist

# Runs for ever, saves after every iteration, and says so.
WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from solvers.catalogue import problem, solver
from projfree import Checkpoint, LpBall, minimize
def tell(run):
    print(run.iteration, flush=True)
minimize(problem(sys.argv[3]), LpBall(1.5, 1.0), solver(sys.argv[4]), tol=0.0, max_iter=10**9,
         callbacks=[Checkpoint(sys.argv[2], 1), tell])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize(("case", "name"), [("logistic, intercept", "PA"), ("biweight", "PG, single")])
def test_kill_and_resume(case, name, tmp_path):
    tests = os.path.dirname(os.path.dirname(__file__))
    folder = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, tests, str(folder), case, name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    while (line := child.stdout.readline()) not in ("6\n", ""):
        pass
    child.send_signal(signal.SIGKILL)
    _, err = child.communicate()
    assert line == "6\n", err
    assert child.returncode == -signal.SIGKILL

    reached = persist.load(folder, kind="projfree checkpoint")["state"]["t"]
    assert reached >= 6
    settings = {"tol": 0.0, "max_iter": reached + 3}
    resumed = minimize(
        problem(case), LpBall(1.5, 1.0), solver(name), state=folder, callbacks=[Checkpoint(folder, 1)], **settings
    )
    whole = minimize(
        problem(case), LpBall(1.5, 1.0), solver(name), callbacks=[Checkpoint(tmp_path / "whole", 1)], **settings
    )
    np.testing.assert_array_equal(resumed.w, whole.w)
    for column in ("passes", "value", "bound", "gap", "gamma"):
        np.testing.assert_array_equal(resumed.trace[column], whole.trace[column])
    assert (resumed.value, resumed.bound, resumed.n_passes) == (whole.value, whole.bound, whole.n_passes)
