"""Seconds are those of the work; what numba compiles on the way is told apart."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pytest
from numba import njit
from numba.core import event
from numba.core.registry import cpu_target

from projfree import BlackBox, LpBall, PrimalAveraging, minimize
from projfree.numerics.compilation import watch


@pytest.fixture
def interruptible():
    """Jobs in the background ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def compiling_box():
    """A function that compiles on its second call, and says how long that took."""
    calls, took = [], []

    def fun(w):
        calls.append(w)
        if len(calls) == 2:
            begun = time.perf_counter()
            njit(lambda a: np.sort(a) @ a)(w)
            took.append(time.perf_counter() - begun)
        return float(w @ w), 2.0 * w

    return BlackBox(fun, 3, smoothness=2.0, convex=True), took


def run(f):
    return minimize(f, LpBall(2, radius=1.0), PrimalAveraging(), start=np.full(3, 0.5), tol=0.0, max_iter=5)


def test_a_run_that_compiles_says_so_and_does_not_count_it(caplog):
    watch()
    f, took = compiling_box()
    with caplog.at_level(logging.INFO, logger="projfree"):
        first, second = run(f), run(f)
    assert 0.0 < first.compile_seconds <= took[0]
    assert first.seconds < 0.5 * took[0]
    assert second.compile_seconds == 0.0
    assert "compiled" in repr(first)
    assert "compiled" not in repr(second)
    assert [record.message.startswith("compiled in") for record in caplog.records].count(True) == 1


def test_without_a_place_for_machine_code_it_is_compiled_all_the_same():
    code = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
import numpy as np, scipy.sparse as sp
from projfree import LpBall, Objective, Squared, WorkingSet, as_data, minimize
X = sp.csr_array(np.eye(6))
result = minimize(Objective(Squared(), as_data(X, np.arange(6.0))), LpBall(1, 3.0), WorkingSet())
assert result.status.converged and result.compile_seconds > 0.0
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_small_problems_compile_nothing():
    code = """
import sys
import numpy as np
from projfree import ConstrainedClassifier, ConstrainedRegressor
X, y = np.random.default_rng(0).standard_normal((200, 10)), np.arange(200) % 3 - 1.0
for p in (1, 1.5, 2, np.inf):
    ConstrainedRegressor(p=p, radius=0.1).fit(X, y)
    ConstrainedClassifier(p=p, radius=0.1).fit(X, y > 0)
ConstrainedRegressor(p=1, alpha=0.1).fit(X, y)
ConstrainedClassifier(norm="group", p=2, q=1, radius=0.1).fit(X, y)
assert "numba" not in sys.modules
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_an_interrupt_while_llvm_calls_python_is_not_dropped(monkeypatch, interruptible):
    watch()
    engine, function = cpu_target.target_context.codegen()._engine._ee, njit(lambda x: 3.0 * x)
    notify, handler = engine._object_cache_notify, signal.getsignal(signal.SIGINT)

    def interrupted(*compiled):
        monkeypatch.undo()
        signal.raise_signal(signal.SIGINT)  # ctypes prints and drops what its callbacks raise
        return notify(*compiled)

    monkeypatch.setattr(engine, "_object_cache_notify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        function(1.0)
    assert signal.getsignal(signal.SIGINT) is handler
    assert function(1.0) == 3.0


def test_an_interrupt_while_numba_is_imported_leaves_it_whole():
    code = """
import builtins, signal
from projfree.numerics.compilation import compiled
signal.signal(signal.SIGINT, signal.default_int_handler)
usual = builtins.__import__

def interrupted(name, *more):
    if name.startswith("numba.core"):
        builtins.__import__ = usual
        signal.raise_signal(signal.SIGINT)
    return usual(name, *more)

builtins.__import__ = interrupted
try:
    compiled()
except KeyboardInterrupt:
    assert compiled()(lambda x: 3.0 * x)(1.0) == 3.0
    print("again")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "again\n", ran.stderr


def test_compilations_of_two_threads_leave_interrupts_as_they_were():
    watch()
    handler, name = signal.getsignal(signal.SIGINT), "numba:compile"

    def elsewhere(call):
        thread = Thread(target=call, args=(name,))
        thread.start()
        thread.join()

    event.start_event(name)
    elsewhere(event.start_event)
    event.end_event(name)
    elsewhere(event.end_event)
    assert signal.getsignal(signal.SIGINT) is handler
