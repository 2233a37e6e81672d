"""Runs of every kind give what they gave when they were recorded: a rebuild must not change a result."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from golden.record import CASES, recorded

RECORDED = recorded()
#: How far numbers of runs with fixed steps may be apart, relative to the largest of their kind.
RTOL = 1e-9


@pytest.mark.parametrize("name", CASES)
def test_a_run_gives_what_it_gave(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some runs are meant to stop short of the tolerance
        found = CASES[name].run()
    pairs = zip(found.get("path", [found]), RECORDED[name].get("path", [RECORDED[name]]), strict=True)
    for now, before in pairs:
        (same_numbers if CASES[name].fixed else same_certificate)(now, before)


def same_numbers(now, before):
    """Equal to rounding, after as many reads."""
    for part in ("w", "intercept", "value", "bound", "gap"):
        if before[part] is None:
            assert now[part] is None, part
            continue
        expected = np.asarray(before[part], dtype=np.float64)
        scale = np.abs(expected).max(initial=0.0) if part != "gap" else abs(before["value"])
        np.testing.assert_allclose(now[part], expected, rtol=0, atol=RTOL * scale, err_msg=part)
    assert now["passes"] == pytest.approx(before["passes"], abs=1e-12)
    assert (now["iterations"], now["status"]) == (before["iterations"], before["status"])


def same_certificate(now, before):
    """The same problem, solved as well: both intervals hold the minimum, after hardly more reads."""
    rounding = 1e-12 * abs(before["value"])
    assert now["status"] == before["status"]
    if before["bound"] is None:
        assert now["bound"] is None
        assert now["value"] == pytest.approx(before["value"], rel=1e-6)
    else:
        assert now["bound"] <= before["value"] + rounding
        assert before["bound"] <= now["value"] + rounding
    assert now["passes"] <= 1.1 * before["passes"]


def test_the_file_holds_the_runs_and_is_small():
    assert list(RECORDED) == list(CASES)
    assert sum(len(str(numbers)) for numbers in RECORDED.values()) < 300_000


def test_a_small_change_is_noticed():
    before = RECORDED["logistic, PA"]
    for part, change in (("value", 1 + 1e-8), ("bound", 1 + 1e-8), ("passes", 1 + 1e-8)):
        with pytest.raises(AssertionError):
            same_numbers(before | {part: before[part] * change}, before)
    with pytest.raises(AssertionError):
        same_numbers(before | {"w": [*before["w"][:-1], before["w"][-1] + 1e-8]}, before)
    solved = RECORDED["Newton, logistic"]
    for part, change in (("value", 1 - 1e-6), ("bound", 1 + 1e-6), ("passes", 1.2)):
        with pytest.raises(AssertionError):
            same_certificate(solved | {part: solved[part] * change}, solved)
