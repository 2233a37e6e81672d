"""The model of rounds on many workers, against a simulation of single messages and against the page that quotes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from projfree.data.dask.round_model import RoundModel

TERABYTE, FEATURES, ROUNDS = 1e12, 90, 60
COMMITTED = Path(__file__).parents[2] / "benchmarks" / "results" / "dask.json"
PAGE = Path(__file__).parents[2] / "docs" / "dask.md"


@pytest.mark.parametrize("workers", [1, 10, 100, 1000])
@pytest.mark.parametrize("nbytes", [1e9, 1e12])
def test_the_formula_is_what_a_simulation_gives(nbytes, workers):
    """Sending overlaps with reading, so that the formula is an upper bound, and not much."""
    model = RoundModel()
    simulated, formula = model.simulated(nbytes, FEATURES, workers), model.seconds(nbytes, FEATURES, workers)
    assert simulated <= formula * (1.0 + 1e-12)
    assert simulated >= 0.8 * formula


def test_more_workers_help_until_messages_take_longer():
    model = RoundModel()
    best = round(model.best_workers(TERABYTE))
    around = [model.seconds(TERABYTE, FEATURES, workers) for workers in (best // 2, best, 2 * best)]
    assert around[1] == min(around)


def test_the_slowest_worker_sets_the_time():
    model = RoundModel()
    even, uneven = (model.simulated(TERABYTE, FEATURES, 100, spread=spread) for spread in (0.0, 0.2))
    read = TERABYTE / (100 * model.read)
    assert 1.3 * read < uneven - even + read < 4.0 * read


def test_the_constants_are_those_that_were_measured():
    """To one digit, and within the factor of two that the load of the machine makes; the network is assumed."""
    found = json.loads(COMMITTED.read_text(encoding="utf-8"))
    slope = np.polyfit(*([one[name] for one in found["workers"]] for name in ("workers", "busy")), 1)[0]
    largest = found["sizes"][-1]
    model = RoundModel()
    measured = {
        "per_worker": slope,
        "latency": found["overhead"][0]["fastest"] - 2 * slope,
        "read": 4.0 * FEATURES * largest["rows"] / largest["memory_busy"],
    }
    for name, value in measured.items():
        assert 0.5 <= getattr(model, name) / value <= 2.0, name


def lines():
    """The tables of the page, and what it says about them."""
    model = RoundModel()
    yield f"| o | {1e3 * model.latency:.0f} ms |"
    yield f"| c | {1e3 * model.per_worker:.1f} ms |"
    yield f"| B | {model.read / 1e9:.1f} GB/s |"
    yield f"about {model.best_workers(TERABYTE):.0f} for 1 TB"
    even, uneven = (model.simulated(TERABYTE, FEATURES, 100, spread=spread) for spread in (0.0, 0.2))
    yield f"takes {uneven:.1f} s in the simulation, in place of {even:.1f} s"
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
