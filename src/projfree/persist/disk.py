"""Files that are on the disk when they are closed, or there as a whole, one writer at a time, and checksums."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO

_POSIX = os.name == "posix"


@contextmanager
def flushed(path: Path) -> Iterator[IO[bytes]]:
    """A new file to write to, whose content has reached the disk when the block ends."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A path to write to, moved to ``path`` in one step when the block has ended well; else what was there stays."""
    beside = path.with_name(f".{path.name}.partial")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Bring the entries of ``folder`` to the disk; files alone would survive a power cut without their names."""
    if not _POSIX:
        return  # other systems cannot open a folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems do not flush folders
            raise
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Keep other writers out of ``folder``. The system drops the lock of a process that dies.

    A second writer waits for the first, or raises `BlockingIOError` where ``wait`` is False.
    """
    if not _POSIX:
        yield
        return
    import fcntl  # not on every system

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass  # some network file systems have no locks; then the user sees to it
        yield
    finally:
        os.close(descriptor)


def sha256(file: BufferedReader) -> str:
    """The checksum of an open file's content, in hexadecimal."""
    return hashlib.file_digest(file, "sha256").hexdigest()
