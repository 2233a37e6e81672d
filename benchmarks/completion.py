"""Matrix completion against its peers, one method and one split a call, so that peers can live in another environment.

    python benchmarks/completion.py rmse 1m --method projfree --seeds 0 1 2 3 4
    other/python benchmarks/completion.py rmse 1m --method surprise --seeds 0 1 2 3 4
    python benchmarks/completion.py rmse 1m --method projfree --seeds 0 1 2 3 4 --commit
    python benchmarks/completion.py rmse --file ratings.tab --method projfree-defaults
    python benchmarks/completion.py memory --ratings 20000000
    python benchmarks/completion.py oracle
    python benchmarks/completion.py cold 1m --held-out users --seeds 0 1 2 --commit

Protocol: rows in file order, ``perm = default_rng(seed).permutation(n)``, the test part is the first tenth of ``perm``
(``--test-part 5``: the first fifth); predictions clipped to the range of the ratings; what a method tunes it tunes on a
tenth of the training part. A file of one's own has user, item and rating in its first three columns, lines of text
ignored. ``long-tail`` and ``small-catalogue`` are stand-ins that are made here.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import time
import zipfile
from pathlib import Path

import numpy as np


def ratings(size):
    """Users, films and ratings of MovieLens, from PROJFREE_DATA; read here, since peers' environments lack projfree."""
    folder, name = Path(os.environ["PROJFREE_DATA"]), "ml-100k/u.data*" if size == "100k" else "ml-1m/ratings*.dat*"
    path = next(folder.glob(name))
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            text = archive.read(archive.namelist()[0]).decode()
    else:
        text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    rows = len(text.splitlines())
    table = np.array(text.replace("::", " ").split(), dtype=np.int64).reshape(rows, -1)
    users = np.unique(table[:, 0], return_inverse=True)[1]
    items = np.unique(table[:, 1], return_inverse=True)[1]
    return users, items, table[:, 2].astype(float)


def own_ratings(path):
    """The first three columns of a text file, as far as they are numbers."""
    rows = []
    for line in Path(path).read_text().splitlines():
        parts = line.replace(",", " ").split()[:3]
        try:
            rows.append([float(part) for part in parts])
        except ValueError:  # a heading
            continue
    users, items, values = np.array([row for row in rows if len(row) == 3]).T
    return np.unique(users, return_inverse=True)[1], np.unique(items, return_inverse=True)[1], values


def split(n, part, seed):
    perm = np.random.default_rng(seed).permutation(n)
    cut = n // part
    return perm[cut:], perm[:cut]


def projfree(train, radius=None, **settings):
    from projfree.estimators.completion import MatrixCompletion

    model = MatrixCompletion(radius=radius, **settings).fit(train)
    return model.predict, f"radius {model.radius_:.4g} implicit {model.implicit_:g} gap {model.relative_gap_:.2g}"


def held_out(train):
    """The training part without its tuning tenth, and that tenth."""
    order = np.random.default_rng(0).permutation(len(train[2]))
    cut = len(order) // 10
    return [tuple(column[rows] for column in train) for rows in (order[cut:], order[:cut])]


def scale(train):
    """The smallest and the largest rating."""
    return float(train[2].min()), float(train[2].max())


def tuned(fit, settings):
    """``fit`` with the settings whose RMSE on the tuning tenth is least, on all of the training part."""

    def choose(train):
        inside, out = held_out(train)
        errors = []
        for chosen in settings:
            predict, _ = fit(inside, **chosen)
            errors.append(float(np.mean((np.clip(predict(out[:2]), *scale(train)) - out[2]) ** 2)))
        best = settings[int(np.argmin(errors))]
        begun = time.perf_counter()
        predict, note = fit(train, **best)
        return predict, f"{best} of {len(settings)} {note}, last fit {time.perf_counter() - begun:.1f} s"

    return choose


def surprise(train, kind="SVD", **settings):
    import pandas as pd
    import surprise as peer

    frame = pd.DataFrame({"u": train[0], "i": train[1], "r": train[2]})
    data = peer.Dataset.load_from_df(frame, peer.Reader(rating_scale=scale(train))).build_full_trainset()
    model = getattr(peer, kind)(random_state=0, **settings).fit(data)
    return lambda pairs: np.array([model.predict(u, i).est for u, i in zip(*pairs, strict=True)]), kind


