"""A child process finds a pool of its own and the limits of the thread that forked, and never hangs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# A child that hangs is ended by its alarm, so that no test leaves a process behind.
APPLY = """
import os, signal, sys, threading
import numpy as np
from projfree import as_data
from projfree.data import tables
tables.THREADED_BYTES = 0
data = as_data(np.ones((40_000, 3)), np.ones(40_000), threads=2)
def count():
    return len([t for t in threading.enumerate() if t.name.startswith("projfree")])
def right():
    return bool((data.apply(np.ones(3)) == 3.0).all())
assert right() and count()
"""

FORK_WHILE_LIMITED = (
    APPLY
    + """
import scipy.linalg
from threadpoolctl import ThreadpoolController, threadpool_info
from projfree.runtime import single_blas_thread
def blas():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
ThreadpoolController().limit(limits=2, user_api="blas")  # by itself it takes no more than there are cores
assert blas() == {2}
inside, leave = threading.Event(), threading.Event()
def other():
    with single_blas_thread():
        inside.set()
        leave.wait()
threading.Thread(target=other).start()
inside.wait()
assert blas() == {1}
if OWN:
    with single_blas_thread():
        child = os.fork()
        held = blas()
else:
    child, held = os.fork(), {1}
if child == 0:
    signal.alarm(30)
    A = np.ones((300, 300))
    right_limit = held == {1} and blas() == {2}
    os._exit(0 if right_limit and (A @ A == 300).all() and count() == 0 and right() and count() else 1)
assert os.waitpid(child, 0)[1] == 0
assert blas() == {1}
leave.set()
"""
)

# The pool and the limit change all the time in two threads while a third one forks. Neither multiplies matrices: of a
# fork during a product OpenBLAS keeps a lock for ever, in which its next call in the child hangs.
FORK_ANY_TIME = (
    APPLY
    + """
from projfree.runtime import parallel_for, single_blas_thread
stop = threading.Event()
def busy():
    while not stop.is_set():
        with single_blas_thread():
            parallel_for(lambda k: sum(range(1_000)), 8, 2)
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        with single_blas_thread():
            os._exit(0 if right() else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
"""
)

# Another thread holds the lock of an objective: it is inside a sweep.
FORK_IN_A_SWEEP = """
import os, signal, threading
import numpy as np
import scipy.sparse as sp
from projfree import Logistic, Objective, as_data
from projfree.data.rows import Step
data = as_data(sp.csr_array(np.eye(40, 3)), np.tile([-1.0, 1.0], 20))
f = Objective(Logistic(), data)
inside, leave = threading.Event(), threading.Event()
class Waits(Step):
    def block(self, rows, *images):
        inside.set()
        leave.wait(30)
        return None, np.zeros(1)
def other():
    f.workspace.sweep(Waits(), (f.point(np.ones(3)),))
threading.Thread(target=other).start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    same = f(f.point(np.ones(3))) == f.open()(f.point(np.ones(3)))
    os._exit(0 if same and np.allclose(f.data.column_stats.mean, 1 / 40) else 1)
ended = os.waitpid(child, 0)[1]
leave.set()
assert ended == 0
"""


def python(code):
    """Run code in a new process, which fails if it takes a minute."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.parametrize("own", [False, True], ids=["another thread", "both"])
def test_the_limit_of_a_thread_that_the_child_lacks(own):
    python(f"OWN = {own}\n" + FORK_WHILE_LIMITED)


def test_at_any_moment():
    python(FORK_ANY_TIME)


def test_while_another_thread_is_inside_a_sweep():
    python(FORK_IN_A_SWEEP)
