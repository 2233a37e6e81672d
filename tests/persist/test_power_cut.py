"""A power cut keeps what was flushed and may lose all else: nothing gets its name before it is on the disk."""

from __future__ import annotations

import os

import numpy as np
import pytest

from projfree import persist

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems do not flush folders")


def test_content_is_on_the_disk_before_it_has_its_name_and_the_name_at_the_end(tmp_path, monkeypatch):
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
