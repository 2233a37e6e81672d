"""A kill at any moment leaves the old or the new content, never half of one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from projfree import persist

posix = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")

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


@posix
@pytest.mark.parametrize("again", [False, True], ids=["first save", "later save"])
def test_killed_before_each_operation(tmp_path, again):
    path = tmp_path / "state"
    if again:
        # Every attempt then starts from a finished save and from what the killed ones left.
        persist.save(path, {"value": -1, "a": np.full(9, -1)}, kind="test")
    surgeon = [sys.executable, "-W", "ignore", "-c", SURGEON, str(path)]
    done = subprocess.run(surgeon, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
    assert [p.name for p in path.iterdir()] == ["projfree.npz"]


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


@pytest.mark.skipif(os.name != "posix", reason="other systems do not flush folders")
def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """A power cut keeps what was flushed and may lose all else; the name is flushed at the end."""
    fsync, replace, events = os.fsync, os.replace, []

    def flush(descriptor):
        fsync(descriptor)
        status = os.fstat(descriptor)
        events.append((status.st_ino, status.st_size))

    def move(source, target):
        status = os.stat(source)
        assert (status.st_ino, status.st_size) in events, "all of it is on the disk"
        replace(source, target)
        events.append("moved")

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", move)
    for value in (1, 2):
        events.clear()
        persist.save(tmp_path / "state", {"value": value, "a": np.full(3000, value)}, kind="test")
        assert events.count("moved") == 1
        after = [inode for inode, _ in events[events.index("moved") + 1 :]]
        assert (tmp_path / "state").stat().st_ino in after, "the name in the folder"
        assert tmp_path.stat().st_ino in after, "the folder in its own"
