"""The model of rounds on many workers, against a simulation of single messages and against the page that quotes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from projfree.data.dask.model import RoundModel

TERABYTE, FEATURES, ROUNDS = 1e12, 90, 60
PAGE = Path(__file__).parents[2] / "docs" / "dask.md"


@pytest.mark.parametrize("workers", [1, 10, 100, 1000])
@pytest.mark.parametrize("nbytes", [1e9, 1e12])
def test_the_formula_is_what_a_simulation_gives(nbytes, workers):
    """Sending overlaps with reading and with taking in answers, so that the formula is an upper bound, and not much."""
    model = RoundModel()
    simulated, formula = model.simulated(nbytes, FEATURES, workers), model.seconds(nbytes, FEATURES, workers)
    assert simulated <= formula * (1.0 + 1e-12)
    assert simulated >= 0.5 * formula


def test_more_workers_help_until_messages_take_longer():
    model = RoundModel()
    best = round(model.best_workers(TERABYTE))
    around = [model.seconds(TERABYTE, FEATURES, workers) for workers in (best // 2, best, 2 * best)]
    assert around[1] == min(around)


def test_the_slowest_worker_sets_the_time():
    model = RoundModel()
    even, uneven = (model.simulated(TERABYTE, FEATURES, 1000, spread=spread) for spread in (0.0, 0.2))
    read = TERABYTE / (1000 * model.read)
    assert 1.3 * read < uneven - even + read < 4.0 * read


def lines():
    """The table of the page."""
    model = RoundModel()
    yield "| workers | read | messages | one round | 60 rounds | workers differ by 20 % |"
    yield "|---|---|---|---|---|---|"
    for workers in (10, 100, 1000):
        read, messages = TERABYTE / (workers * model.read), model.latency + model.per_worker * workers
        one = model.seconds(TERABYTE, FEATURES, workers)
        uneven = ROUNDS * model.simulated(TERABYTE, FEATURES, workers, spread=0.2)
        yield (
            f"| {workers:,} | {read:.2f} s | {messages:.3f} s | {one:.2f} s | {ROUNDS * one:,.0f} s | {uneven:,.0f} s |"
        )


def test_the_page_quotes_the_model():
    text = PAGE.read_text(encoding="utf-8")
    for line in lines():
        assert line in text, line
