"""The homes of data that are not packaged, and how a file gets from there into the cache."""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import warnings
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
    sha256 : str
        Of the first file, uncompressed, where it is known; else the loaders check shape and first rows.
    """

    folder: str
    names: tuple[str, ...]
    page: str
    url: str = ""
    sha256: str = ""


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
    ),
    "year": Home(
        "year_prediction_msd",
        ("YearPredictionMSD.txt",),
        "the UCI Machine Learning Repository, data set 203 (doi:10.24432/C50K61)",
        "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
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

    Warns
    -----
    UserWarning
        Where no checksum of the file is known, before anything is downloaded.
    """
    import pooch

    if not home.sha256:
        warnings.warn(
            f"no checksum of {home.names[0]} is known, so that what comes from {home.url} is checked by its shape and "
            f"first rows alone; compare it with {home.page} if that matters.",
            stacklevel=2,
        )
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
    """Raise unless ``path`` is a whole archive with the file in it, by checksum where one is known."""
    wrong = flaw(path, home)
    if wrong:
        raise ValueError(f"what came from {home.url} is not the data: {wrong}; try again, or get it from {home.page}.")


def flaw(path: Path, home: Home) -> str:
    """What is wrong with an archive, plain or compressed file of a data set; empty if nothing is."""
    name = home.names[0]
    try:
        if path.suffix == ".gz":
            return _differs(gzip.decompress(path.read_bytes()), home)
        if path.suffix != ".zip" and not path.name.endswith(".part"):
            return _differs(path.read_bytes(), home)
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.namelist() if m.rsplit("/", 1)[-1] == name]
            if not members:
                return f"it holds no {name}"
            if home.sha256:
                return _differs(archive.read(members[0]), home)
            return "" if archive.testzip() is None else "a checksum within it does not fit"
    except (zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile):
        return "it is no whole archive" if path.suffix == ".gz" else "it is no zip archive"


def _differs(content: bytes, home: Home) -> str:
    found = hashlib.sha256(content).hexdigest()
    fits = not home.sha256 or found == home.sha256
    return "" if fits else f"the sha256 of {home.names[0]} is {found}, not {home.sha256}"
