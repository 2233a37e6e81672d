"""The stages of a fit: the choice of a radius, the time they share, and going on after a stop."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import entries
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import projfree.deadline as deadline_module
from projfree.estimators.completion import MatrixCompletion
from projfree.numerics import spectra

SHAPE = (30, 20)


@pytest.fixture(scope="module")
def ratings():
    return entries(*SHAPE, 300, seed=3)


def quick(**settings):
    return MatrixCompletion(**{"rank": 4, "radius": 15.0, **settings})


@pytest.mark.parametrize(("p", "implicit"), [(1.0, 1.0), (1.2, 0.0)])
def test_leading_parts_of_spectra_prove_the_gap_of_the_same_problem(ratings, monkeypatch, p, implicit):
    settings = {"p": p, "radius": 10.0, "rank": 2, "implicit": implicit, "max_sweeps": 5}
    exact = quick(**settings).fit(ratings).certify_to(1e-4)
    for name, size in {"DENSE_ENTRIES": 0, "EVERY_SIDE": 0, "FIRST_BLOCK": 4}.items():
        monkeypatch.setattr(spectra, name, size)
    model = quick(**settings).fit(ratings)
    before = model.relative_gap_
    model.certify_to(1e-2)
    assert 0.0 <= model.relative_gap_ <= 1e-2 < before
    assert model.norm_ == pytest.approx(model.factors_.norm(p))
    assert model.norm_ <= model.radius_ * (1.0 + 1e-12)
    assert model.bound_ <= exact.value_
    assert exact.bound_ <= model.value_


def test_the_radius_is_found(ratings):
    rows, cols, y = entries(60, 40, 2000, seed=1, noise=0.5)
    rows, cols, y, test = rows[500:], cols[500:], y[500:], (rows[:500], cols[:500], y[:500])
    model = MatrixCompletion(rank=8, certify=False).fit((rows, cols, y))
    assert model.rmse(test) < 0.9 * MatrixCompletion(radius=1e-3, certify=False).fit((rows, cols, y)).rmse(test)
    assert clone(model).radius is None


def test_where_nothing_but_offsets_helps_the_path_climbs_to_them():
    """Ratings of noise around offsets: the first point of the path is too weak, and no matrix is best."""
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(rng.choice(200 * 150, 4000, replace=False), 150)
    y = 3.0 + rng.standard_normal(200)[rows] * 0.5 + rng.standard_normal(150)[cols] * 0.5 + rng.standard_normal(4000)
    test = (rows[:1000], cols[:1000], y[:1000])
    train = (rows[1000:], cols[1000:], y[1000:])
    model = MatrixCompletion(certify=False).fit(train)
    offsets = MatrixCompletion(radius=1e-6, certify=False).fit(train)
    assert model.strength_ > 0.5 * model._problem(model.ratings_).strongest()
    assert model.rmse(test) <= 1.0001 * offsets.rmse(test)
    assert model.norm_ < 1e-3


@pytest.mark.parametrize("at", [2, 11])
def test_the_time_limit_is_one_for_all_stages(ratings, monkeypatch, at):
    """The clock jumps past the limit at some sweep: the path, the sweeps and the convex solver all end."""
    now, seen = [0.0], []
    monkeypatch.setattr(deadline_module.time, "monotonic", lambda: now[0])

    def watch(run):
        seen.append(type(run.solver).__name__)
        if len(seen) == at:
            now[0] = 100.0

    with pytest.warns(ConvergenceWarning, match=r"stopped by the time limit"):
        model = MatrixCompletion(rank=4, time_limit=60.0, tol=1e-9, callbacks=[watch]).fit(ratings)
    assert len(seen) == at
    assert set(seen) == {"Alternating"}
    assert model.result_ is None  # no convex solver was begun
    assert model.bound_ <= model.value_
    assert np.isfinite(model.predict(ratings[:2])).all()


@pytest.mark.parametrize("rank", [2, 40])
def test_long_tails_are_predicted_no_worse_than_by_offsets(rank):
    """Most users and items have one or two ratings: whatever the rank, a matrix is used only where it helps."""
    rng = np.random.default_rng(rank)
    pairs = np.unique(rng.integers(0, 1500, 6000) * 2500 + (2500 * rng.random(6000) ** 4).astype(int))
    rows, cols = np.divmod(rng.permutation(pairs), 2500)
    y = 7.0 + rng.standard_normal(1500)[rows] + 0.5 * rng.standard_normal(2500)[cols]
    y = np.clip(np.rint(y + 1.5 * rng.standard_normal(len(rows))), 1, 10)
    test, train = ((rows[part], cols[part], y[part]) for part in (slice(1000), slice(1000, None)))
    model = MatrixCompletion(rank=rank, certify=False).fit(train)
    offsets = MatrixCompletion(radius=1e-6, certify=False).fit(train)
    assert model.rmse(test) <= 1.0005 * offsets.rmse(test)
    cold = ~(np.isin(test[0], train[0]) & np.isin(test[1], train[1]))
    held = tuple(column[cold] for column in test)
    assert cold.sum() > 50
    assert model.rmse(held) <= 1.0005 * offsets.rmse(held)


@pytest.mark.parametrize("seed", range(2))
def test_a_small_table_of_low_rank_gets_its_matrix(seed):
    """Sixty ratings are held out, and they ask for a matrix clearly enough."""
    rows, cols, y = entries(60, 40, 2400, seed=seed, noise=0.5)
    train, test = ((rows[part], cols[part], y[part]) for part in (slice(600), slice(600, None)))
    offsets = MatrixCompletion(radius=1e-6, certify=False).fit(train)
    assert MatrixCompletion(rank=10, certify=False).fit(train).rmse(test) < 0.8 * offsets.rmse(test)
