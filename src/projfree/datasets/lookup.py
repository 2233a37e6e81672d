"""Where data files are: in the folder that PROJFREE_DATA names, or in the package."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TextIO

import numpy as np

from projfree.checks import Array

VARIABLE = "PROJFREE_DATA"
_SUFFIXES = ("", ".gz", ".zip")


def packaged(name: str) -> dict[str, Array]:
    """The arrays of a packaged npz file."""
    path = resources.files("projfree.datasets") / "files" / name
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def find(call: str, folder: str, names: tuple[str, ...], home: str) -> Path:
    """The first of ``names`` (plain, .gz or .zip) in ``folder`` of PROJFREE_DATA or in PROJFREE_DATA itself.

    ``call`` and ``home`` (where the data live) make the sentence that a user without the file reads.
    """
    root = os.environ.get(VARIABLE)
    for name in names if root else ():
        for base in (Path(str(root)) / folder, Path(str(root))):
            for suffix in _SUFFIXES:
                if (base / (name + suffix)).is_file():
                    return base / (name + suffix)
    where = f"there is none in {root!r}" if root else "that variable is not set"
    raise FileNotFoundError(
        f"`{call}` needs {' or '.join(names)} (plain, .gz or .zip) in the folder {folder} of the directory that "
        f"{VARIABLE} names, and {where}; get it from {home} and set {VARIABLE}."
    )


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a text file that may be compressed, by the end of its name."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="ascii") as text:
            yield text
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            binary = archive.open(_member(archive, path.stem))
            with io.TextIOWrapper(binary, encoding="ascii") as text:
                yield text
    else:
        with path.open(encoding="ascii") as text:
            yield text


def _member(archive: zipfile.ZipFile, name: str) -> str:
    for member in archive.namelist():
        if member.rsplit("/", 1)[-1] == name:
            return member
    raise ValueError(f"{archive.filename!r} holds no {name}; get the original archive again.")
