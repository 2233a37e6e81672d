"""The estimator: every form of ratings, any labels, and clear sentences for what cannot be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from completion.problems import entries

from projfree import Checkpoint, MatrixCompletion, load

SHAPE = (30, 20)


@pytest.fixture(scope="module")
def ratings():
    return entries(*SHAPE, 300, seed=3)


def quick(**settings):
    return MatrixCompletion(**{"rank": 4, "radius": 15.0, **settings})


def test_every_form_gives_the_same_model(ratings):
    rows, cols, y = ratings
    frame = pd.DataFrame({"rating": y, "item": cols, "user": rows})
    dense = np.full(SHAPE, np.nan)
    dense[rows, cols] = y
    forms = [
        (rows, cols, y),
        np.column_stack([rows, cols, y]),
        list(zip(rows.tolist(), cols.tolist(), y.tolist(), strict=True)),
        frame,
        sp.coo_array((y, (rows, cols)), shape=SHAPE),
        sp.csr_matrix((y, (rows, cols)), shape=SHAPE),
        dense,
    ]
    first = quick().fit(forms[0]).predict((rows, cols))
    for form in forms[1:]:
        np.testing.assert_allclose(quick().fit(form).predict((rows, cols)), first, rtol=1e-9)
    np.testing.assert_allclose(quick().fit((rows, cols), y).predict((rows, cols)), first, rtol=1e-12)


def test_the_gap_is_proved_and_can_be_closed(ratings):
    model = quick(rank=15, max_sweeps=60).fit(ratings)
    assert 0.0 <= model.relative_gap_ < 0.05
    assert model.norm_ <= model.radius_ * (1 + 1e-9)
    value = model.value_
    model.certify_to(1e-4)
    assert model.relative_gap_ <= 1e-4
    assert model.value_ <= value * (1 + 1e-9)
    assert model.bound_ <= model.value_
    for p in (1.0, 1.2):
        tight = quick(p=p, radius=10.0).fit(ratings).certify_to(1e-3)
        assert tight.relative_gap_ <= 1e-3
    assert np.isnan(quick(certify=False).fit(ratings).bound_)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_other_losses(ratings, loss):
    rows, cols, y = ratings
    y = np.where(y > 3.0, 1.0, -1.0) if loss == "logistic" else y
    model = quick(loss=loss, radius=20.0, max_sweeps=80, rank=10).fit((rows, cols, y)).certify_to(2e-2)
    assert model.relative_gap_ <= 2e-2
    assert model.score((rows, cols, y)) > 0.5


def test_more_ratings_later(ratings):
    rows, cols, y = ratings
    model = quick().fit((rows[:250], cols[:250], y[:250]))
    model.partial_fit((np.append(rows[250:], 99), np.append(cols[250:], 3), np.append(y[250:], 3.0)))
    assert 99 in model.user_ids_
    whole = quick().fit((np.append(rows, 99), np.append(cols, 3), np.append(y, 3.0)))
    assert model.rmse(ratings) == pytest.approx(whole.rmse(ratings), rel=0.1)
    fresh = quick().partial_fit(ratings)
    np.testing.assert_allclose(fresh.predict((rows, cols)), quick().fit(ratings).predict((rows, cols)))


def test_save_and_load(ratings, tmp_path):
    rows, cols, _ = ratings
    model = quick(p=1.1).fit(ratings)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict((rows, cols)), model.predict((rows, cols)))
    assert again.get_params()["p"] == 1.1
    assert again.relative_gap_ == model.relative_gap_
    np.testing.assert_array_equal(again.recommend(5)[0], model.recommend(5)[0])


def test_a_checkpoint_is_gone_on_from(ratings, tmp_path):
    rows, cols, _ = ratings
    keeper = Checkpoint(tmp_path / "sweeps", every=1)
    quick(max_sweeps=3, callbacks=[keeper], certify=False).fit(ratings)
    seen = []
    resumed = quick(max_sweeps=6, callbacks=[keeper, lambda run: seen.append(run.iteration)], certify=False)
    resumed.fit(ratings)
    assert seen == [4, 5, 6]
    whole = quick(max_sweeps=6, certify=False).fit(ratings)
    np.testing.assert_array_equal(resumed.predict((rows, cols)), whole.predict((rows, cols)))
    with pytest.raises(ValueError, match="is of another problem: its solver is ALS"):
        quick(rank=3, callbacks=[keeper]).fit(ratings)


def test_a_checkpoint_remembers_what_was_chosen(ratings, tmp_path):
    keeper, sweeps = Checkpoint(tmp_path / "sweeps", every=1), []

    def press(run):
        sweeps.append(run.max_iter == 3 and run.f.n == 300)
        if sum(sweeps) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(radius=None, callbacks=[keeper, press]).fit(ratings)
    resumed, whole = quick(radius=None, callbacks=keeper).fit(ratings), quick(radius=None).fit(ratings)
    assert resumed.n_iter_ == whole.n_iter_ == 3
    np.testing.assert_array_equal(resumed.predict(ratings[:2]), whole.predict(ratings[:2]))
    assert (resumed.settings_, resumed.radius_) == (whole.settings_, whole.radius_)


def test_bars_and_lines(ratings, capsys):
    assert quick(verbose=1).fit(ratings).recommend(n=3)[0].shape == (30, 3)
    capsys.readouterr()
    with pytest.warns(UserWarning, match="above tol=1e-09"):
        quick(verbose=2, max_sweeps=2).fit(ratings).certify_to(1e-9, max_iter=1)
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert [words[:3] for words in lines[:2]] == [["sweeps", "sweep", "1"], ["sweeps", "sweep", "2"]]
    assert lines[2][0] == "iteration"
    assert all("nan" not in words for words in lines)


@pytest.mark.parametrize(
    ("X", "settings", "words"),
    [
        (([0], [1], [np.nan]), {}, "`ratings` must be finite, got nan"),
        (([], [], []), {}, "at least one rating"),
        (([0, 1], [1], [1.0, 2.0]), {}, "an item for each user"),
        (([0.5], [1], [1.0]), {}, "or strings, got 0.5"),
        (([0], [1]), {}, "the ratings are missing"),
        (([0], [1], [1.0]), {"p": 2.0}, "must be below 2"),
        (([0], [1], [1.0]), {"p": 0.5}, "at least 1"),
        (([0], [1], [1.0]), {"radius": -1.0}, "positive and finite"),
        (([0], [1], [1.0]), {"loss": "hinge"}, "must be one of squared, huber, logistic"),
        (
            ([0], [1], [1.0]),
            {"implicit": np.inf},
            r"^`MatrixCompletion\(implicit=...\)` must be positive and finite, got inf",
        ),
        (([0], [1], [1.0]), {"offsets": (True, False)}, r"^`MatrixCompletion\(offsets=...\)` must be a bool or three"),
        (([0], [1], [1.0]), {"offsets": "users"}, r"^`MatrixCompletion\(offsets=...\)` must be a bool or three"),
        (([0], [1], [1.0]), {"columns": "user"}, r"must be the names of three columns.*got 'user'"),
        (pd.DataFrame({"who": [1], "item": [2], "rating": [3.0]}), {}, "no column 'user'"),
    ],
    ids=str,
)
def test_bad_input(X, settings, words):
    with pytest.raises(ValueError, match=words):
        quick(**settings).fit(X)


def test_one_rating_empty_rows_and_a_wide_ball():
    with pytest.warns(UserWarning, match="larger than these ratings need"):
        one = quick(radius=100.0).fit(([0], [0], [4.0]))
    assert one.predict([(0, 0)])[0] == pytest.approx(4.0)
    auto = MatrixCompletion().fit(([0], [0], [4.0]))
    assert auto.predict([(0, 0)])[0] == pytest.approx(4.0)
    empty = quick(radius=0.1).fit(sp.coo_array(([4.0, 2.0], ([0, 2], [0, 2])), shape=(5, 4)))
    assert np.isfinite(empty.predict([(1, 1), (4, 3)])).all()


@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 5.0), (-1.0, 1.0)])
def test_logistic_takes_any_two_values(ratings, values, tmp_path):
    rows, cols, y = ratings
    low, high = values
    y = np.where(y > 3.0, high, low)
    model = quick(loss="logistic", radius=20.0, certify=False).fit((rows, cols, y))
    plain = quick(loss="logistic", radius=20.0, certify=False).fit((rows, cols, np.where(y == high, 1.0, -1.0)))
    np.testing.assert_array_equal(model.decision_function((rows, cols)), plain.decision_function((rows, cols)))
    assert set(model.predict((rows, cols))) == {low, high}
    assert model.score((rows, cols, y)) > 0.7
    with pytest.raises(
        ValueError, match=r"^`loss='logistic'` needs ratings of two values, such as 0 and 1, got 0, 1 a"
    ):
        quick(loss="logistic").fit((rows, cols, np.arange(len(y)) % 3))
    with pytest.raises(ValueError, match=r"needs ratings of two values, such as 0 and 1, got 4; use `loss='squared'`"):
        quick(loss="logistic").fit((rows, cols, np.full(len(y), 4.0)))


def test_huber_takes_its_scale_from_the_ratings(ratings, tmp_path):
    """A hundred times the ratings in a ball a hundred times as wide have a hundred times the predictions."""
    rows, cols, y = ratings
    y = np.where(np.arange(len(y)) % 20 == 0, y + 30.0, y)  # outliers
    settings = {"loss": "huber", "certify": False, "max_sweeps": 100}
    one = quick(**settings).fit((rows, cols, y))
    many = quick(**settings, radius=1500.0).fit((rows, cols, 100.0 * y))
    assert many.loss_.delta == pytest.approx(100.0 * one.loss_.delta, rel=1e-6)
    pairs = (rows, cols)
    np.testing.assert_allclose(many.decision_function(pairs), 100.0 * one.decision_function(pairs), rtol=1e-2)
    many.save(tmp_path / "m")
    assert load(tmp_path / "m").loss_ == many.loss_
    plain = np.arange(len(y)) % 20 > 0
    robust = one.rmse((rows[plain], cols[plain], y[plain]))
    assert robust < 0.8 * quick(certify=False).fit((rows, cols, y)).rmse((rows[plain], cols[plain], y[plain]))
