"""Files of data sets: in the package, in the folder PROJFREE_DATA, in the cache, or downloaded."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from projfree.checks import Array

ENV_VARIABLE = "PROJFREE_DATA"


@dataclass(frozen=True)
class Source:
    """Source of a data set: the folder and the names of its files, and the page that offers it.

    ``url`` and ``sha256`` belong to an archive with the first file; they are empty if there is no download.
    """

    folder: str
    names: tuple[str, ...]
    page: str
    url: str = ""
    sha256: str = ""


SOURCES = {
    "movielens-100k": Source(
        "ml-100k",
        ("u.data",),
        "grouplens.org/datasets/movielens/100k",
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    ),
    "movielens-1m": Source(
        "ml-1m",
        ("ratings.dat", "ratings_no_timestamp.dat"),
        "grouplens.org/datasets/movielens/1m",
        "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    ),
    "year": Source(
        "year_prediction_msd",
        ("YearPredictionMSD.txt",),
        "the UCI Machine Learning Repository, data set 203 (doi:10.24432/C50K61)",
        "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
        "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
    ),
    "school": Source(
        "school", ("school.npz",), "a copy of the multi-task School data, as an npz file with X, y and task"
    ),
}


def load_packaged(name: str) -> dict[str, Array]:
    """Load the arrays of a packaged npz file."""
    path = resources.files("projfree.datasets") / "files" / name
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def find_local(source: Source) -> Path | None:
    """Return the path of the file (plain, .gz or .zip) in PROJFREE_DATA, or None."""
    root = os.environ.get(ENV_VARIABLE)
    if not root:
        return None
    folders = Path(root) / source.folder, Path(root)
    paths = (folder / (name + end) for name in source.names for folder in folders for end in ("", ".gz", ".zip"))
    return next((path for path in paths if path.is_file()), None)


def cache_path(source: Source) -> Path:
    """Return the path of a download in the cache folder of the user."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError("downloads need pooch, `pip install 'projfree[data]'`") from error
    return Path(pooch.os_cache("projfree")) / source.folder / f"{source.names[0]}.zip"


def download(source: Source) -> Path:
    """Download the archive into the cache unless it is there, check its checksum, and return its path."""
    place = cache_path(source)
    import pooch

    pooch.get_logger().setLevel("ERROR")
    try:
        pooch.retrieve(source.url, f"sha256:{source.sha256}", place.name, place.parent)
    except ValueError as error:  # pooch has deleted the file
        raise ValueError(
            f"the download from {source.url} has another checksum; try again, or get it from {source.page}."
        ) from error
    return place


def find_file(call: str, source: Source, may_download: bool = True) -> Path:
    """Return the path of a data set, and download it if necessary; ``call`` names the loader in error messages."""
    if (path := find_local(source)) is not None:
        return path
    why = ""
    try:
        if source.url and (may_download or cache_path(source).is_file()):
            return download(source)
    except ImportError as error:
        why = f"; {error}" if may_download else ""
    except OSError as error:
        why = f"; the download failed ({type(error).__name__})"
    root = os.environ.get(ENV_VARIABLE)
    where = f"there is none in {root!r}" if root else "that variable is not set"
    raise FileNotFoundError(
        f"`{call}` needs {' or '.join(source.names)} (plain, .gz or .zip) in the folder {source.folder} of the "
        f"directory that {ENV_VARIABLE} names, and {where}{why}; get it from {source.page} and set {ENV_VARIABLE}."
    )


@contextmanager
def check_content(call: str, what: str, path: Path, source: Source) -> Iterator[None]:
    """Turn an error about the content of a file into a ValueError that says what was expected."""
    try:
        yield
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"`{call}` expects {what} in {str(path)!r}, but it holds something else ({error}); get it again from "
            f"{source.page}."
        ) from error


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a text file that may be compressed, by its suffix."""
    with ExitStack() as stack:
        if path.suffix == ".zip":
            archive = stack.enter_context(zipfile.ZipFile(path))
            names = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == path.stem]
            if not names:
                raise ValueError(f"an archive without {path.stem}")
            yield stack.enter_context(io.TextIOWrapper(archive.open(names[0]), encoding="ascii"))
        else:
            opener: Any = gzip.open if path.suffix == ".gz" else open
            yield stack.enter_context(opener(path, "rt", encoding="ascii"))
