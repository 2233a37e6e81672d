"""Reading files that anybody may have written: plain files only, and no array larger than the file that holds it."""

from __future__ import annotations

import errno
import math
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from projfree.checks import Array

#: Kinds of arrays that `save` writes: numbers, text and dates, no objects and no records.
KINDS = "biufcSUmM"


class DamagedError(Exception):
    """What is wrong with a file, for the sentence about its folder."""


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A plain file to read from; pipes, devices and folders are refused before they are opened.

    Raises
    ------
    FileNotFoundError
        Where there is none.
    DamagedError
        Where something else stands there.
    """
    try:
        _refuse_special(os.stat(path).st_mode, path)
        # Should a pipe take the place of the file in between, opening it must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise DamagedError(f"{path.name} cannot be opened") from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        _refuse_special(os.fstat(descriptor).st_mode, path)
        yield file


def _refuse_special(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        raise DamagedError(f"{path.name} is not a plain file")


def read_limited(path: Path, most: int) -> bytes:
    """The content of a plain file of at most so many bytes."""
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DamagedError(f"{path.name} is larger than {most} bytes")
    return content


def read_arrays(file: BufferedReader) -> dict[str, Array]:
    """The arrays of an npz file as `numpy.savez` writes it, after a look at all sizes that it declares."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) != len(members):
            raise DamagedError("an array stands there twice")
        # Members that share bytes could otherwise add up to any size.
        if sum(member.file_size for member in members) > size:
            raise DamagedError("its arrays are larger than the file")
        for member in members:
            _check(archive, member)
        return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}


def _check(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise DamagedError(f"{member.filename} is compressed")
    with archive.open(member) as content:
        major, _ = npy.read_magic(content)
        shape, _, dtype = (npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0)(content)
        held = member.file_size - content.tell()
    if dtype.kind not in KINDS:
        raise DamagedError(f"{member.filename} has dtype {dtype}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != held:
        raise DamagedError(f"{member.filename} declares another size than it has")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with archive.open(member) as content:
        return np.asarray(npy.read_array(content, allow_pickle=False))
