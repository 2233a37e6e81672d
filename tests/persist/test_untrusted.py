"""Saved folders come from anywhere: sizes are checked first, only plain files are opened, links are not followed."""

from __future__ import annotations

import io
import json
import os
import zipfile

import numpy as np
import pytest

from projfree import persist

posix = pytest.mark.skipif(os.name != "posix", reason="needs pipes and links")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "state"
    persist.save(path, {"w": np.arange(4.0), "t": 3, "s": np.float32(2.0)}, kind="test")
    return path


def forge(path, content):
    """Replace the file of a save."""
    (path / "projfree.npz").write_bytes(content)


TREE = json.dumps(
    {
        "format": "projfree",
        "version": persist.VERSION,
        "kind": "test",
        "tree": {"w": ["array", "a0.npy"], "s": ["scalar", "a1.npy"]},
    }
)


def header(shape, dtype="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def as_array(text):
    """A text as the bytes of an array."""
    return header((len(text),), "|u1") + text.encode("latin-1")


def archive(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as out:
        for name, content in (("tree.npy", as_array(TREE)), *members):
            out.writestr(name, content)
    return file.getvalue()


def overlapping():
    """Two members of the directory that are the same bytes of the file."""
    with zipfile.ZipFile(out := io.BytesIO(), "w") as file:
        file.writestr("tree.npy", as_array(TREE))
        file.writestr("a0.npy", header((100_000,)) + bytes(800_000))
        copy = zipfile.ZipInfo("a1.npy")
        for name in ("CRC", "compress_size", "file_size", "header_offset", "compress_type"):
            setattr(copy, name, getattr(file.filelist[1], name))
        file.filelist.append(copy)
    return out.getvalue()


W, T = header((4,)) + np.arange(4.0).tobytes(), header((), "<f4") + np.float32(2).tobytes()
PARTS = {
    "compressed": (archive([("a0.npy", W), ("a1.npy", T)], zipfile.ZIP_DEFLATED), "it is compressed"),
    "too large": (archive([("a0.npy", header((400_000_000,))), ("a1.npy", T)]), "declares another size than it has"),
    "overflow": (archive([("a0.npy", header((2**40, 2**40))), ("a1.npy", T)]), "declares another size than it has"),
    "negative": (archive([("a0.npy", header((-4, -1))), ("a1.npy", T)]), "declares another size than it has"),
    "objects": (archive([("a0.npy", header((1,), "|O") + b"x" * 8), ("a1.npy", T)]), "dtype object"),
    "overlapping": (overlapping(), "its members are larger than the file"),
    "missing": (archive([("a1.npy", T)]), "KeyError"),
    "no npy": (archive([("a0.npy", b"hello"), ("a1.npy", T)]), "cannot be read"),
    "no zip": (b"PK\x03\x04 and no more" + bytes(32), "cannot be read"),
    "scalar": (archive([("a0.npy", W), ("a1.npy", W)]), "cannot be read"),
}


@pytest.mark.parametrize(("content", "why"), PARTS.values(), ids=PARTS)
def test_arrays_that_nobody_saved(saved, content, why):
    forge(saved, content)
    with pytest.raises(ValueError, match=rf"state' is damaged: .*{why}.*; restore it from a copy"):
        persist.load(saved, kind="test")


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '["array", 7]', '["tuple", 3]', '["set", []]', "[1]", "\xff", "1" * 10_000, '{"a'],
)
def test_trees_that_nobody_saved(saved, text):
    with zipfile.ZipFile(out := io.BytesIO(), "w") as file:
        file.writestr("tree.npy", as_array(TREE[: TREE.index('"tree": ') + 8] + text + "}"))
    forge(saved, out.getvalue())
    with pytest.raises(
        ValueError, match=r"state' is damaged: it(s tree has a list of an unknown kind| cannot be read)"
    ):
        persist.load(saved, kind="test")


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "other", "version": 1}'])
def test_content_of_others(saved, text):
    with zipfile.ZipFile(out := io.BytesIO(), "w") as file:
        file.writestr("tree.npy", as_array(text))
    forge(saved, out.getvalue())
    for call in (lambda: persist.load(saved, kind="test"), lambda: persist.save(saved, {}, kind="test")):
        with pytest.raises(ValueError, match="is not one that projfree wrote"):
            call()


def test_nothing_is_allocated_for_a_size_that_is_only_declared(saved):
    """An array of 320 MB in 300 kB of zip file."""
    import tracemalloc

    zeros = header((40_000_000,)) + bytes(320_000_000)
    forge(saved, archive([("a0.npy", zeros), ("a1.npy", T)], zipfile.ZIP_DEFLATED))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"is compressed|larger than the file"):
        persist.load(saved, kind="test")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


@posix
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop"])
def test_only_plain_files_are_opened(saved, kind):
    place = saved / "projfree.npz"
    place.unlink()
    {
        "pipe": lambda: os.mkfifo(place),
        "device": lambda: place.symlink_to("/dev/zero"),
        "folder": place.mkdir,
        "loop": lambda: place.symlink_to(place),
    }[kind]()
    with pytest.raises(ValueError, match=r"state' is damaged: (projfree.npz is not a plain file|it cannot be read)"):
        persist.load(saved, kind="test")
