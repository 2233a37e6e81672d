"""Nothing is overwritten unasked, no input is an output, and nothing is left half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import pandas as pd
import pytest

from projfree import load
from projfree.cli import main, models
from projfree.cli.destinations import written


def fit(table, out, *more):
    return ("fit", table, "--target", "y", "--radius", 2, "--out", out, *more)


def complete(ratings, out, *more):
    return ("complete", ratings, "--radius", 2, "--rank", 2, "--out", out, *more)


def test_fit_refuses_what_exists_before_it_reads_anything(call, table, tmp_path, unchanged):
    assert call(*fit(table, tmp_path / "m")).exit_code == 0
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.tex").write_text("mine")
    table.unlink()
    for name in ("m", "thesis"):
        with unchanged:
            refused = call(*fit(table, tmp_path / name))
            assert refused.exit_code == 2
            assert "exists; choose another path, or replace it with --force" in refused.output


def test_force_replaces_a_model_and_nothing_else(call, table, tmp_path, unchanged):
    call(*fit(table, tmp_path / "m"))
    assert call(*fit(table, tmp_path / "m", "--force")).exit_code == 0
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.tex").write_text("mine")
    with unchanged:
        refused = call(*fit(table, tmp_path / "thesis", "--force"))
        assert refused.exit_code == 2
        assert "holds 'a.tex'; choose another path" in refused.output


def test_an_empty_folder_is_a_place_for_a_model(call, table, tmp_path):
    (tmp_path / "m").mkdir()
    assert call(*fit(table, tmp_path / "m")).exit_code == 0


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_input_is_never_an_output(call, table, tmp_path, unchanged, force):
    assert call(*fit(table, tmp_path / "m")).exit_code == 0
    os.link(table, tmp_path / "other name.csv")
    (tmp_path / "link.csv").symlink_to(table)
    with unchanged:
        for out in (
            table,
            tmp_path / "other name.csv",
            tmp_path / "link.csv",
            tmp_path / "m",
            tmp_path / "m" / "p.csv",
        ):
            refused = call("predict", tmp_path / "m", table, "--out", out, *force)
            assert refused.exit_code == 2, out
            assert "would overwrite" in refused.output
        assert call(*fit(table, table, *force)).exit_code == 2
        assert call(*fit(table, tmp_path, *force)).exit_code == 2


def test_predict_refuses_what_exists(call, table, tmp_path, unchanged):
    call(*fit(table, tmp_path / "m"))
    (tmp_path / "p.csv").write_text("mine")
    with unchanged:
        refused = call("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv")
        assert refused.exit_code == 2
        assert "p.csv' exists; choose another path, or replace it with --force" in refused.output
    assert call("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv", "--force").exit_code == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 100


def test_force_replaces_plain_files_alone(call, table, tmp_path, unchanged):
    call(*fit(table, tmp_path / "m"))
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "folder").mkdir()
    with unchanged:
        for name in ("link", "folder"):
            refused = call("predict", tmp_path / "m", table, "--out", tmp_path / name, "--force")
            assert refused.exit_code == 2
            assert "is not a plain file, and --force replaces nothing else" in refused.output


def test_a_failed_prediction_leaves_nothing(call, table, tmp_path, unchanged, monkeypatch):
    call(*fit(table, tmp_path / "m"))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with unchanged:
        failed = call("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv")
        assert failed.exit_code == 2
        assert "p.csv' could not be written (No space left on device); no part of it was left behind." in failed.output
        failed = call(*fit(table, tmp_path / "n"))
        assert failed.exit_code == 2
        assert "No space left on device" in failed.output


def test_ctrl_c_while_predictions_are_written_leaves_nothing(call, table, tmp_path, unchanged, monkeypatch):
    call(*fit(table, tmp_path / "m"))

    def pressed(*names):
        raise KeyboardInterrupt

    monkeypatch.setattr("projfree.cli.destinations.os.link", pressed)
    with unchanged:
        stopped = call("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv")
        assert stopped.exit_code == 130
        assert "Interrupted; nothing was written." in stopped.output


def test_complete_refuses_what_exists(call, ratings, tmp_path, unchanged):
    words = ("complete", ratings, "--radius", 2, "--rank", 2, "--recommend", 1, "--out", tmp_path / "m")
    (tmp_path / "m.recommendations.csv").write_text("mine")
    with unchanged:
        refused = call(*words)
        assert refused.exit_code == 2
        assert "m.recommendations.csv' exists" in refused.output
    (tmp_path / "m.recommendations.csv").unlink()
    assert call(*words).exit_code == 0
    with unchanged:
        refused = call(*words)
        assert refused.exit_code == 2
        assert "m' exists; choose another path" in refused.output
    assert call(*words, "--force").exit_code == 0


def overtaken(out, force):
    with written(out, force) as file:
        file.write("ours")
        out.write_text("theirs")


def test_what_another_process_has_written_in_the_meantime_stays(tmp_path):
    out = tmp_path / "p.csv"
    with pytest.raises(ValueError, match=r"p\.csv' exists; choose another path"):
        overtaken(out, False)
    assert out.read_text() == "theirs"
    overtaken(out, True)
    assert out.read_text() == "ours"
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_file_systems_without_links_are_written_to(tmp_path, monkeypatch):
    def refused(*names):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("projfree.cli.destinations.os.link", refused)
    out = tmp_path / "p.csv"
    with written(out, False) as file:
        file.write("ours")
    assert out.read_text() == "ours"
    with pytest.raises(ValueError, match="exists"), written(out, False) as file:
        file.write("again")
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_a_model_that_another_process_has_saved_in_the_meantime_stays(call, table, tmp_path, monkeypatch):
    """Two fits at once: the slower one is refused at its end."""
    out = tmp_path / "m"
    score = models.held_out_score

    def slower(*args):
        (out / "theirs").mkdir(parents=True, exist_ok=True)
        return score(*args)

    monkeypatch.setattr("projfree.cli.fit.held_out_score", slower)
    refused = call(*fit(table, out))
    assert refused.exit_code == 2
    assert "m' exists; choose another path, or replace it with --force." in refused.output
    assert [path.name for path in out.iterdir()] == ["theirs"]


def limited_files(size):
    """As on a full disk: no file can be longer than this."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextmanager
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit()


