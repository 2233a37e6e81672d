"""`python -m reproduction`: what it keeps, what it replaces, and what it says beforehand."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from dataclasses import replace
from html import unescape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import reproduction.command
from reproduction import EXPERIMENTS
from reproduction.__main__ import app
from reproduction.base import Claim, Experiment, Finding, Panel, Series, Task, Verdict
from reproduction.folder import held
from reproduction.store import FILE, read_store

RUNNER = CliRunner()
#: How often each task was measured.
MEASURED: list[str] = []


def toy(name, *keys, reads=()):
    """An experiment whose tasks note that they ran."""

    def task(key):
        def run():
            MEASURED.append(f"{name}/{key}")
            yield {"measure": "count", "value": float(len(MEASURED)), "solver": name}

        return Task(key, run)

    def judge(table):
        return Finding(Verdict.HOLDS if len(table) else Verdict.OPEN, "one", "because")

    def panels(table):
        return [Panel("lines", "Lines", "x", "y", [Series("a", [1, 2], [1, 2])], alt="Two points.")]

    claim = Claim("it", "It is so", "1", "Section 1", "it must be", judge, "lines")
    return Experiment(
        name, name.title(), "Is it?", "Section 1", "Toys.", lambda mode: list(map(task, keys)), (claim,), panels, reads
    )


@pytest.fixture
def call(monkeypatch):
    """The command on two toy experiments."""
    MEASURED.clear()
    toys = (toy("one", "a", "b"), toy("two", "c", "d", reads=("one",)))
    monkeypatch.setattr(reproduction.command, "EXPERIMENTS", toys)
    return lambda *words: RUNNER.invoke(app, ["--no-figures", *map(str, words)])


def counts(folder):
    table, _ = read_store(folder / FILE)
    rows = table[table["measure"] == "count"]
    return dict(zip(rows["task"], rows["value"].astype(int), strict=True))


def test_a_finished_table_is_not_replaced(call, tmp_path):
    folder = tmp_path / "r"
    assert call("--out", folder).exit_code == 0
    before = (folder / FILE).read_bytes()
    refused = call("--out", folder)
    assert refused.exit_code == 2
    assert (
        "r' exists; choose another folder, go on with --resume, or replace its results with --force." in refused.output
    )
    assert (folder / FILE).read_bytes() == before
    assert call("--out", folder, "--force").exit_code == 0
    assert counts(folder) == {"one/a": 5, "one/b": 6, "two/c": 7, "two/d": 8}


@pytest.mark.parametrize("name", ["r", "my results"])
def test_the_repeat_line_of_the_page_keeps_everything_else(call, tmp_path, name):
    folder = tmp_path / name
    call("--out", folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    lines = (words.split("</code>")[0] for words in page.split("<code>"))
    line = next(line for line in lines if line.startswith("python -m reproduction two"))
    assert call(*shlex.split(unescape(line))[3:]).exit_code == 0
    assert counts(folder) == {"one/a": 1, "one/b": 2, "two/c": 5, "two/d": 6}


def test_a_named_experiment_brings_those_that_it_reads(call, tmp_path):
    assert call("two", "--out", tmp_path / "r").exit_code == 0
    assert MEASURED == ["one/a", "one/b", "two/c", "two/d"]


def test_force_does_not_replace_full_results(call, tmp_path):
    folder = tmp_path / "r"
    assert call("--full", "--out", folder).exit_code == 0
    for words in ((), ("--full",)):
        refused = call(*words, "--out", folder, "--force")
        assert refused.exit_code == 2
        assert "--force replaces quick results only, and those in" in refused.output
    assert counts(folder) == {"one/a": 1, "one/b": 2, "two/c": 3, "two/d": 4}


@pytest.mark.parametrize("words", [("one",), ("--resume",), ("--part", "1/2")])
def test_full_and_quick_are_never_mixed(call, tmp_path, words):
    folder = tmp_path / "r"
    call("--full", "--out", folder)
    refused = call(*words, "--out", folder)
    assert refused.exit_code == 2
    assert "their mode is full, now it is quick; give another --out." in refused.output


def test_parts_one_after_the_other(call, tmp_path):
    folder = tmp_path / "r"
    for k in (1, 2, 3, 4):
        assert call("--full", "--part", f"{k}/4", "--out", folder).exit_code == 0
    assert MEASURED == ["one/a", "one/b", "two/c", "two/d"]
    assert list(counts(folder)) == MEASURED
    assert call("--full", "--part", "2/4", "--out", folder).exit_code == 0
    assert len(MEASURED) == 4  # what is there is kept


def test_a_table_is_judged_again_without_measuring(call, tmp_path, monkeypatch):
    folder = tmp_path / "r"
    call("--full", "--out", folder)
    before, measured = (folder / FILE).read_bytes(), list(MEASURED)
    other = replace(toy("one", "a", "b").claims[0], judge=lambda table: Finding(Verdict.FAILS, "two", "a new rule"))
    one = replace(reproduction.command.EXPERIMENTS[0], claims=(other,))
    monkeypatch.setattr(reproduction.command, "EXPERIMENTS", (one,))
    assert call("--report-only", "--out", folder).exit_code == 0
    assert (folder / FILE).read_bytes() == before
    assert measured == MEASURED
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert "a new rule" in summary
    assert f"`python -m reproduction --full --out {folder}`" in summary


def damage(kind, table):
    """Spoil a table."""
    if kind == "cut":
        table.write_bytes(table.read_bytes()[:500])
    elif kind == "empty":
        table.write_bytes(b"")
    else:
        rows = pq.read_table(table)
        pq.write_table(rows.drop(["value"]) if kind == "without a column" else pa.table({"x": [1]}), table)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cut", "is damaged: remove it and measure again, or give another --out."),
        ("empty", "is damaged: remove it and measure again, or give another --out."),
        ("another", "was not written by the reproduction; give another --out."),
        ("without a column", "was not written by the reproduction; give another --out."),
    ],
)
@pytest.mark.parametrize("words", [("--report-only",), ("--force",)])
def test_a_damaged_table_is_named(call, tmp_path, kind, said, words):
    folder = tmp_path / "r"
    call("--out", folder)
    damage(kind, folder / FILE)
    before, measured = (folder / FILE).read_bytes(), list(MEASURED)
    refused = call(*words, "--out", folder)
    assert refused.exit_code == 2
    assert f"the table '{folder / FILE}'" in refused.output
    assert said in refused.output
    assert (folder / FILE).read_bytes() == before
    assert measured == MEASURED


def test_files_of_others_are_left_alone(call, tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for words in ((), ("--resume",), ("one",), ("--part", "1/2")):
        refused = call(*words, "--out", tmp_path)
        assert refused.exit_code == 2
        said = "holds files but no results.parquet; choose another folder, or write into it with --force."
        assert said in refused.output
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert call("--out", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["report.html", "summary.md"])
def test_a_report_of_others_is_not_replaced_by_force(call, tmp_path, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    refused = call("--out", tmp_path, "--force")
    assert refused.exit_code == 2
    said = f"--force replaces what the reproduction wrote, and '{tmp_path / name}' was written by something else; "
    assert f"{said}choose another folder, or remove it yourself." in refused.output
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    assert not MEASURED


@pytest.mark.skipif(sys.platform == "win32", reason="locks need fcntl")
def test_a_second_run_in_the_folder_is_refused(call, tmp_path):
    with held(tmp_path):
        refused = call("one", "--out", tmp_path)
    assert refused.exit_code == 2
    said = f"another run is writing to --out '{tmp_path}'; wait until it has ended, or choose another folder."
    assert said in refused.output
    assert not MEASURED
    assert call("one", "--out", tmp_path).exit_code == 0


def test_a_full_disk_keeps_what_is_there(call, tmp_path, monkeypatch):
    folder = tmp_path / "r"
    call("--out", folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(os, "replace", full_disk)
    refused = call("two", "--out", folder)
    assert refused.exit_code == 2
    assert f"writing to '{folder}' failed (No space left on device); what was measured is in" in refused.output
    assert "then go on with: python -m reproduction" in refused.output
    again = call("--report-only", "--out", folder)
    assert again.exit_code == 2
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_report_that_is_interrupted_says_what_was_kept(call, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    call("--out", tmp_path)
    monkeypatch.setattr(reproduction.command, "build", stopped)
    monkeypatch.setattr(sys, "argv", ["reproduction", "--report-only"])
    result = call("--report-only", "--out", tmp_path)
    assert result.exit_code == 130
    assert f"Interrupted; what was measured is in '{tmp_path / FILE}'. Go on with:\n  " in result.output
    assert result.output.endswith("  python -m reproduction --report-only\n")


def full_disk(*_):
    """As where no room is left."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_interruption_before_the_first_result_says_so(call, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction.command, "run", stopped)
    result = call("--out", tmp_path / "r")
    assert result.exit_code == 130
    assert "Interrupted; no measurement was complete. Go on with:" in result.output


def test_an_experiment_that_does_not_exist_is_refused(call, tmp_path):
    result = call("nonsense", "--out", tmp_path / "r")
    assert result.exit_code == 2
    assert "there is no experiment 'nonsense'; there are one, two." in result.output
    assert not (tmp_path / "r").exists()


def test_the_help_names_every_experiment():
    result = RUNNER.invoke(app, ["--help"])
    assert result.exit_code == 0
    shown = " ".join(result.output.replace("\u2502", " ").split())
    assert "python -m reproduction --quick" in shown
    assert ", ".join(experiment.name for experiment in EXPERIMENTS) in shown
