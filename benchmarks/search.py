"""Searches with default settings against those of scikit-learn: CPU time, and the score on rows that were held out.

    python benchmarks/search.py [--only lasso ...] [--repeat 3] [--commit]

Each peer chooses its penalty from its default grid with five folds (`RidgeCV` leaves one row out, in closed form, from
13 penalties); `LogisticRegressionCV` tries 20 values of C. Times are those of the processor with one thread, the
shortest of some interleaved repetitions after one that compiles. Neither side scales the features. The texts are
generated: words have Zipf's frequencies, which depend on the class.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import console, with_one_thread
from defaults import words
from record import destinations, keep, machine, versions
from rich.table import Table
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LassoCV, LogisticRegressionCV, MultiTaskLassoCV, RidgeCV

from projfree import ConstrainedClassifierCV, ConstrainedRegressorCV
from projfree.datasets import load_adult

SHAPES = ((2_000, 50), (8_000, 276), (200, 1_000), (600, 1_000), (3_000, 1_000))
#: The share of rows that are held out for the scores.
HELD = 0.25
#: Most times that our search may take of a peer's time, and by how much its score may be worse.
MOST, WORSE = {"lasso": 2.0, "multitask": 2.0, "logistic": 3.0, "ridge": 5.0}, 0.002


@dataclass(frozen=True, eq=False)
class Case:
    """A search of each side on one table."""

    kind: str
    data: str
    X: Any
    y: np.ndarray
    ours: Callable[[], Any]
    peer: Callable[[], Any]


def gaussian(n: int, d: int, outputs: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a third of the features in use, and as much noise as signal."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    shape = (d, outputs) if outputs else (d,)
    w = (rng.standard_normal(shape).T * (np.arange(d) % 3 == 0)).T / np.sqrt(d)
    u = X @ w
    return X, u + rng.standard_normal(u.shape)


def logistic(p: float) -> LogisticRegressionCV:
    settings = {"Cs": 20, "max_iter": 1_000, "scoring": "accuracy", "use_legacy_attributes": False}
    more = {"solver": "liblinear", "l1_ratios": (1.0,)} if p == 1 else {"l1_ratios": (0.0,)}
    return LogisticRegressionCV(**settings, **more)


def cases() -> Iterator[Case]:
    for n, d in SHAPES:
        X, y = gaussian(round(n / (1.0 - HELD)), d)
        name = f"{n:,} x {d:,}"
        yield Case("ridge", name, X, y, lambda: ConstrainedRegressorCV(), lambda: RidgeCV(np.logspace(-6, 6, 13)))
        yield Case("lasso", name, X, y, lambda: ConstrainedRegressorCV(p=1), LassoCV)
    X, Y = gaussian(round(4_108 / (1.0 - HELD)), 64, 8)
    yield Case("multitask", "4,108 x 64 x 8", X, Y, lambda: ConstrainedRegressorCV(norm="group"), MultiTaskLassoCV)
    adult = load_adult()
    counts, classes = words(6_600)
    text = sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
    for name, X, y in (("Adult", adult.X, adult.y), ("text, tf-idf", text, classes)):
        for p in (1, 2):
            label = f"{name}, p = {p}"
            yield Case("logistic", label, X, y, lambda p=p: ConstrainedClassifierCV(p=p), lambda p=p: logistic(p))


def timed(make: Callable[[], Any], X: Any, y: np.ndarray) -> tuple[float, Any]:
    model = make()
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers at their default tolerance warn
        model.fit(X, y)
    return time.process_time() - begun, model


def measured(case: Case, repeat: int) -> dict[str, Any]:
    held, rows = np.split(np.random.default_rng(1).permutation(case.X.shape[0]), [round(HELD * case.X.shape[0])])
    X, y, Xt, yt = case.X[rows], case.y[rows], case.X[held], case.y[held]
    timed(case.ours, X, y)
    pairs = [(timed(case.ours, X, y), timed(case.peer, X, y)) for _ in range(repeat)]
    ours, peer = (min(one[0] for one in side) for side in zip(*pairs, strict=True))
    (_, model), (_, other) = pairs[0]
    score, theirs = float(model.score(Xt, yt)), float(other.score(Xt, yt))
    ratio = ours / peer
    return {
        "kind": case.kind,
        "data": case.data,
        "ours, CPU s": ours,
        "peer, CPU s": peer,
        "ratio": ratio,
        "ours, score": score,
        "peer, score": theirs,
        "radius": float(model.radius_),
        "nonzero": int(np.count_nonzero(model.coef_)),
        "verified": bool(model.verify(X, y).ok),
        "as fast and as good": ratio <= MOST[case.kind] and score >= theirs - WORSE,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="*", default=list(MOST), help="kinds of searches, or parts of names of data")
    options.add_argument("--repeat", type=int, default=3)
    destinations(options)
    chosen = options.parse_args()
    with_one_thread()
    rows = []
    for case in cases():
        if any(part in f"{case.kind} {case.data}" for part in chosen.only):
            rows.append(measured(case, chosen.repeat))
            print(rows[-1], flush=True)
    table = Table(*rows[0], title="search")
    for row in rows:
        table.add_row(*(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()))
    console().print(table)
    keep("search", {"machine": machine(), "versions": versions("scikit-learn"), "search": rows}, chosen)


if __name__ == "__main__":
    main()