def cmfrec(train, **settings):
    import pandas as pd
    from cmfrec import CMF

    frame = pd.DataFrame({"UserId": train[0], "ItemId": train[1], "Rating": train[2]})
    model = CMF(verbose=False, nthreads=2, random_state=0, **settings).fit(frame)
    return lambda pairs: np.nan_to_num(model.predict(*pairs), nan=float(train[2].mean())), "cmfrec"


#: What each method may choose from: about as many settings for each, peers as their authors recommend.
OURS = [{"p": p, "weight_power": a, "certify": False} for p in (1.0, 1.1, 1.2) for a in (0.0, 0.25, 0.5)]
IMPLICIT = {"k": 100, "scale_lam": True, "add_implicit_features": True}
CMFREC = [
    {**IMPLICIT, "lambda_": penalty, "w_implicit": w} for penalty in (0.03, 0.05, 0.07, 0.1) for w in (0.2, 0.5, 1.0)
]
CMFREC_PLAIN = [{"k": 100, "scale_lam": True, "lambda_": penalty} for penalty in (0.03, 0.05, 0.07, 0.1)]
SURPRISE = [{"n_factors": 100, "n_epochs": 100, "reg_all": penalty} for penalty in (0.02, 0.05, 0.1)]
METHODS = {
    "projfree": lambda train: projfree(train, certify=False),
    "projfree-defaults": projfree,
    "projfree-sharp": lambda train: projfree(train, certify="sharp"),
    "projfree-three": lambda train: projfree(train, n_models=3, certify=False),
    "projfree-ratings": lambda train: projfree(train, implicit=0.0, certify=False),
    "projfree-1.1": lambda train: projfree(train, p=1.1, certify=False),
    "projfree-1.2": lambda train: projfree(train, p=1.2, certify=False),
    "projfree-plain": lambda train: projfree(train, weight_power=0.0, certify=False),
    "projfree-no-offsets": lambda train: projfree(train, offsets=(True, False, False), certify=False),
    "projfree-given": lambda train: projfree(train, radius=4617.0, max_sweeps=8, certify=False),
    "projfree-certified": lambda train: projfree(train, radius=1400.0, p=1.2, rank=60, tol=1e-2),
    "projfree-tuned": tuned(projfree, OURS),
    "surprise": surprise,
    "surprise-tuned": tuned(surprise, SURPRISE),
    "surprise-svdpp": lambda train: surprise(train, "SVDpp", cache_ratings=True),
    "cmfrec": lambda train: cmfrec(train, **{**IMPLICIT, "k": 50}, lambda_=0.07, w_implicit=1.0),
    "cmfrec-tuned": tuned(cmfrec, CMFREC),
    "cmfrec-ratings-tuned": tuned(cmfrec, CMFREC_PLAIN),
}
#: Tables that are made here; those of MovieLens are read.
STAND_INS = {"long-tail": "long_tail", "small-catalogue": "small_catalogue"}


def rmse(args):
    name, found, times = args.size if args.file is None else Path(args.file).name, [], []
    made = globals()[STAND_INS[name]] if name in STAND_INS else None
    users, items, values = made() if made else ratings(name) if args.file is None else own_ratings(args.file)
    for seed in args.seeds:
        train, test = split(len(values), args.test_part, seed)
        begun, worked = time.perf_counter(), time.process_time()
        predict, note = METHODS[args.method]((users[train], items[train], values[train]))
        seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
        error = np.clip(predict((users[test], items[test])), *scale([None, None, values])) - values[test]
        found.append(float(np.sqrt(np.mean(error**2))))
        times.append((seconds, cpu))
        print(
            f"{name} {args.method} seed {seed}: RMSE {found[-1]:.4f}  fit {seconds:.1f} s, {cpu:.1f} CPU s  {note}",
            flush=True,
        )
    print(f"{name} {args.method}: mean RMSE {np.mean(found):.4f}", flush=True)
    if args.commit:
        seconds, cpu = np.median(times, axis=0).tolist()
        row = {"data": name, "method": args.method, "test part": f"1/{args.test_part}", "RMSE": float(np.mean(found))}
        row |= {"seeds": len(found), "median s": seconds, "median CPU s": cpu}
        told("results", row, ("data", "method", "test part"))


