"""One pool and one limit for the whole process: calls nest, overlap and fail without harm."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # its BLAS is a library of its own
from threadpoolctl import threadpool_info, threadpool_limits

from projfree import LpBall, Objective, Squared, as_data, minimize, runtime


def blas():
    """The thread numbers of all BLAS libraries that have threads; some packages bring one without."""
    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {library["num_threads"] for library in found if library.get("threading_layer") != "disabled"}


@pytest.fixture
def two():
    """Two threads for BLAS, whatever the environment says."""
    with threadpool_limits(2, "blas") as limits:
        if blas() != {2}:
            pytest.skip("this BLAS cannot have two threads")
        for library in limits._controller.lib_controllers:
            # Else threadpoolctl lets this thread alone set numbers, and nothing that overlaps could be seen.
            getattr(library, "clear_controlling_thread", lambda force: None)(force=True)
        yield


class TestCores:
    def test_the_variable_lowers_the_number(self, monkeypatch):
        monkeypatch.setattr(runtime.os, "sched_getaffinity", lambda pid: range(8))
        for text, number in {"": 8, "3": 3, "12": 8, "0": 8, "-1": 8, "many": 8, "2,4": 2, " 5 ": 5}.items():
            monkeypatch.setenv("OMP_NUM_THREADS", text)
            assert runtime.default_threads() == number


class TestBlocks:
    @pytest.mark.parametrize("threads", [1, 2, 3, 50, 200])
    @pytest.mark.parametrize("count", [0, 1, 2, 7, 300])
    def test_each_once(self, count, threads):
        seen = np.zeros(count, int)

        def work(k):
            seen[k] += 1

        runtime.parallel_for(work, count, threads)
        assert (seen == 1).all()

    def test_nested_calls_end_where_the_pool_is_full(self, monkeypatch):
        monkeypatch.setattr(runtime, "_pool", ThreadPoolExecutor(2))
        done = []

        def inner(i):
            time.sleep(0.001)
            done.append(i)

        call = threading.Thread(
            target=runtime.parallel_for, args=(lambda k: runtime.parallel_for(inner, 5, 4), 8, 4), daemon=True
        )
        call.start()
        call.join(timeout=20)
        assert not call.is_alive()
        assert sorted(done) == sorted([*range(5)] * 8)

    @pytest.mark.parametrize("threads", [1, 2, 4])
    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, IndexError])
    def test_an_exception_ends_the_rest(self, error, threads):
        seen, busy = [], []

        def work(k):
            busy.append(k)
            time.sleep(0.001)
            seen.append(k)
            busy.remove(k)
            if k == 3:
                raise error("three")

        with pytest.raises(error, match="three"):
            runtime.parallel_for(work, 1000, threads)
        assert len(seen) < 50
        assert not busy  # nothing is at work any more

    def test_an_exception_of_a_helper_is_raised(self):
        mine, both = threading.get_ident(), threading.Barrier(2, timeout=20)

        def work(k):
            both.wait()
            if threading.get_ident() != mine:
                raise ValueError("in a helper")

        with pytest.raises(ValueError, match="in a helper"):
            runtime.parallel_for(work, 2, 2)


class TestSingleBlas:
    def test_nested(self, two):
        with runtime.single_blas_thread():
            with runtime.single_blas_thread(), runtime.single_blas_thread(False):
                assert blas() == {1}
            assert blas() == {1}
        assert blas() == {2}
        with runtime.single_blas_thread(False):
            assert blas() == {2}

    @pytest.mark.parametrize("first_out", [0, 1], ids=["first in, first out", "first in, last out"])
    def test_overlapping(self, two, first_out):
        """The limit holds until the last block ends, also where that is in another thread than the first."""
        inside, leave = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]

        def limited(i):
            with runtime.single_blas_thread():
                inside[i].set()
                leave[i].wait(20)

        threads = [threading.Thread(target=limited, args=(i,)) for i in range(2)]
        for thread, event in zip(threads, inside, strict=True):
            thread.start()
            assert event.wait(20)
        leave[first_out].set()
        threads[first_out].join()
        assert blas() == {1}
        leave[1 - first_out].set()
        threads[1 - first_out].join()
        assert blas() == {2}

    def test_what_somebody_else_sets_inside_stays(self, two):
        with runtime.single_blas_thread():
            threadpool_limits(3, "blas")
        assert blas() == {3}

    def test_overlapping_runs(self, two):
        """Two runs of which the one that began first ends first."""
        rng = np.random.default_rng(0)
        f = Objective(Squared(), as_data(rng.standard_normal((30, 3)), rng.standard_normal(30)))
        inside, began, ended = (threading.Event() for _ in range(3))

        def short(run):
            inside.set()
            return began.wait(20)

        def long(run):
            began.set()
            return ended.wait(20)

        def run(callback):
            minimize(f, LpBall(2, 1.0), tol=0.0, callbacks=callback)

        first, second = (threading.Thread(target=run, args=(callback,)) for callback in (short, long))
        first.start()
        assert inside.wait(20)
        second.start()
        first.join()
        ended.set()
        second.join()
        assert blas() == {2}
