from __future__ import annotations

import numpy as np
import pytest

from projfree.datasets import load_year_sample, movielens_stand_in, year_stand_in


@pytest.fixture(scope="module")
def stand_in():
    return year_stand_in(n=60_000)


def test_it_says_what_it_is(stand_in):
    assert stand_in.name == "stand-in"
    assert stand_in.description.startswith("stand-in: 60,000 bootstrapped rows")
    assert "not real data" in stand_in.description


def test_moments_are_those_of_the_sample(stand_in):
    sample = load_year_sample()
    s, t = (np.column_stack([d.X, d.y / 10]) for d in (sample, stand_in))
    # Means and covariances of 60,000 draws from variables of variance about 1 (heavy tails: some more).
    np.testing.assert_allclose(t.mean(axis=0), s.mean(axis=0), atol=5 / np.sqrt(60_000))
    np.testing.assert_allclose(np.cov(t.T), np.cov(s.T), atol=0.2)
    assert np.abs(np.cov(t.T) - np.cov(s.T)).mean() < 0.01


def test_least_squares_is_that_of_the_sample(stand_in):
    sample = load_year_sample()
    fits = [np.linalg.lstsq(d.X, d.y - d.y.mean(), rcond=None)[0] for d in (sample, stand_in)]
    assert np.linalg.norm(fits[0] - fits[1]) < 0.1 * np.linalg.norm(fits[0])


def test_deterministic_and_a_prefix_of_longer_ones(stand_in):
    again = year_stand_in(n=10_000)
    assert np.array_equal(again.X, stand_in.X[:10_000])
    assert np.array_equal(again.y, stand_in.y[:10_000])
    assert not np.array_equal(year_stand_in(n=10, seed=1).X, again.X[:10])


def test_ratings_of_the_right_shape():
    ratings = movielens_stand_in("100k", seed=1)
    assert ratings.shape == (943, 1682)
    assert len(ratings.values) == 100_000
    assert set(ratings.values) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert len(np.unique(ratings.rows * 1682 + ratings.cols)) == 100_000
    assert len(np.unique(ratings.rows)) == 943
    assert len(np.unique(ratings.cols)) == 1682
    assert 3.3 < ratings.values.mean() < 3.7
    assert "stand-in" in ratings.name
    assert "not real data" in ratings.description
