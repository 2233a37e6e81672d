"""Matrix completion against its peers, one method and one split a call, so that peers can live in another environment.

    python benchmarks/completion.py rmse 1m --method projfree --seeds 0 1 2 3 4
    other/python benchmarks/completion.py rmse 1m --method surprise --seeds 0 1 2 3 4
    python benchmarks/completion.py rmse 1m --method projfree --seeds 0 1 2 3 4 --commit
    other/python benchmarks/completion.py rmse 1m --method surprise-tuned --tuned-on 0 --pieces FILE --most 1
    python benchmarks/completion.py table
    python benchmarks/completion.py rmse --file ratings.tab --method projfree-defaults
    python benchmarks/completion.py memory --ratings 20000000
    python benchmarks/completion.py sweeps --ratings 3000000
    python benchmarks/completion.py fit --ratings 20000000
    python benchmarks/completion.py proved 1m --p 1 --commit
    python benchmarks/completion.py oracle
    python benchmarks/completion.py cold 1m --held-out users --seeds 0 1 2 --commit
    python benchmarks/completion.py ranking 1m
    python benchmarks/completion.py lists --ratings 1000000

Protocol: rows in file order, ``perm = default_rng(seed).permutation(n)``, the test part is the first tenth of ``perm``
(``--test-part 5``: the first fifth); predictions clipped to the range of the ratings; what a method tunes it tunes on a
tenth of the training part. A file of one's own has user, item and rating in its first three columns, lines of text
ignored. ``long-tail`` and ``small-catalogue`` are stand-ins that are made here.

``--tuned-on SEED`` departs from this to save time: a method is tuned on the training part of that seed alone, and its
settings serve for all seeds. That training part holds most of the ratings that the other seeds test on, so that the
settings of these have seen test ratings. This favours the method that is tuned: in the tables of the repository a peer,
since ours is not tuned there. The note of the row says so.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
from completion_data import STAND_INS, ratings, ratings_by_id, scale, split, synthetic, table
from completion_methods import METHODS, threads
from completion_tuning import Pieces, Tuned

#: Sweeps that are timed; the first one's end is where the second begins.
SWEEPS = 4


def rmse(args):
    name, part = args.size if args.file is None else Path(args.file).name, f"1/{args.test_part}"
    given, pieces, called = table(name, args.file), Pieces(args.pieces, args.most), f"{name} {part} {args.method}"
    fits = []
    for seed in args.seeds:
        method = settled(args, given, seed, pieces, called)
        fits.append(pieces.get(f"{called} seed {seed}", partial(fitted, args, given, seed, method)))
    errors, seconds, cpu, notes = (list(column) for column in zip(*fits, strict=True))
    print(f"{called}: mean RMSE {np.mean(errors):.4f}", flush=True)
    if args.commit:
        row = {"data": name, "method": args.method, "test part": part, "RMSE": float(np.mean(errors))}
        row |= {"seeds": len(errors), "median s": float(np.median(seconds)), "median CPU s": float(np.median(cpu))}
        shared = args.tuned_on is not None and isinstance(METHODS[args.method], Tuned)
        note = f"{notes[-1]}; settings of seed {args.tuned_on} for all" if shared else notes[-1]
        row |= {"threads": threads(), "note": note}
        row["by seed"] = {str(seed): error for seed, error in zip(args.seeds, errors, strict=True)}
        told("results", row, ("data", "method", "test part"))


def settled(args, given, seed, pieces, called):
    """The method of the call, with settings where it is tuned: on the seed's own training part, or on another one's."""
    method = METHODS[args.method]
    if not isinstance(method, Tuned):
        return method
    on = seed if args.tuned_on is None else args.tuned_on
    train = split(len(given[2]), args.test_part, on)[0]
    return method.settled(tuple(column[train] for column in given), pieces, f"{called} tuned on {on}")


def fitted(args, given, seed, method):
    """The RMSE of a method with a seed, the seconds and those of the processor that the fit took, and its note."""
    train, test = split(len(given[2]), args.test_part, seed)
    begun, worked = time.perf_counter(), time.process_time()
    predict, note = method(tuple(column[train] for column in given))
    seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
    error = np.clip(predict(tuple(column[test] for column in given[:2])), *scale(given)) - given[2][test]
    found = float(np.sqrt(np.mean(error**2)))
    print(f"seed {seed}: RMSE {found:.4f}  fit {seconds:.1f} s, {cpu:.1f} CPU s  {note}", flush=True)
    return found, seconds, cpu, note


@cache
def started():
    """What the figures of this call depend on, with the load before it has begun."""
    from record import machine

    return machine()


def told(part, row, same):
    """Write a row of figures into the repository, in place of an earlier one with the same first columns.

    Rows come from different calls, so that each has its own date, commit and load.
    """
    from record import commit, committed

    info, before = started(), committed("completion")
    kept = [one for one in before.get(part, []) if any(one[key] != row[key] for key in same)]
    row |= {key: info[key] for key in ("date", "commit", "load")}
    common = {key: info[key] for key in ("date", "processor", "software", "threads")}
    rows = sorted([*kept, row], key=lambda one: [one[key] for key in same])
    commit("completion", before | {"machine": common, part: rows})


def compared(args):
    from completion_table import write

    write()


def memory(args):
    from projfree import Entries, Objective, PrimalAveraging, SchattenBall, Squared, as_data, minimize

    users, items, values = synthetic(args.ratings)
    begun = time.perf_counter()
    f = Objective(Squared(), as_data(Entries(users, items, (140_000, 27_000)), values - 3.5))
    built, begun = time.perf_counter() - begun, time.perf_counter()
    result = minimize(f, SchattenBall(1.2, 300.0), PrimalAveraging(), max_iter=20, tol=0.0, record=0)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    zero = f(f.point(0.0 * result.w))
    print(
        f"{args.ratings:,} ratings: {built:.1f} s to sort them, {seconds:.1f} s for 20 iterations, peak {peak:.2f} GB"
    )
    print(f"  loss {zero:.4f} at zero, {result.value:.4f} now, proven gap {result.gap:.3g}, {result.w}", flush=True)
    if args.commit:
        told("memory", {"ratings": args.ratings, "s": seconds, "peak GB": peak}, ("ratings",))


def sweeps(args):
    """Seconds of the processor before the first sweep and of each of some, with implicit features, and the peak."""
    from projfree import MatrixCompletion

    given = synthetic(args.ratings)
    before, begun, ends = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, time.process_time(), []

    def enough(run):
        ends.append(time.process_time())
        return len(ends) >= SWEEPS

    MatrixCompletion(implicit=1.0, certify=False, callbacks=[enough]).fit(given)
    each = float(np.median(np.diff(ends[:SWEEPS])))
    first = ends[0] - begun - each
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{args.ratings:,} ratings: {first:.1f} CPU s before the first sweep, {each:.2f} each, peak {peak:.2f} GB, of "
        f"which {before:.2f} before the fit",
        flush=True,
    )
    if args.commit:
        row = {"ratings": args.ratings, "CPU s before": first, "CPU s a sweep": each, "peak GB": peak}
        told("sweeps", row | {"GB before": before}, ("ratings",))


def fit(args):
    """Seconds of the processor of a whole fit with all its defaults, and the peak of memory."""
    from projfree import MatrixCompletion

    given = synthetic(args.ratings)
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, time.process_time()
    model = MatrixCompletion().fit(given)
    cpu, peak = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row = {"ratings": args.ratings, "CPU s": cpu, "peak GB": peak, "GB before": before}
    row |= {"relative gap": model.relative_gap_, "threads": threads()}
    print(row, flush=True)
    if args.commit:
        told("fits", row, ("ratings",))


def proved(args):
    """Seconds of a fit without implicit features until its relative gap is proved, at the radius that a fit chooses."""
    from projfree import MatrixCompletion

    given = table(args.size)
    train = tuple(column[split(len(given[2]), args.test_part, 0)[0]] for column in given)
    for p in args.p:
        radius = MatrixCompletion(p=p, implicit=0.0, certify=False).fit(train).radius_
        begun, worked = time.perf_counter(), time.process_time()
        model = MatrixCompletion(p=p, radius=radius, implicit=0.0).fit(train).certify_to(args.tol)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
        row = {"data": args.size, "p": p, "tol": args.tol, "radius": radius, "relative gap": model.relative_gap_}
        row |= {"components": len(model.factors_.sigma), "s": seconds, "CPU s": cpu, "threads": threads()}
        print(row, flush=True)
        if args.commit:
            told("proved", row, ("data", "p", "tol"))


def oracle(args):
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    from projfree import Entries, Objective, SchattenBall, Squared, as_data
    from projfree.algebra import LowRank, OnPattern
    from projfree.runtime import single_blas

    users, items, values = ratings("1m")
    shape = (int(users.max()) + 1, int(items.max()) + 1)
    data = as_data(Entries(users, items, shape), values - values.mean())
    f, ball = Objective(Squared(), data), SchattenBall(1.2, 1.0)
    g = f.evaluate(f.point(LowRank(shape, ()))).slope.gradient
    rng = np.random.default_rng(0)
    with single_blas():
        warm = ball.oracle(g).warm
        for step in range(3):
            g = OnPattern(g.pattern, g.values * (1.0 + 0.02 * rng.standard_normal(len(g.values))))
            start = warm[:, 0].copy()
            begun = time.perf_counter()
            v, _, warm = ball.oracle(g, warm)
            ours, begun = time.perf_counter() - begun, time.perf_counter()
            matrix = csr_array((g.values, g.pattern.indices, g.pattern.indptr), shape=g.pattern.shape)
            svds(matrix, k=v.rank, v0=start, tol=1e-3)
            theirs = time.perf_counter() - begun
            ratio = theirs / ours
            print(f"call {step}: rank {v.rank}, {ours:.3f} s, svds {theirs:.3f} s, ratio {ratio:.1f}", flush=True)


def cold(args):
    from completion_cold import cold as compared

    given = ratings_by_id(args.size)  # whose features are found by them
    errors = compared(given, ("users", "films").index(args.held_out), args.seeds)
    for method, found in errors.items() if args.commit else ():
        row = {"held out": args.held_out, "method": method, "RMSE": float(np.mean(found)), "seeds": len(found)}
        told("cold", row, ("held out", "method"))


def ranking(args):
    """Precision and recall of lists of ten items: ours, by popularity, and of implicit's ALS if that is installed."""
    from projfree import MatrixCompletion

    given = table(args.size, args.file)
    train, test = (tuple(column[rows] for column in given) for rows in split(len(given[2]), args.test_part, 0))
    model = MatrixCompletion(certify=False).fit(train)
    found = model.report(test)
    rows = {"projfree": (found.precision, found.recall), "popularity": (found.popular_precision, found.popular_recall)}
    try:
        from completion_methods import implicit_als

        rows["implicit ALS"] = implicit_als(model, train, test, found)
    except ImportError as error:
        print(f"implicit is left out: {error}", flush=True)
    for method, (precision, recall) in rows.items():
        print(f"{args.size}: {method} precision {precision:.4f}, recall {recall:.4f}", flush=True)
        if args.commit:
            told(
                "ranking", {"data": args.size, "method": method, "precision": precision, "recall": recall}, ("method",)
            )


