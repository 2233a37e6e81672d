"""Wild ratings: what a robust loss makes of a few outliers of any size."""

import numpy as np
import pytest

from projfree.estimators.completion import MatrixCompletion
from projfree.losses import Huber


def _table(outlier, seed=0, share=0.02):
    """Ratings of rank two, of which some are replaced, the pairs without a rating, and their true values."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40)) + 3.0
    seen = rng.random(truth.shape) < 0.4
    rows, cols = np.nonzero(seen)
    values = truth[seen] + 0.1 * rng.standard_normal(len(rows))
    values[rng.random(len(values)) < share] = outlier
    return (rows, cols, values), np.nonzero(~seen), truth[~seen]


def _error(model, outlier):
    given, pairs, truth = _table(outlier)
    return float(np.median(np.abs(model.fit(given).predict(pairs) - truth)))


@pytest.mark.parametrize("outlier", [-1e3, 1e9])
@pytest.mark.parametrize("loss", ["huber", Huber(1.0)])
def test_outliers_of_any_size_do_little_harm(loss, outlier):
    assert _error(MatrixCompletion(loss=loss, certify=False), outlier) < 0.25


@pytest.mark.parametrize("settings", [{"radius": 60.0}, {"radius": 60.0, "early_stopping": True}])
def test_a_given_radius_bears_them_too(settings):
    errors = [_error(MatrixCompletion(loss="huber", certify=False, **settings), outlier) for outlier in (50.0, 1e9)]
    assert errors[1] == pytest.approx(errors[0], rel=0.05)
    assert errors[0] < 0.4


def test_the_base_is_the_median_where_the_loss_is_robust():
    ratings = ([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0, 1e6])
    assert MatrixCompletion(1.0, 1.0, loss="huber", certify=False).fit(ratings).base_ == 3.0
    assert MatrixCompletion(1.0, 1.0, certify=False).fit(ratings).base_ == pytest.approx(200002.0)
    weighted = MatrixCompletion(1.0, 1.0, loss="huber", certify=False).fit(ratings, sample_weight=[9, 1, 1, 1, 1])
    assert weighted.base_ == 1.0
