"""The store, the runner and the report on a tiny run."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tiny_run import FACTS, TINY_EXPERIMENTS

from projfree.experiments import Verdict
from projfree.experiments.base import Task
from projfree.experiments.report import build
from projfree.experiments.runner import run
from projfree.experiments.store import DONE, FILE, Store, read_store


def test_the_table_is_flat_and_complete(tiny):
    table, facts = read_store(tiny / FILE)
    assert facts["mode"] == "quick"
    done = set(table.loc[table["measure"] == DONE, "task"])
    assert len(done) == sum(len(e.tasks("quick")) for e in TINY_EXPERIMENTS)
    assert np.isfinite(table.loc[table["measure"] == "step", "value"]).all()


def test_a_run_goes_on_where_it_was_interrupted(tmp_path):
    """Ctrl-C in the third task: two are kept, the rest is measured on the second go."""
    experiment, calls = next(e for e in TINY_EXPERIMENTS if e.name == "perturbation"), []

    def noted(task, interrupt):
        def measure(seconds):
            calls.append(task.key)
            if interrupt:
                raise KeyboardInterrupt
            yield from task.run(seconds)

        return Task(task.key, measure)

    def with_interruption(at):
        tasks = experiment.tasks("quick")
        return replace(experiment, tasks=lambda mode: [noted(task, k == at) for k, task in enumerate(tasks)])

    with pytest.raises(KeyboardInterrupt):
        run([with_interruption(2)], "quick", Store(tmp_path, FACTS))
    assert len(read_store(tmp_path / FILE)[0]["task"].unique()) == 2
    run([with_interruption(-1)], "quick", Store.resumed(tmp_path, FACTS))
    assert calls == ["lemma 1", "lemma 2", "bound (3)", "bound (3)", "group oracle"]


def test_another_mode_is_refused(tiny):
    with pytest.raises(ValueError, match="are of another run: their mode is quick, now it is full"):
        Store.resumed(tiny, {**FACTS, "mode": "full"})


def test_a_failure_is_recorded_and_tried_again(tmp_path):
    def broken(seconds):
        raise ZeroDivisionError("no such thing")
        yield {}

    one = replace(TINY_EXPERIMENTS[0], tasks=lambda mode: [Task("broken", broken)])
    assert run([one], "quick", Store(tmp_path, FACTS)) == ["rates/broken: ZeroDivisionError: no such thing"]
    found = build([one], tmp_path, "projfree reproduce", figures=False)
    assert {judged.finding.verdict for judged in found} == {Verdict.UNMEASURED}
    assert Store.resumed(tmp_path, FACTS).done() == set()


def test_known_facts_come_out(tiny):
    found = {
        (j.experiment.name, j.claim.key): j.finding
        for j in build(TINY_EXPERIMENTS, tiny, "projfree reproduce", figures=False)
    }
    assert found["perturbation", "lemma-1"].verdict is Verdict.FAILS
    assert found["perturbation", "lemma-1"].ours == "2.00"
    assert found["perturbation", "lemma-2-two"].verdict is Verdict.PARTLY
    assert found["perturbation", "bound-3"].verdict is Verdict.HOLDS
    assert found["perturbation", "group"].verdict is Verdict.FAILS
    assert found["beyond", "certificates"].verdict is Verdict.HOLDS


def test_the_files_of_a_report(tiny):
    build(TINY_EXPERIMENTS[:1], tiny, "projfree reproduce --quick")
    text = (tiny / "report.html").read_text(encoding="utf-8")
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r'(src|href)="(https?:|//)', markup)
    assert "stand-in for YearPredictionMSD, 20,000 x 90" in text
    names = {path.name for path in (tiny / "figures").iterdir()}
    assert {"rates-stochastic-t.svg", "rates-stochastic-t.png"} <= names
    assert "Stand-ins" in (tiny / "summary.md").read_text(encoding="utf-8")


def test_a_figure_on_generated_data_says_so(tiny):
    table, _ = read_store(tiny / FILE)
    experiment = TINY_EXPERIMENTS[0]
    for panel in experiment.panels(table[table["experiment"] == experiment.name]):
        assert "stand-in" in panel.note
        assert panel.alt
