"""Where data files are: in the folder that PROJFREE_DATA names, in the cache, in the package, or at their home."""

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
from projfree.datasets.download import Home, cache_folder, fetch, flaw

VARIABLE = "PROJFREE_DATA"
_SUFFIXES = ("", ".gz", ".zip")


def packaged(name: str) -> dict[str, Array]:
    """The arrays of a packaged npz file."""
    path = resources.files("projfree.datasets") / "files" / name
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def present(home: Home) -> Path | None:
    """The file of a data set (plain, .gz or .zip) below PROJFREE_DATA or in the cache, None where it is in neither.

    A file in the cache whose known checksum does not fit is not used: it is downloaded again.
    """
    root = os.environ.get(VARIABLE)
    given = next(_candidates(Path(root), home), None) if root else None
    if given is not None:
        return given
    return next((path for path in _candidates(cache_folder(), home) if not flaw(path, home)), None)


def _candidates(base: Path, home: Home) -> Iterator[Path]:
    for name in home.names:
        for folder in (base / home.folder, base):
            for suffix in _SUFFIXES:
                if (folder / (name + suffix)).is_file():
                    yield folder / (name + suffix)


def find(call: str, home: Home, download: bool = True) -> Path:
    """The file of a data set, downloaded if need be; ``call`` begins the sentence that a user without it reads."""
    if (path := present(home)) is not None:
        return path
    why = ""
    if download and home.url:
        try:
            return fetch(home)
        except OSError as error:
            why = f"; the download from {home.url} failed ({type(error).__name__})"
    root = os.environ.get(VARIABLE)
    where = f"there is none in {root!r} or in the cache" if root else "that variable is not set"
    raise FileNotFoundError(
        f"`{call}` needs {' or '.join(home.names)} (plain, .gz or .zip) in the folder {home.folder} of the directory "
        f"that {VARIABLE} names, and {where}{why}; get it from {home.page} and set {VARIABLE}."
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