def test_a_disk_too_full_for_a_first_checkpoint_leaves_nothing(call, ratings, tmp_path, unchanged):
    words = ("complete", ratings, "--rank", 2, "--checkpoint", tmp_path / "c", "--out", tmp_path / "m")
    with limited_files(500), unchanged:
        failed = call(*words)
    assert failed.exit_code == 2, failed.output
    assert "File too large" in failed.output
    assert [path.name for path in tmp_path.iterdir()] == ["ratings.csv"]


def interrupted(*args):
    raise KeyboardInterrupt


def full(*args):
    raise OSError(28, "No space left on device")


def test_a_model_that_cannot_be_written_leaves_nothing(call, table, tmp_path, unchanged, monkeypatch):
    monkeypatch.setattr("projfree.estimators.save", full)
    with unchanged:
        failed = call(*fit(table, tmp_path / "m"))
    assert failed.exit_code == 2
    assert "m' could not be written (No space left on device); no part of it was left behind." in failed.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


def test_a_completion_that_cannot_be_written_is_not_lost(call, ratings, tmp_path, monkeypatch):
    words = ("complete", ratings, "--rank", 2, "--checkpoint", tmp_path / "c", "--out", tmp_path / "m")
    monkeypatch.setattr("projfree.estimators.save", full)
    failed = call(*words)
    assert failed.exit_code == 2
    assert "m' could not be written (No space left on device); no part of it was left behind." in failed.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "ratings.csv"]
    monkeypatch.undo()
    assert call(*words).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "m", "ratings.csv"]


@pytest.mark.parametrize("stopped", [full, interrupted])
def test_recommendations_that_cannot_be_written_leave_the_model(call, ratings, tmp_path, monkeypatch, stopped):
    monkeypatch.setattr("projfree.cli.complete.write_lists", stopped)
    failed = call("complete", ratings, "--rank", 2, "--recommend", 3, "--out", tmp_path / "m")
    assert failed.exit_code == (2 if stopped is full else 130)
    output = " ".join(failed.output.split())
    assert "m'; `projfree recommend " in output
    assert "m --n 3 --out " in output
    assert "m.recommendations.csv` recommends from it." in output
    if stopped is full:
        assert "m.recommendations.csv' could not be written (No space left on device)" in output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "ratings.csv"]
    items, _ = load(tmp_path / "m").recommend(0, 3)
    assert len(items) == 3


PRESSED = """
import sys

class Pressed:
    def find_spec(self, name, *more):
        if name == "projfree.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from projfree.cli import main
main()
"""


def test_ctrl_c_while_the_package_is_loaded_is_a_sentence():
    found = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True, check=False)
    assert found.returncode == 130
    assert found.stderr == "Interrupted; nothing was written.\n"


def test_ctrl_c_in_a_command_is_told_once(monkeypatch, capsys, table, tmp_path):
    def pressed(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("projfree.cli.fit.split", pressed)
    monkeypatch.setattr("sys.argv", ["projfree", *map(str, fit(table, tmp_path / "m"))])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "Interrupted; nothing was written.\n"