def lists(args):
    """Seconds of the processor of recommendations for 2,000 users among 340,000 items, and of the bare products."""
    from projfree import MatrixCompletion
    from projfree.completion.recommend import Ranking

    users, items, values = synthetic(args.ratings, (2_000, 340_000))
    model = MatrixCompletion(radius=50.0, implicit=1.0, max_sweeps=2, certify=False).fit((users, items, values))
    model.recommend(n=10)  # compiles
    begun = time.process_time()
    model.recommend(n=10)
    ours, begun = time.process_time() - begun, time.process_time()
    factors, table = model.factors_, Ranking(model._completed, "likely", True, 1.0)._items
    left = np.hstack([factors.left, factors.below, np.ones((len(factors.left), 1))])
    for start in range(0, len(left), 64):
        left[start : start + 64] @ table.T
    bare = time.process_time() - begun
    print(f"{len(left):,} users x {len(table):,} items: {ours:.1f} CPU s, bare products {bare:.1f}, {ours / bare:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "what", choices=["rmse", "table", "memory", "sweeps", "fit", "proved", "oracle", "cold", "ranking", "lists"]
    )
    parser.add_argument("size", nargs="?", default="100k", choices=["100k", "1m", *STAND_INS])
    parser.add_argument("--method", default="projfree", choices=METHODS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--test-part", type=int, default=10, help="the test part is one over this of the ratings")
    parser.add_argument("--tuned-on", type=int, help="the seed whose settings serve for all, else each has its own")
    parser.add_argument("--pieces", help="a file for finished fits, from which the same command goes on")
    parser.add_argument("--most", type=int, help="begin at most so many fits")
    parser.add_argument("--file")
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--commit", action="store_true", help="write the figures into benchmarks/results")
    parser.add_argument("--p", type=float, nargs="+", default=[1.0], help="exponents of the norm, for `proved`")
    parser.add_argument("--tol", type=float, default=1e-2, help="the relative gap, for `proved`")
    parser.add_argument("--held-out", default="users", choices=["users", "films"])
    arguments = parser.parse_args()
    started()
    told_by = {"rmse": rmse, "table": compared, "memory": memory, "sweeps": sweeps, "fit": fit, "proved": proved}
    told_by |= {"oracle": oracle, "cold": cold, "ranking": ranking, "lists": lists}
    told_by[arguments.what](arguments)
