"""Users, or films, that are held out entirely: what their features say, against the best offsets.

    python benchmarks/completion.py cold 1m --seeds 0 1 2 3 4
    python benchmarks/completion.py cold 1m --held-out films

Protocol: a tenth of the users (films) is drawn by ``default_rng(seed)``; all of their ratings are the test part, all
others are fitted. Features are those of MovieLens: gender, age and occupation of users, one column for each value, and
genres and decade of films. Whoever is held out has no rating at all, so that a model without features predicts what
offsets without a matrix do, and need not be fitted: ``offsets`` stands for all of them.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import numpy as np


def columns(*parts):
    """A column of zeros and ones for each value of each part."""
    return np.hstack([(np.asarray(part)[:, None] == np.unique(part)).astype(float) for part in parts])


def table(name):
    """The lines of a file of MovieLens-1M, divided."""
    folder = Path(os.environ["PROJFREE_DATA"]) / "ml-1m"
    return [line.split("::") for line in (folder / name).read_text(encoding="latin-1").splitlines()]


def users():
    """Ids and features of users."""
    ids, gender, age, work = zip(*(line[:4] for line in table("users.dat")), strict=True)
    return np.array(ids, dtype=np.int64), columns(gender, age, work)


def films():
    """Ids and features of films: their genres, and the decade in their title."""
    lines = table("movies.dat")
    genres = sorted({genre for line in lines for genre in line[2].split("|")})
    found = np.array([[float(genre in line[2].split("|")) for genre in genres] for line in lines])
    decades = [int(re.search(r"\((\d{4})\)$", line[1])[1]) // 10 for line in lines]
    return np.array([int(line[0]) for line in lines]), np.hstack([found, columns(decades)])


def cold(ratings, side, seeds):
    """RMSE of the ratings of users (``side`` 0) or films (1) that are held out."""
    from projfree import MatrixCompletion

    given = {"user_features": users(), "item_features": films()}
    scale, errors = (ratings[2].min(), ratings[2].max()), {}
    for seed in seeds:
        ids = np.unique(ratings[side])
        out = np.random.default_rng(seed).permutation(ids)[: len(ids) // 10]
        test = np.isin(ratings[side], out)
        train, held = (tuple(part[at] for part in ratings) for at in (~test, test))
        methods = {"offsets": {"radius": 1e-6, "rank": 1}, "features": given}
        for name, settings in methods.items():
            begun = time.process_time()
            model = MatrixCompletion(certify=False, **settings).fit(train)
            error = np.clip(model.predict(held[:2]), *scale) - held[2]
            errors.setdefault(name, []).append(float(np.sqrt(np.mean(error**2))))
            print(
                f"seed {seed}, {name}: RMSE {errors[name][-1]:.4f} of {len(held[2]):,} ratings, "
                f"{time.process_time() - begun:.1f} CPU s",
                flush=True,
            )
    for name, found in errors.items():
        print(f"{name}: mean RMSE {np.mean(found):.4f}", flush=True)
    return errors
