"""One sentence for each thing that can be wrong, and nobody's files are touched."""

from __future__ import annotations

import enum
import os

import numpy as np
import pytest

from projfree import persist

TREE = {"w": np.arange(4.0), "t": 3}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "state"
    persist.save(path, TREE, kind="checkpoint")
    return path


def files(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_missing(tmp_path):
    assert not persist.exists(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"no finished save in '.*none'"):
        persist.load(tmp_path / "none", kind="checkpoint")


def test_path_inside_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileNotFoundError, match="no finished save"):
        persist.load(tmp_path / "file", kind="checkpoint")


def test_other_kind(saved):
    with pytest.raises(ValueError, match=r"state' holds a 'checkpoint', not a 'model'"):
        persist.load(saved, kind="model")
    with pytest.raises(ValueError, match="holds a 'checkpoint', not a 'model'"):
        persist.save(saved, {}, kind="model")


def test_other_version(saved, monkeypatch):
    monkeypatch.setattr(persist, "VERSION", persist.VERSION + 1)
    for call in (lambda: persist.load(saved, kind="checkpoint"), lambda: persist.save(saved, {}, kind="checkpoint")):
        with pytest.raises(ValueError, match=r"has format version 2, and this projfree reads version 3; read it"):
            call()


@pytest.mark.parametrize("keep", [0, 10, 200, -1])
def test_truncated(saved, keep):
    file = saved / "projfree.npz"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"state' is damaged"):
        persist.load(saved, kind="checkpoint")


def test_no_flipped_byte_changes_what_is_read(saved):
    file = saved / "projfree.npz"
    good, noticed = file.read_bytes(), 0
    for i in range(len(good)):
        file.write_bytes(good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :])
        try:
            np.testing.assert_equal(persist.load(saved, kind="checkpoint"), TREE)
        except ValueError:
            noticed += 1
    assert noticed > 0.5 * len(good)  # the rest are dates and names in headers


def test_a_file_is_in_the_way(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ValueError, match=r"notes' is a file; choose another path"):
        persist.save(tmp_path / "notes", TREE, kind="checkpoint")
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_foreign_folder_is_refused_and_kept(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"holds 'thesis.tex'; choose another path"):
        persist.save(tmp_path, TREE, kind="checkpoint")
    assert files(tmp_path) == {"thesis.tex": b"mine"}


class Colour(enum.IntEnum):
    RED = 1


BAD = {
    "set": ({"a": [{1}]}, r"cannot write tree\['a'\]\[0\] = \{1\} of type set"),
    "bytes": (b"x", "of type bytes"),
    "enum": (Colour.RED, "of type Colour"),
    "complex": (1j, "of type complex"),
    "masked": (np.ma.masked_array([1.0], [True]), "of type MaskedArray"),
    "object": ({"x": np.array([None])}, r"no Python objects, but tree\['x'\] has dtype object"),
    "key": ({"a": {1: 2}}, r"strings as keys, got 1 in tree\['a'\]"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_saved(saved, name):
    tree, sentence = BAD[name]
    before = files(saved)
    with pytest.raises(TypeError, match=sentence):
        persist.save(saved, tree, kind="checkpoint")
    assert files(saved) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="`save` could not write to"):
        persist.save(tmp_path / "state", TREE, kind="checkpoint")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("first", [True, False])
def test_a_full_disk_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch, first):
    path = tmp_path / "state"
    if not first:
        persist.save(path, TREE, kind="checkpoint")
    before = files(tmp_path)

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        persist.save(path, {"new": 1}, kind="checkpoint")
    assert files(tmp_path) == before
    assert path.exists() is not first
