"""Nothing is overwritten unless asked for, no input is an output, nothing is left half-written; and the process."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest

from projfree.cli.output import write_csv


def fit(table, out, *more):
    return ("fit", table, "--target", "y", "--radius", 2, "--out", out, *more)


def test_what_exists_is_refused_before_anything_is_read(call, table, tmp_path, unchanged):
    (tmp_path / "empty").mkdir()
    assert call(*fit(table, tmp_path / "empty")).exit_code == 0
    assert call(*fit(table, tmp_path / "m")).exit_code == 0
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.tex").write_text("mine")
    (tmp_path / "p.csv").write_text("mine")
    table.rename(tmp_path / "moved.csv")
    with unchanged():
        for words in (
            fit(table, tmp_path / "m"),
            fit(table, tmp_path / "thesis"),
            ("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv"),
            ("complete", table, "--out", tmp_path / "p.csv"),
        ):
            refused = call(*words)
            assert refused.exit_code == 2
            assert "exists" in refused.output
            assert "--force" in refused.output


def test_force_replaces_what_projfree_wrote_and_plain_files_alone(call, table, tmp_path, unchanged):
    call(*fit(table, tmp_path / "m"))
    assert call(*fit(table, tmp_path / "m", "--force")).exit_code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.tex").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine" / "a.tex")
    with unchanged():
        refused = call(*fit(table, tmp_path / "mine", "--force"))
        assert refused.exit_code == 2
        assert "a.tex" in refused.output
        for name in ("link", "mine"):
            assert call("predict", tmp_path / "m", table, "--out", tmp_path / name, "--force").exit_code == 2
    (tmp_path / "p.csv").write_text("old")
    assert call("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv", "--force").exit_code == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 100


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_input_is_never_an_output(call, table, tmp_path, unchanged, force):
    assert call(*fit(table, tmp_path / "m")).exit_code == 0
    os.link(table, tmp_path / "other name.csv")
    (tmp_path / "link.csv").symlink_to(table)
    with unchanged():
        for name in ("table.csv", "other name.csv", "link.csv", "m", "m/p.csv"):
            refused = call("predict", tmp_path / "m", table, "--out", tmp_path / name, *force)
            assert refused.exit_code == 2, name
            assert "would overwrite" in refused.output
        assert call(*fit(table, table, *force)).exit_code == 2
        assert call(*fit(table, tmp_path, *force)).exit_code == 2


def interrupted(*args, **kwargs):
    raise KeyboardInterrupt


def full(*args, **kwargs):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("place", ["os.fsync", "os.replace"])
@pytest.mark.parametrize("stopped", [full, interrupted])
def test_a_write_that_fails_leaves_nothing(call, table, tmp_path, unchanged, monkeypatch, place, stopped):
    call(*fit(table, tmp_path / "m"))
    monkeypatch.setattr(place, stopped)
    with unchanged():
        for words, name in (
            (("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv"), "p.csv'"),
            (fit(table, tmp_path / "n"), "n'"),
        ):
            failed = call(*words)
            assert failed.exit_code == (2 if stopped is full else 130)
            told = (name, "No space left on device") if stopped is full else ("nothing was written",)
            assert all(part in failed.output for part in told)


def test_what_another_process_has_written_in_the_meantime_stays(tmp_path):
    out = tmp_path / "p.csv"

    def frames():
        yield pd.DataFrame({"a": [1]})
        out.write_text("theirs")

    for force, left in ((False, "theirs"), (True, "a\n1\n")):
        out.unlink(missing_ok=True)
        with nullcontext() if force else pytest.raises(ValueError, match="--force"):
            write_csv(frames(), out, [], force)
        assert out.read_text() == left
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_no_formula_reaches_a_spreadsheet(call, ratings, tmp_path):
    frame = pd.read_csv(ratings)
    frame["item"] = "=HYPERLINK(" + frame["item"].astype(str) + ")"
    frame["user"] = "+user" + frame["user"].astype(str)
    frame.to_csv(tmp_path / "evil.csv", index=False)
    words = ("complete", tmp_path / "evil.csv", "--radius", 2, "--rank", 2, "--out", tmp_path / "m")
    assert call(*words).exit_code == 0
    assert call("recommend", tmp_path / "m", "--out", tmp_path / "r.csv").exit_code == 0
    written = pd.read_csv(tmp_path / "r.csv")
    assert written["item"].str.startswith("'=HYPERLINK(").all()
    assert written["user"].str.startswith("'+user").all()


# ---------------------------------------------------------------- the process


def test_version(call):
    assert call("--version").output == f"projfree {version('projfree')}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_the_command_in_a_shell(table, tmp_path):
    """A terminal without Unicode, closed streams, and an output that is full."""
    frame = pd.read_csv(table)
    frame.assign(y=frame["y"].gt(0).map({True: "zürich", False: "bern"})).to_csv(tmp_path / "t.csv", index=False)
    command = f"'{sys.executable}' -m projfree"
    script = f"""set -e
    {command} fit t.csv --target y --radius 2 --out closed <&- >&- 2>&-
    {command} predict closed t.csv
    {command} fit t.csv --target y --radius 2 --out full > /dev/full
    """
    variables = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(["sh", "-c", script], capture_output=True, cwd=tmp_path, env=variables, check=False)
    assert done.returncode == 1, done.stderr
    assert b"bern" in done.stdout.split()
    assert b"'full' was written" in done.stderr
    assert all((tmp_path / name / "projfree.npz").is_file() for name in ("closed", "full"))


def test_what_is_missing_is_named(tmp_path):
    without = [sys.executable, "-c", "import sys; sys.modules['typer'] = None; from projfree.cli import main; main()"]
    done = subprocess.run(without, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'projfree[cli]'" in done.stderr
