"""The homes of data that are not packaged, and how a file gets from there into the cache."""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Home:
    """Where a data set lives.

    Parameters
    ----------
    folder, names : str and tuple of str
        The folder and the file names to look for, the first as in the archive.
    page : str
        What a person is told to visit.
    url : str
        An archive with the first file in it; empty where there is none to download.
    sha256, archive_sha256 : str
        Of the first file, uncompressed, and of the archive. What can be downloaded has one of them at least: an archive
        is the right one if either fits.
    """

    folder: str
    names: tuple[str, ...]
    page: str
    url: str = ""
    sha256: str = ""
    archive_sha256: str = ""


HOMES = {
    "movielens-100k": Home(
        "ml-100k",
        ("u.data",),
        "grouplens.org/datasets/movielens/100k",
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    ),
    "movielens-1m": Home(
        "ml-1m",
        ("ratings.dat", "ratings_no_timestamp.dat"),
        "grouplens.org/datasets/movielens/1m",
        "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        archive_sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    ),
    "year": Home(
        "year_prediction_msd",
        ("YearPredictionMSD.txt",),
        "the UCI Machine Learning Repository, data set 203 (doi:10.24432/C50K61)",
        "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
        "4b6f8e50235b359e01689ae7fb33ad0f89677e9a15f25f3d6259327a6bb927bb",
        "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
    ),
    "school": Home(
        "school", ("school.npz",), "a copy of the multi-task School data, as an npz file with X, y and task"
    ),
}


def cache_folder() -> Path:
    """The folder of downloaded files, in the place that the operating system has for caches."""
    import pooch

    return Path(pooch.os_cache("projfree"))


def fetch(home: Home, progress: Any = None) -> Path:
    """Download an archive into the cache, whole or not at all, and check it.

    Parameters
    ----------
    progress : object, optional
        A progress bar as pooch wants it, with ``total``, ``update``, ``reset`` and ``close``.

    Raises
    ------
    OSError
        Where the home cannot be reached.
    ValueError
        Where what came is not the archive; it is not kept.
    """
    import pooch

    target = cache_folder() / home.folder / (home.names[0] + ".zip")
    # A name that nobody has used: pooch takes a file that is there already for the download.
    beside = f".{home.names[0]}.{secrets.token_hex(8)}.part"
    pooch.utils.get_logger().setLevel("ERROR")
    loader = pooch.HTTPDownloader(progressbar=progress) if progress is not None else pooch.HTTPDownloader()
    came = target.parent / beside
    try:
        pooch.retrieve(home.url, None, fname=beside, path=target.parent, downloader=loader)
        check(came, home)
        os.replace(came, target)
    finally:
        came.unlink(missing_ok=True)
    return target


def check(path: Path, home: Home) -> None:
    """Raise unless ``path`` is the archive, or one with the same file in it, by checksum."""
    wrong = flaw(path, home)
    if wrong:
        raise ValueError(f"what came from {home.url} is not the data: {wrong}; try again, or get it from {home.page}.")


def flaw(path: Path, home: Home) -> str:
    """What is wrong with an archive, plain or compressed file; empty if nothing is, or if no checksum is known."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                return _differs(file, home.sha256, home.names[0])
        if path.suffix != ".zip" and not path.name.endswith(".part"):
            with path.open("rb") as file:
                return _differs(file, home.sha256, home.names[0])
        return _flaw_of_archive(path, home, path.stem if path.suffix == ".zip" else home.names[0])
    except (zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile):
        return "it is no whole archive" if path.suffix == ".gz" else "it is no zip archive"


def _flaw_of_archive(path: Path, home: Home, name: str) -> str:
    with zipfile.ZipFile(path) as archive:
        members = [m for m in archive.namelist() if m.rsplit("/", 1)[-1] == name]
        if not members:
            return f"it holds no {name}"
        if name != home.names[0]:  # a file of the user's own making
            return "" if archive.testzip() is None else "a checksum within it does not fit"
        with path.open("rb") as whole:
            other = _differs(whole, home.archive_sha256, "the archive")
        if not home.sha256 or (home.archive_sha256 and not other):
            return other
        with archive.open(members[0]) as file:
            return _differs(file, home.sha256, name)


def _differs(file: Any, known: str, name: str) -> str:
    """How the sha256 of an open binary file differs from the known one; empty if it does not, or none is known."""
    found = hashlib.file_digest(file, "sha256").hexdigest() if known else ""
    return "" if found == known else f"the sha256 of {name} is {found}, not {known}"
