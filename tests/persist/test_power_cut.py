"""A power cut keeps what was flushed and may lose all else: nothing gets its name before it is on the disk."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from projfree import persist

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems do not flush folders")


class Disk:
    """What has reached the disk: sizes of files and entries of folders, as they were when they were flushed last."""

    def __init__(self, monkeypatch):
        self.kept = {}
        self.fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self.flush)

    def flush(self, descriptor):
        self.fsync(descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            self.kept[status.st_ino] = {
                name: os.stat(name, dir_fd=descriptor).st_ino for name in os.listdir(descriptor)
            }
        else:
            self.kept[status.st_ino] = status.st_size

    def has(self, path):
        """Whether all of a file, and its name in the folder, would survive."""
        status = os.stat(path)
        return self.kept.get(status.st_ino) == status.st_size and self.names(path)

    def names(self, path):
        """Whether the name in the folder would lead to this file or folder."""
        entries = self.kept.get(os.stat(path.parent).st_ino, {})
        return entries.get(path.name) == os.stat(path).st_ino


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


def save(path, value):
    persist.save(path, {"value": value, "a": np.full(3000, value)}, kind="test")


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch, disk):
    replace, seen = os.replace, []

    def checked(source, target):
        seen.append(source)
        assert disk.kept[os.stat(source).st_ino] == os.stat(source).st_size
        replace(source, target)

    monkeypatch.setattr(os, "replace", checked)
    for value in (1, 2):
        save(tmp_path / "state", value)
        assert disk.has(tmp_path / "state" / "projfree.npz")
    assert len(set(seen)) == 2


def test_a_new_folder_is_on_the_disk_at_the_end(tmp_path, disk):
    save(tmp_path / "state", 1)
    assert disk.names(tmp_path / "state")
