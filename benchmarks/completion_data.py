"""Ratings for the benchmark of matrix completion: MovieLens, which is read, and stand-ins, which are made.

Nothing of projfree is imported here: the environments of peers lack it.
"""

from __future__ import annotations

import gzip
import os
import re
import zipfile
from pathlib import Path

import numpy as np


def ratings_by_id(size):
    """Users and films by their ids in MovieLens, and ratings, from PROJFREE_DATA."""
    folder, name = Path(os.environ["PROJFREE_DATA"]), "ml-100k/u.data*" if size == "100k" else "ml-1m/ratings*.dat*"
    path = next(folder.glob(name))
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            text = archive.read(archive.namelist()[0]).decode()
    else:
        text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    rows = len(text.splitlines())
    table = np.array(text.replace("::", " ").split(), dtype=np.int64).reshape(rows, -1)
    return table[:, 0], table[:, 1], table[:, 2].astype(float)


def ratings(size):
    """Users and films of MovieLens, numbered without gaps, and ratings."""
    users, items, values = ratings_by_id(size)
    return np.unique(users, return_inverse=True)[1], np.unique(items, return_inverse=True)[1], values


def split(n, part, seed):
    perm = np.random.default_rng(seed).permutation(n)
    cut = n // part
    return perm[cut:], perm[:cut]


def scale(train):
    """The smallest and the largest rating."""
    return float(train[2].min()), float(train[2].max())


def synthetic(count, shape=(140_000, 27_000), rank=20):
    """Ratings 1..5 of a low-rank matrix with a slowly falling spectrum plus noise; few users and films have most."""
    rng = np.random.default_rng(0)
    users = (shape[0] * rng.random(count) ** 2).astype(np.int32)
    items = (shape[1] * rng.random(count) ** 2).astype(np.int32)
    weights = np.arange(1.0, rank + 1.0) ** -0.5
    left = rng.standard_normal((shape[0], rank)) * (0.6 * weights / np.linalg.norm(weights))
    right, values = rng.standard_normal((shape[1], rank)), np.empty(count)
    for start in range(0, count, 1 << 18):
        at = slice(start, start + (1 << 18))
        signal = np.einsum("ij,ij->i", left[users[at]], right[items[at]])
        values[at] = np.clip(np.rint(3.5 + signal + 0.8 * rng.standard_normal(len(signal))), 1, 5)
    return users, items, values


def long_tail(count=434_000, shape=(78_000, 186_000), rank=5, seed=0):
    """A stand-in for a table of book ratings: 1..10, most users and items with one or two, signal mostly in offsets."""
    rng = np.random.default_rng(seed)
    pairs = np.zeros(0, dtype=np.int64)
    while len(pairs) < count:  # of each pair one rating; many places with one rating each, a few with thousands
        users, items = (_places(rng, count, side, power) for side, power in zip(shape, (0.75, 0.6), strict=True))
        pairs = np.unique(np.concatenate([pairs, users * shape[1] + items]))
    users, items = np.divmod(rng.permutation(pairs)[:count], shape[1])
    left, right = (rng.standard_normal((side, rank)) for side in shape)
    signal = 0.2 * np.einsum("ij,ij->i", left[users], right[items])
    offsets = 0.9 * rng.standard_normal(shape[0])[users] + 0.6 * rng.standard_normal(shape[1])[items]
    return users, items, np.clip(np.rint(7.6 + offsets + signal + 1.2 * rng.standard_normal(count)), 1, 10)


def _places(rng, count, side, power):
    """Places whose frequencies fall like a power of their order, of which a share is drawn evenly."""
    weights = np.arange(1.0, side + 1.0) ** -power
    often = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(count))
    return np.where(rng.random(count) < 0.5, np.minimum(often, side - 1), rng.integers(0, side, count))


def small_catalogue(count=1_800_000, shape=(24_938, 100), rank=8, seed=0):
    """A stand-in for ratings of a few jokes by many people: real numbers from -10 to 10, most places rated."""
    rng = np.random.default_rng(seed)
    users, items = np.divmod(np.sort(rng.choice(shape[0] * shape[1], count, replace=False)), shape[1])
    left, right = (rng.standard_normal((side, rank)) for side in shape)
    signal = 1.2 * np.einsum("ij,ij->i", left[users], right[items])
    offsets = 2.0 * rng.standard_normal(shape[0])[users] + 1.5 * rng.standard_normal(shape[1])[items]
    return users, items, np.clip(0.7 + offsets + signal + 3.5 * rng.standard_normal(count), -10.0, 10.0)


#: Tables that are made here; those of MovieLens are read.
STAND_INS = {"long-tail": long_tail, "small-catalogue": small_catalogue}


def table(name):
    """Users, items and ratings of a data set by its name."""
    return STAND_INS[name]() if name in STAND_INS else ratings(name)


# ---------------------------------------------------------------- features of MovieLens-1M


def _lines(name):
    folder = Path(os.environ["PROJFREE_DATA"]) / "ml-1m"
    return [line.split("::") for line in (folder / name).read_text(encoding="latin-1").splitlines()]


def _indicators(*parts):
    """A column of zeros and ones for each value of each part."""
    return np.hstack([(np.asarray(part)[:, None] == np.unique(part)).astype(float) for part in parts])


def _users():
    """Ids and features of users: gender, age and occupation."""
    ids, gender, age, work = zip(*(line[:4] for line in _lines("users.dat")), strict=True)
    return np.array(ids, dtype=np.int64), _indicators(gender, age, work)


def _films():
    """Ids and features of films: their genres, and the decade in their title."""
    lines = _lines("movies.dat")
    genres = sorted({genre for line in lines for genre in line[2].split("|")})
    found = np.array([[float(genre in line[2].split("|")) for genre in genres] for line in lines])
    decades = [int(re.search(r"\((\d{4})\)$", line[1])[1]) // 10 for line in lines]
    return np.array([int(line[0]) for line in lines]), np.hstack([found, _indicators(decades)])


FEATURES = {"users": _users, "films": _films}
