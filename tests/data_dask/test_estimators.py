"""Estimators on Dask collections: the same calls, the same answers, and predictions that are collections."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, r2_score

from projfree import (
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    Squared,
    as_data,
    minimize,
)
from projfree.data.base import Fold
from projfree.data.rows import Step
from projfree.sets import sums_to

CHUNK = 70


@pytest.fixture(autouse=True)
def here():
    """Without a client, block by block; a cluster runs the same jobs."""
    with dask.config.set(scheduler="synchronous"):
        yield


def cut(*arrays):
    return [da.from_array(a, chunks=(CHUNK, *a.shape[1:])) for a in arrays]


def parts(frame):
    return dd.from_pandas(frame, npartitions=4)


@pytest.fixture(scope="module")
def problem(table):
    X, y, weight = table
    X = X * [1.0, 30.0, 0.1, 1.0, 2.0]  # columns of uneven scales
    labels = np.where(y > 0, "yes", "no").astype(object)
    classes = np.digitize(X[:, 0] + 0.3 * X[:, 3], [-0.3, 0.8])
    target = X @ [1.0, 0.1, 3.0, -1.0, 0.0] + 0.3 * np.random.default_rng(5).standard_normal(len(X))
    return {"X": X, "signs": y, "labels": labels, "classes": classes, "target": target, "weight": weight}


CLASSIFIERS = {
    "p = 1.5": ({"p": 1.5, "radius": 3.0}, "labels"),
    "the default": ({}, "labels"),
    "softmax": ({"radius": 3.0, "p": 1.5}, "classes"),
    "class weights": ({"radius": 3.0, "class_weight": "balanced"}, "classes"),
    "given class weights": ({"radius": 3.0, "class_weight": {0: 1.0, 1: 2.0, 2: 0.5}}, "classes"),
    "scikit-learn's C": ({"C": 0.7}, "signs"),
    "squared hinge": ({"loss": "squared_hinge", "p": 1, "radius": 2.0}, "classes"),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CLASSIFIERS)
def test_classifiers_agree_with_memory(problem, case, weighted):
    settings, name = CLASSIFIERS[case]
    X, y, weight = problem["X"], problem[name], problem["weight"] if weighted else None
    model, other = (ConstrainedClassifier(tol=1e-8, **settings) for _ in range(2))
    dX, dy = cut(X, y)
    model.fit(dX, dy, None if weight is None else cut(weight)[0])
    other.fit(X, y, weight)
    assert model.standardize_ == other.standardize_
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3 * np.abs(other.coef_).max())
    assert model.result_.bound <= other.result_.value * (1 + 1e-12)
    assert other.result_.bound <= model.result_.value * (1 + 1e-12)
    guess = model.predict(dX)
    assert isinstance(guess, da.Array)
    assert guess.chunks[0] == dX.chunks[0]
    np.testing.assert_array_equal(guess.compute(), model.predict(X))
    weights = None if weight is None else cut(weight)[0]
    assert model.score(dX, dy, weights) == pytest.approx(accuracy_score(y, model.predict(X), sample_weight=weight))
    assert model.verify(dX, dy, weights).ok


REGRESSORS = {
    "l_1": {"p": 1, "radius": 2.0},
    "automatic": {},
    "alpha": {"alpha": 0.3},
    "not standardised": {"standardize": False, "radius": 1.0, "p": 1.3},
    "quantile": {"loss": "quantile", "radius": 3.0, "tol": 1e-3},
}


@pytest.mark.parametrize("case", REGRESSORS)
def test_regressors_agree_with_memory(problem, case):
    X, y = problem["X"], problem["target"]
    settings = {"tol": 1e-8, **REGRESSORS[case]}
    model, other = (ConstrainedRegressor(**settings) for _ in range(2))
    dX, dy = cut(X, y)
    model.fit(dX, dy)
    other.fit(X, y)
    np.testing.assert_allclose(model.result_.value, other.result_.value, rtol=10.0 * settings["tol"])
    np.testing.assert_allclose(model.predict(dX).compute(), model.predict(X))
    assert model.score(dX, dy) == pytest.approx(r2_score(y, model.predict(X)))


def test_frames_with_unknown_sizes(problem):
    frame = pd.DataFrame(problem["X"], columns=list("abcde")).assign(y=problem["labels"], s=problem["weight"])
    dframe = parts(frame)
    dframe = dframe[dframe.a > -10.0]  # of which nobody knows how many rows it has
    model = ConstrainedClassifier(radius=2.0, tol=1e-8).fit(dframe[list("abcde")], dframe.y, dframe.s)
    other = ConstrainedClassifier(radius=2.0, tol=1e-8).fit(frame[list("abcde")], frame.y, frame.s)
    assert model.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4)
    proba = model.predict_proba(dframe[list("abcde")])
    np.testing.assert_allclose(proba.compute(), model.predict_proba(frame[list("abcde")]))


def test_partitions_without_rows_do_not_count(problem):
    X, y = problem["X"], problem["signs"]
    cuts = [0, 0, 100, 100, 240, 240]
    blocks = [[dask.delayed(a[i:j]) for i, j in pairwise(cuts)] for a in (X, y)]
    model = ConstrainedClassifier(radius=2.0).fit(*blocks)
    np.testing.assert_allclose(model.coef_, ConstrainedClassifier(radius=2.0).fit(X, y).coef_, rtol=1e-6)
    assert [len(part) for part in dask.compute(*model.predict(blocks[0]))] == [0, 100, 0, 140, 0]


def test_sparse_blocks_and_arrays_of_targets(problem):
    X = np.where(np.abs(problem["X"]) > 1.0, problem["X"], 0.0)
    blocks = [dask.delayed(sp.csr_matrix)(X[k : k + CHUNK]) for k in range(0, len(X), CHUNK)]
    y = [problem["target"][k : k + CHUNK] for k in range(0, len(X), CHUNK)]
    model = ConstrainedRegressor(radius=1.0).fit(blocks, [dask.delayed(part) for part in y])
    other = ConstrainedRegressor(radius=1.0).fit(sp.csr_matrix(X), problem["target"])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5, atol=1e-7)
    with pytest.raises(TypeError, match=r"`y` must be a Dask array or data frame, .*compute_chunk_sizes"):
        ConstrainedRegressor(radius=1.0).fit(blocks, problem["target"])


def test_searches_over_radii(problem):
    X, y = problem["X"], problem["labels"]
    model = ConstrainedClassifierCV(p=[1, 2], radii=5, cv=3).fit(*cut(X, y))
    assert model.scores_.shape[0] == 2
    assert model.scores_.shape[2] == 3
    assert model.best_score_ > 0.7
    alone = ConstrainedClassifier(p=model.p_, radius=model.radius_).fit(X, y)
    np.testing.assert_allclose(model.result_.value, alone.result_.value, rtol=1e-5)
    again = ConstrainedRegressorCV(radii=[1.0, 3.0, 9.0, 27.0], cv=3, standardize=True).fit(*cut(X, problem["target"]))
    assert again.path_.coefs.shape == (4, 5)
    with pytest.raises(ValueError, match="`scoring` must be None or 'accuracy' where rows are not at hand"):
        ConstrainedClassifierCV(radii=3, scoring="roc_auc").fit(*cut(X, y))


@dataclass(frozen=True)
class Counted(Step):
    """The number of rows with some weight."""

    def block(self, rows, *images):
        return None, np.array([np.count_nonzero(np.broadcast_to(rows.s, len(images[0])))], dtype=np.float64)


def test_folds_share_no_rows_and_leave_none_out(problem):
    X, y = cut(problem["X"], problem["target"])
    zero = np.zeros(5)
    sides = [
        [tuple(data.subset(Fold(3, 4, k, inside)) for inside in (False, True)) for k in range(4)]
        for data in (as_data(X, y), as_data(X, y, cut(problem["weight"])[0]))
    ]
    for folds in sides:
        counts = []
        for pair in folds:
            fs = [Objective(Squared(), data) for data in pair]
            counts.append([int(f.workspace.fold(Counted(), (f.point(zero),))[0]) for f in fs])
        assert [sum(pair) for pair in counts] == [240] * 4
        assert sum(held for _, held in counts) == 240
        assert max(held for _, held in counts) <= 64


def test_nothing_is_computed_whole(problem, monkeypatch):
    """At most one block beyond what is kept is alive at a time."""
    from weakref import WeakSet

    from projfree.data.dask.partition import Partition

    computed, alive, most = [], WeakSet(), [0]

    def note(k, block):
        computed.append(k)
        return block

    X = problem["X"]
    blocks = [dask.delayed(note)(k, X[k : k + 24]) for k in range(0, 240, 24)]
    y = [dask.delayed(problem["signs"][k : k + 24]) for k in range(0, 240, 24)]
    begun = Partition.__init__

    def counted(self, *args):
        begun(self, *args)
        alive.add(self)
        most[0] = max(most[0], len(alive))

    monkeypatch.setattr(Partition, "__init__", counted)
    data = as_data(blocks, y, memory=1)
    result = minimize(Objective(Logistic(), data), LpBall(2, 1.0), PrimalAveraging(), max_iter=2, tol=0.0)
    assert result.n_iter == 2
    assert most[0] <= 2
    assert len(computed) >= 40


def test_what_would_gather_rows_is_refused(problem):
    X, y = cut(problem["X"], problem["target"])
    with pytest.raises(TypeError, match="`partial_fit` takes arrays, part by part"):
        ConstrainedRegressor().partial_fit(X, y)
    with pytest.raises(ValueError, match="`free` looks at single rows, which DaskData does not show"):
        ConstrainedRegressor(free=[0]).fit(X, y)
    with pytest.raises(ValueError, match=r"`fit\(collection, y\)` needs targets"):
        ConstrainedRegressor().fit(X)


@pytest.mark.parametrize("p", [1, 1.5])
@pytest.mark.filterwarnings("ignore:.*the best radius")
def test_constraints_agree_with_memory(problem, p):
    X, y = problem["X"], problem["labels"]
    asked = {"signs": {0: 1}, "order": [[1, 2, 3]], "constraints": sums_to(0.5, [0, 4]), "standardize": True}
    dX, dy = cut(X, y)
    model, other = (ConstrainedClassifier(p=p, radius=2.0, tol=1e-8, **asked) for _ in range(2))
    model.fit(dX, dy)
    other.fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-6)
    w = model.coef_.ravel()
    assert w[0] >= 0.0
    assert w[1] <= w[2] <= w[3]
    assert abs(w[0] + w[4] - 0.5) <= 1e-12
    assert model.verify(dX, dy).ok
    found = ConstrainedClassifierCV(p=p, radii=4, cv=3, **asked).fit(dX, dy)
    assert found.path_.radii[0] > 0.0
