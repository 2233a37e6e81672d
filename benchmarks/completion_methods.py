"""The methods of the benchmark of matrix completion: each fits ratings and gives predictions and a note."""

from __future__ import annotations

import os

import numpy as np
from completion_data import scale
from completion_tuning import Tuned


def projfree(train, radius=None, **settings):
    from projfree import MatrixCompletion

    model = MatrixCompletion(radius=radius, **settings).fit(train)
    proved = f" gap {model.relative_gap_:.2g}" if np.isfinite(model.relative_gap_) else ""
    return model.predict, f"radius {model.radius_:.4g} implicit {model.settings_.implicit:g}{proved}"


def surprise(train, kind="SVD", **settings):
    import pandas as pd
    import surprise as peer

    frame = pd.DataFrame({"u": train[0], "i": train[1], "r": train[2]})
    data = peer.Dataset.load_from_df(frame, peer.Reader(rating_scale=scale(train))).build_full_trainset()
    model = getattr(peer, kind)(random_state=0, **settings).fit(data)
    return lambda pairs: np.array([model.predict(u, i).est for u, i in zip(*pairs, strict=True)]), kind


def threads():
    """As many as projfree takes."""
    return int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))


def cmfrec(train, **settings):
    import pandas as pd
    from cmfrec import CMF

    frame = pd.DataFrame({"UserId": train[0], "ItemId": train[1], "Rating": train[2]})
    model = CMF(verbose=False, nthreads=threads(), random_state=0, **settings).fit(frame)
    return lambda pairs: np.nan_to_num(model.predict(*pairs), nan=float(train[2].mean())), "cmfrec"


def implicit_als(model, train, test, found, factors=40):
    """Precision and recall of lists by implicit's ALS of which items were rated, judged as ours are."""
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_array

    from projfree.completion.recommend import judged

    places = [
        np.searchsorted(ids, column) for ids, column in zip((model.user_ids_, model.item_ids_), train, strict=False)
    ]
    seen = csr_array((np.ones(len(train[2])), places), shape=(len(model.user_ids_), len(model.item_ids_)))
    peer = AlternatingLeastSquares(factors=factors, random_state=0)
    peer.fit(seen, show_progress=False)
    rows, cols = model._places(test[0], test[1])
    at = (rows >= 0) & (test[2] >= found.threshold)
    users, lists = np.unique(rows[at], return_inverse=True)
    top = peer.recommend(users, seen[users], N=found.k)[0]
    return judged([top], np.stack([lists, cols[at]]), seen.shape[1])[:2]


#: What each method may choose from: about as many settings for each, peers as their authors recommend.
OURS = [{"p": p, "rank": rank, "certify": False} for p in (1.0, 1.1, 1.2) for rank in (20, 40, 80)]
IMPLICIT = {"k": 100, "scale_lam": True, "add_implicit_features": True}
CMFREC = [
    {**IMPLICIT, "lambda_": penalty, "w_implicit": w}
    for penalty in (0.05, 0.06, 0.07, 0.08, 0.1, 0.12)
    for w in (0.5, 1.0, 2.0, 4.0, 8.0)
]
CMFREC_PLAIN = [{"k": 100, "scale_lam": True, "lambda_": penalty} for penalty in (0.03, 0.05, 0.07, 0.1)]
SURPRISE = [{"n_factors": 100, "n_epochs": 100, "reg_all": penalty} for penalty in (0.02, 0.05, 0.1)]
METHODS = {
    "projfree": lambda train: projfree(train, certify=False),
    "projfree-defaults": projfree,
    "projfree-sharp": lambda train: projfree(train, certify="sharp"),
    "projfree-ratings": lambda train: projfree(train, implicit=0.0, certify=False),
    "projfree-1.1": lambda train: projfree(train, p=1.1, certify=False),
    "projfree-1.2": lambda train: projfree(train, p=1.2, certify=False),
    "projfree-no-offsets": lambda train: projfree(train, offsets=(True, False, False), certify=False),
    "projfree-given": lambda train: projfree(train, radius=4617.0, max_sweeps=8, certify=False),
    "projfree-tuned": Tuned(projfree, OURS),
    "surprise": surprise,
    "surprise-tuned": Tuned(surprise, SURPRISE),
    "surprise-given": Tuned(surprise, SURPRISE).given(1),
    "surprise-svdpp": lambda train: surprise(train, "SVDpp", cache_ratings=True),
    "cmfrec": lambda train: cmfrec(train, **{**IMPLICIT, "k": 50}, lambda_=0.07, w_implicit=1.0),
    "cmfrec-tuned": Tuned(cmfrec, CMFREC),
    "cmfrec-ratings-tuned": Tuned(cmfrec, CMFREC_PLAIN),
}
