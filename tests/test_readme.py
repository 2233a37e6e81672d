"""The README's first screen runs, and prints what it says it prints."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"```(\w*)\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_example_prints_what_the_readme_shows() -> None:
    code = next(text for language, text in blocks() if language == "python")
    shown = next(text for language, text in blocks() if text.startswith("Result:"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(README), "exec"), {})

    # Seconds differ from run to run, the last digits of a value from machine to machine.
    def settled(text: str) -> str:
        return re.sub(r"(\d\.\d{7})\d+", r"\1", re.sub(r"[\d.]+ s$", "... s", text.strip(), flags=re.MULTILINE))

    assert settled(printed.getvalue()) == settled(shown)
