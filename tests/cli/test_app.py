from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from typer.testing import CliRunner

from projfree.cli.app import app


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"projfree {version('projfree')}\n"


def test_help():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "Projection-free optimization over norm balls" in result.output


def test_unknown_option():
    assert CliRunner().invoke(app, ["--nonsense"]).exit_code == 2


def test_the_installed_command():
    command = Path(sys.executable).with_name("projfree")
    run = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("projfree ")
