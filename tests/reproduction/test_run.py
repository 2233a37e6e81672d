"""The store and the runner on a tiny run, the words and the maps of the report."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from judged import MINUS, table
from tiny_run import FACTS, TINY_EXPERIMENTS

from reproduction import EXPERIMENTS, Verdict
from reproduction.base import Panel, Task
from reproduction.checks_drawn import holds_map, ratio_bars
from reproduction.drawing import map_panel
from reproduction.report import build
from reproduction.report.findings import judged
from reproduction.report.interactive import cells, figure
from reproduction.report.page import told_apart
from reproduction.report.preface import HEADLINES, circumstances, citation
from reproduction.report.static import file_stem, save
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


@pytest.mark.parametrize("mode", ["quick", "full"])
@pytest.mark.parametrize("parts", [1, 2, 4, 7])
def test_every_task_is_in_one_part(mode, parts):
    every = [key_of(one) for one in planned(EXPERIMENTS, mode)]
    split = [key_of(one) for k in range(1, parts + 1) for one in planned(EXPERIMENTS, mode, (k, parts))]
    assert split == every


def test_the_estimated_times_fit():
    """Five minutes for a quick run with room to spare, two hours for a full one, half an hour for a quarter of it."""
    seconds = {k: sum(task.seconds for _, task in planned(EXPERIMENTS, "full", (k, 4))) for k in (1, 2, 3, 4)}
    assert max(seconds.values()) <= 1800
    assert sum(seconds.values()) <= 7200
    assert sum(task.seconds for _, task in planned(EXPERIMENTS, "quick")) <= 240


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


def test_a_table_of_several_runs_names_their_commits_and_days(tmp_path):
    one = next(e for e in TINY_EXPERIMENTS if e.name == "theory")
    facts = {**FACTS, "commit": "aaa", "date": "2026-01-01T10:00"}
    run([one], "quick", Store(tmp_path, facts))
    for commit, day in (("bbb", "02"), ("bbb", "03")):
        later = {**facts, "commit": commit, "date": f"2026-01-{day}T10:00"}
        store = Store.resumed(tmp_path, later)
        store.write()
    _, kept = read_store(tmp_path / FILE)
    assert kept["commit"] == "aaa, bbb"
    assert "commits aaa and bbb, quick run of 2026-01-01 to 2026-01-03." in citation(kept)
    assert ", commit aaa, quick run of 2026-01-01." in citation(facts)
    assert Store.resumed(tmp_path, later, ["theory"]).facts == later  # nothing of before is left


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


def test_titles_of_figures_are_told_apart():
    titles = [
        "Errors, least squares, r = 0.5",
        "Errors, least squares, r = 0.9",
        "Map: all",
        "Errors, least squares, r = 0.5",
    ]
    assert told_apart(titles) == [titles[0], "r = 0.9", "Map: all", titles[0]]
    assert told_apart(["Map: all", *titles[:2]]) == ["Map: all", titles[0], "r = 0.9"]
    assert told_apart([]) == []


def test_a_map_leaves_open_what_is_near_or_not_measured():
    columns = dict(zip("abcd", (-2.5, -2.35, -2.0, math.nan), strict=True))
    rows = table([{"variant": name, "solver": "r", "value": value} for name, value in columns.items()])
    axes = {"xlabel": "x", "ylabel": "y", "at_most": True, "margin": 0.02}
    panel = map_panel("map", "Where", rows, "variant", "solver", -2.34, **axes)
    assert panel.grid.signs() == [["✓", "?", "✗", "?"]]
    assert (
        panel.alt == f"Where. The claim needs at most {MINUS}2.34: 1 of 4 places, 2 too near to tell or not measured."
    )
    (trace,) = figure(panel)["traces"]
    assert trace["text"] == [[f"✓ {MINUS}2.5", f"? {MINUS}2.35", f"✗ {MINUS}2", "? not measured"]]
    assert trace["z"] == [[1.0, 0.5, 0.0, 0.5]]


def test_a_map_without_numbers_says_yes_or_no():
    rows = table([{"variant": name, "value": value} for name, value in (("a", 1.0), ("b", 0.0))])
    panel = holds_map("map", "Where", rows, "everywhere", "x")
    assert cells(panel.grid) == [["✓ yes", "✗ no"]]
    assert panel.alt == "Where. It holds: 1 of 2 places."


def test_a_level_crosses_the_bars_that_it_judges(tmp_path):
    rows = table([{"problem": "bound", "variant": name, "value": value} for name, value in (("a", 0.5), ("b", 1.5))])
    panel = ratio_bars("ratios", "Ratios", rows, {"claimed: at most 1": 1.0}, "ratio")
    bars, level = figure(panel)["traces"]
    assert (bars["type"], bars["y"]) == ("bar", [0.5, 1.5])
    assert (level["type"], level["x"], level["y"]) == ("scatter", bars["x"], [1.0, 1.0])
    assert panel.alt == "Ratios, ratio: bound: a 0.50, b 1.50; dotted line, claimed: at most 1"
    drawn = next(save(panel, tmp_path, "ratios")).read_text(encoding="utf-8")
    assert "claimed: at most 1" in drawn


def test_names_of_files_are_plain():
    for experiment in EXPERIMENTS:
        panel = Panel("race-l₁.₁-∞ [1, 2]'s", "", "", "")
        assert file_stem(experiment.name, panel) == f"{experiment.name}-race-l1.1-inf-1-2-s"


@pytest.mark.parametrize(
    ("load", "elsewhere", "said"),
    [
        ("0.8 to 1.2", "0.9 to 1.3", "on 2 cores, of which this run makes 1."),
        ("0.8 to 1.2", "15.0 to 30.0", "of which this run makes 1. In the other experiments, where no clock decides, "
         "it was 15.0 to 30.0."),
        ("15.0 to 30.0", "0.9 to 1.3", "Times are processor seconds, which other programs lengthen only through the "
         "caches and the memory that they share."),
    ],
)  # fmt: skip
def test_the_words_about_load_follow_the_load(load, elsewhere, said):
    text = circumstances({"minutes": "53", "cores": "2", "load": load, "load elsewhere": elsewhere})
    assert f"the load average of the system was {load} on 2 cores" in text
    assert text.endswith(said)
    assert " on 1 core, of which" in circumstances({"cores": "1", "load": load})


def test_headlines_are_claims():
    assert set(HEADLINES) <= {(e.name, c.key) for e in EXPERIMENTS for c in e.claims}
