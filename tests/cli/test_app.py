from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from projfree.cli.app import app


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"projfree {version('projfree')}\n"


def test_the_installed_command():
    command = Path(sys.executable).with_name("projfree")
    run = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("projfree ")


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(tmp_path, closed):
    (tmp_path / "rows.csv").write_text("a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(20)))
    words = f"'{sys.executable}' -m projfree fit rows.csv --target y --out model {closed}"
    run = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "model" / "projfree.npz").is_file()


def test_one_row_that_is_held_out_has_no_score(tmp_path):
    (tmp_path / "rows.csv").write_text("a,y\n1,1\n2,3\n3,2\n4,5\n5,4\n")
    words = ["fit", str(tmp_path / "rows.csv"), "--target", "y", "--radius", "1", "--out", str(tmp_path / "model")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    assert "4 to fit, 1 held out" in result.output
    assert "R²" not in result.output