def told(part, row, same):
    """Write a row of figures into the repository, in place of an earlier one with the same first columns."""
    from record import commit, committed, machine

    info, before = machine(), committed("completion")
    kept = [one for one in before.get(part, []) if any(one[key] != row[key] for key in same)]
    rows = sorted([*kept, row | {"date": info["date"]}], key=lambda one: [one[key] for key in same])
    commit("completion", before | {"machine": info, part: rows})


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


def memory(args):
    from projfree import Entries, Objective, PrimalAveraging, SchattenBall, Squared, as_data, minimize

    users, items, values = synthetic(args.ratings)
    begun = time.perf_counter()
    f = Objective(Squared(), as_data(Entries(users, items, (140_000, 27_000)), values - 3.5))
    built, begun = time.perf_counter() - begun, time.perf_counter()
    result = minimize(f, SchattenBall(1.2, 300.0), PrimalAveraging(), max_iter=20, tol=0.0, record=0)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    zero = f.value(f.point(0.0 * result.w))
    print(
        f"{args.ratings:,} ratings: {built:.1f} s to sort them, {seconds:.1f} s for 20 iterations, peak {peak:.2f} GB"
    )
    print(f"  loss {zero:.4f} at zero, {result.value:.4f} now, proven gap {result.gap:.3g}, {result.w}", flush=True)
    if args.commit:
        told("memory", {"ratings": args.ratings, "s": seconds, "peak GB": peak}, ("ratings",))


def oracle(args):
    from scipy.sparse.linalg import svds

    from projfree import Entries, Objective, SchattenBall, Squared, as_data
    from projfree.algebra import LowRank, OnPattern
    from projfree.runtime import single_blas

    users, items, values = ratings("1m")
    shape = (int(users.max()) + 1, int(items.max()) + 1)
    data = as_data(Entries(users, items, shape), values - values.mean())
    f, ball = Objective(Squared(), data), SchattenBall(1.2, 1.0)
    g = f.minorant(f.point(LowRank(shape, ()))).gradient
    rng = np.random.default_rng(0)
    with single_blas():
        warm = ball.oracle(g).warm
        for step in range(3):
            g = OnPattern(g.pattern, g.values * (1.0 + 0.02 * rng.standard_normal(len(g.values))))
            start = warm[:, 0].copy()
            begun = time.perf_counter()
            v, _, warm = ball.oracle(g, warm)
            ours, begun = time.perf_counter() - begun, time.perf_counter()
            svds(g.pattern.matrix(g.values), k=v.rank, v0=start, tol=1e-3)
            theirs = time.perf_counter() - begun
            ratio = theirs / ours
            print(f"call {step}: rank {v.rank}, {ours:.3f} s, svds {theirs:.3f} s, ratio {ratio:.1f}", flush=True)


def cold(args):
    from completion_cold import cold as compared

    folder = Path(os.environ["PROJFREE_DATA"])
    text = gzip.decompress(next(folder.glob("ml-1m/ratings*.dat*")).read_bytes()).decode()
    rows = np.array([line.split("::")[:3] for line in text.splitlines()], dtype=np.int64)
    given = (rows[:, 0], rows[:, 1], rows[:, 2].astype(float))  # with the ids of the file, for their features
    errors = compared(given, ("users", "films").index(args.held_out), args.seeds, args.weights)
    for method, found in errors.items() if args.commit else ():
        row = {"held out": args.held_out, "method": method, "RMSE": float(np.mean(found)), "seeds": len(found)}
        told("cold", row, ("held out", "method"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["rmse", "memory", "oracle", "cold"])
    parser.add_argument("size", nargs="?", default="100k", choices=["100k", "1m", *STAND_INS])
    parser.add_argument("--method", default="projfree", choices=METHODS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--test-part", type=int, default=10, help="the test part is one over this of the ratings")
    parser.add_argument("--file")
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--commit", action="store_true", help="write the figures into benchmarks/results")
    parser.add_argument("--held-out", default="users", choices=["users", "films"])
    parser.add_argument("--weights", type=float, nargs="+", default=[1.0], help="of features, to compare")
    arguments = parser.parse_args()
    {"rmse": rmse, "memory": memory, "oracle": oracle, "cold": cold}[arguments.what](arguments)
