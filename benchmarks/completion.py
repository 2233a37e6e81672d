"""Matrix completion against its peers, one method and one table a call, so that peers can live in another environment.

    python benchmarks/completion.py rmse 1m --method projfree --seeds 0 1 2 3 4 --commit
    other/python benchmarks/completion.py rmse 1m --method cmfrec --seeds 0 1 2 3 4
    other/python benchmarks/completion.py ranking 1m --commit
    python benchmarks/completion.py fit --ratings 20000000 --commit
    python benchmarks/completion.py lists --ratings 1000000 --commit
    python benchmarks/completion.py proved 1m --commit
    python benchmarks/completion.py cold 1m --held-out users --seeds 0 1 2 --commit

Protocol: rows in file order, ``perm = default_rng(seed).permutation(n)``, the test part is the first tenth of ``perm``
(``--test-part 5``: the first fifth); predictions clipped to the range of the ratings. Ours chooses on a tenth of the
training part; the settings of peers were chosen among 30 and among 3 on the training part of seed 0. ``long-tail`` and
``small-catalogue`` are stand-ins that are made here.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from functools import cache

import numpy as np
from completion_data import FEATURES, STAND_INS, ratings_by_id, scale, split, synthetic, table


def projfree(train, **settings):
    from projfree import MatrixCompletion

    model = MatrixCompletion(**settings).fit(train)
    return model.predict, f"radius {model.radius_:.4g} implicit {model.settings_.implicit:g}"


def surprise(train):
    import pandas as pd
    import surprise as peer

    frame = pd.DataFrame({"u": train[0], "i": train[1], "r": train[2]})
    data = peer.Dataset.load_from_df(frame, peer.Reader(rating_scale=scale(train))).build_full_trainset()
    model = peer.SVD(n_factors=100, n_epochs=100, reg_all=0.05, random_state=0).fit(data)
    return lambda pairs: np.array([model.predict(u, i).est for u, i in zip(*pairs, strict=True)]), "100 factors"


def cmfrec(train):
    import pandas as pd
    from cmfrec import CMF

    frame = pd.DataFrame({"UserId": train[0], "ItemId": train[1], "Rating": train[2]})
    settings = {"k": 100, "scale_lam": True, "add_implicit_features": True, "lambda_": 0.08, "w_implicit": 2.0}
    model = CMF(verbose=False, nthreads=threads(), random_state=0, **settings).fit(frame)
    return lambda pairs: np.nan_to_num(model.predict(*pairs), nan=float(train[2].mean())), str(settings)


METHODS = {
    "projfree": lambda train: projfree(train, certify=False),
    "projfree-certified": projfree,
    "projfree-ratings": lambda train: projfree(train, implicit=0.0, certify=False),
    "surprise": surprise,
    "cmfrec": cmfrec,
}


def threads():
    """As many as projfree takes."""
    return int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))


def peak():
    """The most memory that this process had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


@cache
def started():
    """What the figures of this call depend on, with the load before it has begun."""
    from record import machine

    return machine()


def told(args, part, row, same):
    """Print a row of figures and, if asked for, write it in place of an earlier one with the same first columns.

    Rows come from different calls, so that each has its own date, commit and load.
    """
    print(row, flush=True)
    if not args.commit:
        return
    from record import commit, committed

    info, before = started(), committed("completion")
    kept = [one for one in before.get(part, []) if any(one[key] != row[key] for key in same)]
    row |= {key: info[key] for key in ("date", "commit", "load")}
    common = {key: info[key] for key in ("date", "processor", "software", "threads")}
    rows = sorted([*kept, row], key=lambda one: [one[key] for key in same])
    commit("completion", before | {"machine": common, part: rows})


def parts(args, given, seed):
    """The ratings to fit and those to test."""
    return [tuple(column[rows] for column in given) for rows in split(len(given[2]), args.test_part, seed)]


def rmse(args):
    given, errors, cpu, note = table(args.size), [], [], ""
    for seed in args.seeds:
        train, test = parts(args, given, seed)
        begun = time.process_time()
        predict, note = METHODS[args.method](train)
        cpu.append(time.process_time() - begun)
        errors.append(float(np.sqrt(np.mean((np.clip(predict(test[:2]), *scale(given)) - test[2]) ** 2))))
        print(f"seed {seed}: RMSE {errors[-1]:.4f}, {cpu[-1]:.1f} CPU s, {note}", flush=True)
    row = {"data": args.size, "method": args.method, "test part": f"1/{args.test_part}"}
    row |= {"RMSE": float(np.mean(errors)), "seeds": len(errors), "median CPU s": float(np.median(cpu)), "note": note}
    told(args, "results", row, ("data", "method", "test part"))


def ranking(args):
    """Precision and recall of lists of ten items: ours, by popularity, and of implicit's ALS if that is installed."""
    from projfree import MatrixCompletion

    train, test = parts(args, table(args.size), args.seeds[0])
    begun = time.process_time()
    model = MatrixCompletion(certify=False).fit(train)
    cpu, found = time.process_time() - begun, model.report(test)
    rows = {
        "projfree": (found.precision, found.recall, cpu),
        "popularity": (found.popular_precision, found.popular_recall, 0.0),
    }
    try:
        rows["implicit ALS"] = implicit_als(model, train, test, found)
    except ImportError as error:
        print(f"implicit is left out: {error}", flush=True)
    for method, (precision, recall, seconds) in rows.items():
        row = {"data": args.size, "method": method, "precision at 10": precision, "recall at 10": recall}
        told(args, "ranking", row | {"CPU s": seconds}, ("data", "method"))


