"""The README's first screen runs, and prints what it says it prints."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from projfree.cli.app import app

README = Path(__file__).parents[1] / "README.md"


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"```(\w*)\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def settled(text: str) -> str:
    """Seconds differ from run to run, the last digits of a value from machine to machine; the first run compiles."""
    text = re.sub(r"^  compiled .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"(\d\.\d{7})\d+", r"\1", re.sub(r"[\d.]+ s$", "... s", text.strip(), flags=re.MULTILINE))


def test_the_examples_print_what_the_readme_shows() -> None:
    found, names = blocks(), {}
    examples = [k for k, (language, _) in enumerate(found) if language == "python"]
    assert len(examples) == 2
    for k in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(found[k][1], str(README), "exec"), names)
        assert settled(printed.getvalue()) == settled(found[k + 1][1])


def test_the_first_example_does_not_wait_for_a_compiler() -> None:
    code = next(text for language, text in blocks() if language == "python")
    ask = [sys.executable, "-c", code + "\nimport sys; print('numba' in sys.modules)"]
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()[-1] == "False"


def test_the_command_prints_what_the_readme_shows(tmp_path, monkeypatch) -> None:
    found = blocks()
    place = next(k for k, (_, text) in enumerate(found) if text.startswith("projfree data get"))
    monkeypatch.chdir(tmp_path)
    printed = ""
    for line in found[place][1].splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
        printed += done.stdout
    gap = re.compile(r"certified gap .*")  # of the size of rounding
    printed, shown = (gap.sub("", settled(text)) for text in (printed, found[place + 1][1]))
    assert printed == shown
