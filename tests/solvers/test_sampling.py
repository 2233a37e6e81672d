"""Which rows an iteration draws: how many, which, and the same again for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree import FullBatch, Growing, Minibatch, Objective, Squared, as_data

SAMPLINGS = [
    FullBatch(),
    Minibatch(1),
    Minibatch(7),
    Minibatch(10**6),
    Growing(),
    Growing(4),
    Growing(0.5),
    Growing(300),
]

every = pytest.mark.parametrize("sampling", SAMPLINGS, ids=repr)


def drawn(sampling, t, n, seed):
    """The rows that iteration t reads, None where those are all."""
    f, rows = Objective(Squared(), as_data(np.ones((n, 1)), np.zeros(n))), []
    subset = f.data.representative
    f.data.representative = lambda chosen: (rows.append(chosen), subset(chosen))[1]
    found = sampling.evaluate(f, f.point([1.0]), t, seed)
    assert f.workspace.rows_read == sampling.size(t, n)
    assert found.slope.gradient == pytest.approx([2.0]), "a mean over the rows"
    assert np.isfinite([found.value, found.slope.constant]).all() == (not rows), "samples tell no value and no bound"
    return rows[0] if rows else None


@every
@given(t=st.integers(1, 10**6), n=st.integers(1, 50), seed=st.integers(0, 10**6))
def test_rows_are_distinct_and_sorted(sampling, t, n, seed):
    size, rows = sampling.size(t, n), drawn(sampling, t, n, seed)
    assert 1 <= size <= n
    if size == n:
        assert rows is None
        return
    assert len(rows) == size
    assert np.all(np.diff(rows) > 0)
    assert rows[0] >= 0
    assert rows[-1] < n
    np.testing.assert_array_equal(rows, drawn(sampling, t, n, seed))


@pytest.mark.parametrize("m", [1, 3])
def test_rows_are_uniform_and_change_with_seed_and_iteration(m):
    n, draws = 6, 1000
    counts = np.zeros(n)
    for t in range(1, draws + 1):
        counts[drawn(Minibatch(m), t, n, seed=5)] += 1
    expected = draws * m / n
    assert np.abs(counts - expected).max() <= 5 * np.sqrt(expected)
    many = {tuple(drawn(Minibatch(m), 1, 1000, seed)) for seed in range(50)}
    assert len(many) > 40


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Minibatch(0), r"`Minibatch\(rows_each=\.\.\.\)` must be a whole number of at least 1, got 0\."),
        (lambda: Minibatch(2.5), r"`Minibatch\(rows_each=\.\.\.\)` must be a whole number of at least 1, got 2\.5\."),
        (lambda: Minibatch(True), r"`Minibatch\(rows_each=\.\.\.\)` must be a whole number of at least 1, got True\."),
        (lambda: Growing(0), r"`Growing\(power=\.\.\.\)` must be positive and finite, got 0\."),
        (lambda: Growing(np.inf), r"`Growing\(power=\.\.\.\)` must be positive and finite, got inf\."),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