def implicit_als(model, train, test, found):
    """Lists by implicit's ALS of which items were rated, with as many factors, judged as ours are."""
    from implicit.als import ALS
    from scipy.sparse import csr_matrix

    from projfree.completion.recommend import score_lists

    index_labels = model._places(train[0], train[1])
    seen = csr_matrix((np.ones(len(train[2])), index_labels), shape=(len(model.user_ids_), len(model.item_ids_)))
    begun = time.process_time()
    peer = ALS(factors=model.rank, random_state=0)
    peer.fit(seen, show_progress=False)
    cpu = time.process_time() - begun
    rows, cols = model._places(test[0], test[1])
    at = (rows >= 0) & (test[2] >= found.threshold)
    users, lists = np.unique(rows[at], return_inverse=True)
    top = peer.recommend(users, seen[users], N=found.k)[0]
    return *score_lists(top, np.stack([lists, cols[at]]), seen.shape[1])[:2], cpu


def fit(args):
    """Seconds of the processor of a whole fit with all its defaults, and the peak of memory."""
    from projfree import MatrixCompletion

    given = synthetic(args.ratings)
    before, begun = peak(), time.process_time()
    model = MatrixCompletion().fit(given)
    row = {"ratings": args.ratings, "CPU s": time.process_time() - begun, "peak GB": peak(), "GB before": before}
    told(args, "fits", row | {"relative gap": model.relative_gap_, "threads": threads()}, ("ratings",))


def lists(args):
    """Seconds of the processor of recommendations for 2,000 users among 340,000 items, and of the bare products."""
    from projfree import MatrixCompletion
    from projfree.completion.recommend import Ranking

    given = synthetic(args.ratings, (2_000, 340_000))
    model = MatrixCompletion(radius=50.0, implicit=1.0, max_sweeps=2, certify=False).fit(given)
    model.recommend(model.user_ids_[:2])  # compiles
    begun = time.process_time()
    model.recommend()
    ours, begun = time.process_time() - begun, time.process_time()
    ranking = Ranking(model._cold_start_model, "likely", True, 1.0)
    left = np.column_stack([ranking.left, np.ones(len(ranking.left))])
    for start in range(0, len(left), 64):
        left[start : start + 64] @ ranking.right.T
    bare = time.process_time() - begun
    row = {"users": len(left), "items": len(ranking.right), "CPU s": ours, "bare products": bare, "ratio": ours / bare}
    told(args, "lists", row, ("items",))


def proved(args):
    """Seconds of a fit without implicit features until its relative gap is proved, at the radius that a fit chooses."""
    from projfree import MatrixCompletion

    train, _ = parts(args, table(args.size), 0)
    radius = MatrixCompletion(implicit=0.0, certify=False).fit(train).radius_
    begun = time.process_time()
    model = MatrixCompletion(radius=radius, implicit=0.0).fit(train).certify_to(args.tol)
    row = {"data": args.size, "tol": args.tol, "radius": radius, "relative gap": model.relative_gap_}
    row |= {"components": len(model.factors_.sigma), "CPU s": time.process_time() - begun, "threads": threads()}
    told(args, "proved", row, ("data", "tol"))


def cold(args):
    """RMSE of users, or films, of whom no rating is fitted: by their features, and by offsets without a matrix."""
    from projfree import MatrixCompletion

    given, side = ratings_by_id(args.size), ("users", "films").index(args.held_out)
    tables = {"user_features": FEATURES["users"](), "item_features": FEATURES["films"]()}
    for method, settings in {"offsets": {"radius": 1e-6, "rank": 1}, "features": tables}.items():
        errors, ids = [], np.unique(given[side])
        for seed in args.seeds:
            test = np.isin(given[side], np.random.default_rng(seed).permutation(ids)[: len(ids) // 10])
            train, held = (tuple(part[at] for part in given) for at in (~test, test))
            errors.append(MatrixCompletion(certify=False, **settings).fit(train).rmse(held))
        row = {"held out": args.held_out, "method": method, "RMSE": float(np.mean(errors)), "seeds": len(errors)}
        told(args, "cold", row, ("held out", "method"))


CALLS = {"rmse": rmse, "ranking": ranking, "fit": fit, "lists": lists, "proved": proved, "cold": cold}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=CALLS)
    parser.add_argument("size", nargs="?", default="100k", choices=["100k", "1m", *STAND_INS])
    parser.add_argument("--method", default="projfree", choices=METHODS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--test-part", type=int, default=10, help="the test part is one over this of the ratings")
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--tol", type=float, default=1e-2, help="the relative gap, for `proved`")
    parser.add_argument("--held-out", default="users", choices=["users", "films"])
    parser.add_argument("--commit", action="store_true", help="write the figures into benchmarks/results")
    arguments = parser.parse_args()
    started() if arguments.commit else None
    CALLS[arguments.what](arguments)
