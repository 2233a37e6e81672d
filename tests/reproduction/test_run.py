"""The store and the runner on a tiny run, the words and the maps of the report."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tiny_run import FACTS, TINY_EXPERIMENTS

from reproduction import Verdict
from reproduction.base import Task
from reproduction.report import build
from reproduction.report.findings import judged
from reproduction.runner import key_of, planned, run
from reproduction.store import DONE, FILE, TIMES, Store, read_store


def without_times(folder):
    """The table but for what a clock measured."""
    table, _ = read_store(folder / FILE)
    return table[~table["measure"].isin((*TIMES, DONE))].drop(columns="seconds").reset_index(drop=True)


def test_the_table_is_flat_and_complete(tiny):
    table, facts = read_store(tiny / FILE)
    assert facts["mode"] == "quick"
    done = set(table.loc[table["measure"] == DONE, "task"])
    assert len(done) == sum(len(e.tasks("quick")) for e in TINY_EXPERIMENTS)
    assert np.isfinite(table.loc[table["measure"] == "step", "value"]).all()


@pytest.mark.slow
def test_a_clock_that_runs_ten_times_faster_changes_no_verdict(tiny, tmp_path, monkeypatch):
    for name in ("perf_counter", "process_time"):
        real = getattr(time, name)
        monkeypatch.setattr(time, name, lambda real=real: 10.0 * real())
    assert run(TINY_EXPERIMENTS, "quick", Store(tmp_path, FACTS)) == []
    monkeypatch.undo()
    pd.testing.assert_frame_equal(without_times(tmp_path), without_times(tiny))
    found = [list(judged(TINY_EXPERIMENTS, read_store(folder / FILE)[0])) for folder in (tiny, tmp_path)]
    for a, b in zip(*found, strict=True):
        if not a.claim.timed:
            assert a.finding == b.finding


@pytest.mark.slow
def test_parts_merge_to_the_table_of_one_run(tiny, tmp_path):
    for k in (2, 1, 3):  # in any order
        store = Store.resumed(tmp_path, FACTS)
        store.order = [key_of(one) for one in planned(TINY_EXPERIMENTS, "quick")]
        assert run(TINY_EXPERIMENTS, "quick", store, part=(k, 3)) == []
    pd.testing.assert_frame_equal(without_times(tmp_path), without_times(tiny))


def test_a_run_goes_on_where_it_was_interrupted(tmp_path):
    """Ctrl-C in the third task: two are kept, the rest is measured on the second go."""
    experiment, calls = next(e for e in TINY_EXPERIMENTS if e.name == "theory"), []

    def noted(task, interrupt):
        def measure():
            calls.append(task.key)
            if interrupt:
                raise KeyboardInterrupt
            yield from task.run()

        return Task(task.key, measure)

    def with_interruption(at):
        tasks = experiment.tasks("quick")
        return replace(experiment, tasks=lambda mode: [noted(task, k == at) for k, task in enumerate(tasks)])

    with pytest.raises(KeyboardInterrupt):
        run([with_interruption(2)], "quick", Store(tmp_path, FACTS))
    assert len(read_store(tmp_path / FILE)[0]["task"].unique()) == 2
    run([with_interruption(-1)], "quick", Store.resumed(tmp_path, FACTS))
    assert calls == ["bounds", "lemma 1", "lemma 2", "lemma 2", "normalised gradient", "group oracle"]


def test_naming_an_experiment_measures_it_anew_and_keeps_the_others(tiny):
    store = Store.resumed(tiny, FACTS, ["theory"])
    assert not any(key.startswith("theory/") for key in store.done())
    assert any(key.startswith("rates/") for key in store.done())


def test_another_mode_is_refused(tiny):
    with pytest.raises(ValueError, match="are of another run: their mode is quick, now it is full; give another --out"):
        Store.resumed(tiny, {**FACTS, "mode": "full"})


def test_a_failure_is_recorded_and_tried_again(tmp_path):
    def broken():
        raise ZeroDivisionError("no such thing")
        yield {}

    one = replace(TINY_EXPERIMENTS[0], tasks=lambda mode: [Task("broken", broken)])
    assert run([one], "quick", Store(tmp_path, FACTS)) == ["rates/broken: ZeroDivisionError: no such thing"]
    found = build([one], tmp_path, "python -m reproduction", figures=False)
    assert {judged.finding.verdict for judged in found} == {Verdict.OPEN}
    assert Store.resumed(tmp_path, FACTS).done() == set()


def test_known_facts_come_out(tiny):
    found = {
        (j.experiment.name, j.claim.key): j.finding
        for j in build(TINY_EXPERIMENTS, tiny, "python -m reproduction", figures=False)
    }
    assert found["theory", "lemma-1"].verdict is Verdict.FAILS
    assert "2.00 (l₂)" in found["theory", "lemma-1"].ours
    assert found["theory", "lemma-2"].verdict is Verdict.FAILS
    assert found["theory", "lemma-2-two"].verdict is Verdict.CHOICE
    for k in (1, 2, 3):
        assert found["theory", f"bound-{k}"].verdict is Verdict.HOLDS
    assert found["theory", "group"].verdict is Verdict.FAILS
    assert found["theory", "normalised"].verdict is Verdict.CHOICE
    assert found["quasi-convex", "definition"].verdict is Verdict.HOLDS
    assert "100.0% of the points at r = 1, random w" in found["quasi-convex", "definition"].ours
    assert found["variants", "fewer"].verdict is Verdict.HOLDS
    assert found["beyond", "certificates"].verdict is Verdict.HOLDS
    assert found["stochastic-rate", "sample"].verdict is Verdict.OPEN
    assert found["stochastic-rate", "sample"].ours == "no slope at 7,000 rows"
    assert "at 7,000 rows the sample stops growing at t = 10" in found["stochastic-rate", "sample"].reason
