"""A kill at any moment leaves the old or the new content, never half of one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from projfree import persist

posix = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")

# Saves i, i + 1, ... and says so after each; all parts of one tree hold the same number.
WRITER = """
import sys
import numpy as np
from projfree import persist
path, i = sys.argv[1], int(sys.argv[2])
while True:
    persist.save(path, {"i": i, "a": np.full(20_000, i), "b": [np.full(3, float(i))]}, kind="test")
    print(i, flush=True)
    i += 1
"""

# Forks once for each operation on the file system that a save makes, and kills the child just before it.
SURGEON = """
import os, signal, sys
import numpy as np
from projfree import persist
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.scandir"}
def attempt(path, value, moment):
    child = os.fork()
    if child == 0:
        seen = [0]
        def hook(event, args):
            if event in EVENTS:
                seen[0] += 1
                if seen[0] == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        persist.save(path, {"value": value, "a": np.full(9, value)}, kind="test")
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
path, value, moment, finished = sys.argv[1], 0, 1, False
held = persist.load(path, kind="test")["value"] if persist.exists(path) else None
while not finished:
    finished = attempt(path, value, moment)
    if persist.exists(path):
        tree = persist.load(path, kind="test")
        assert (tree["a"] == tree["value"]).all(), tree
        assert tree["value"] in (held, value), (tree, held, value)
        held = tree["value"]
    else:
        assert held is None, "lost"
    value, moment = value + 1, moment + 1
assert held == value - 1
print(moment - 2, flush=True)
"""


def python(code, *args, **kwargs):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, args)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


@posix
@pytest.mark.parametrize("again", [False, True], ids=["first save", "later save"])
def test_killed_before_each_operation(tmp_path, again):
    path = tmp_path / "state"
    if again:
        # Every attempt then starts from a finished save and from what the killed ones left.
        persist.save(path, {"value": -1, "a": np.full(9, -1)}, kind="test")
    with python(SURGEON, path) as surgeon:
        out, err = surgeon.communicate(timeout=60)
    assert surgeon.returncode == 0, err
    assert int(out) > 5
    assert [p.name for p in path.iterdir()] == ["projfree.npz"]


def kill_at_random(path, rounds, seed):
    rng = np.random.default_rng(seed)
    done = -1
    for _ in range(rounds):
        with python(WRITER, path, done + 1) as writer:
            line = writer.stdout.readline()  # imports are over, and one more save is done
            assert line, writer.stderr.read()
            time.sleep(rng.uniform(0, 0.03))
            writer.send_signal(signal.SIGKILL)
            said = int(([line, *writer.stdout.readlines()])[-1])
        tree = persist.load(path, kind="test")
        assert tree["i"] in (said, said + 1)
        assert (tree["a"] == tree["i"]).all()
        assert (tree["b"][0] == tree["i"]).all()
        done = tree["i"]
    persist.save(path, {}, kind="test")
    assert len([*path.iterdir()]) == 1


@posix
def test_killed_at_random_moments(tmp_path):
    kill_at_random(tmp_path / "state", rounds=4, seed=0)


def test_leftovers_are_ignored_and_removed(tmp_path):
    leftover = tmp_path / ".projfree.npz.0123456789abcdef.partial"
    leftover.write_text("PK")
    assert not persist.exists(tmp_path)
    with pytest.raises(FileNotFoundError, match="no finished save"):
        persist.load(tmp_path, kind="test")
    for value in (1, 2):
        leftover.write_text("PK")
        persist.save(tmp_path, {"value": value}, kind="test")
        assert persist.load(tmp_path, kind="test") == {"value": value}
        assert [path.name for path in tmp_path.iterdir()] == ["projfree.npz"]


def test_readers_see_the_old_or_the_new_content(tmp_path):
    persist.save(tmp_path, {"value": 0, "a": np.zeros(2000)}, kind="test")
    errors = []

    def write(value):
        for _ in range(20):
            with contextlib.suppress(OSError):  # the other writer may have removed the temporary file
                persist.save(tmp_path, {"value": value, "a": np.full(2000, value)}, kind="test")

    def read():
        for _ in range(60):
            tree = persist.load(tmp_path, kind="test")
            if not (tree["a"] == tree["value"]).all():
                errors.append(tree)

    threads = [threading.Thread(target=write, args=(i,)) for i in (1, 2)] + [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
