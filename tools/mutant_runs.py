"""Copies of the tree with one fault each, and what the tests say there; `mutants.py` is what to run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "tools", "pyproject.toml", "README.md")
WORKERS = 2
#: Seconds that the tests of one fault, and those that found one run again without it, may take.
LIMIT, LIMIT_AGAIN = 300.0, 900.0
#: Machine code on disk is keyed by the text of its file alone, so that a fault in these may meet code without it.
COMPILED = tuple(
    f"src/projfree/{name}"
    for name in ("data/native/", "losses/", "numerics/scalars.py", "numerics/forms.py", "numerics/entries_kernels.py")
)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-o", "addopts=--import-mode=importlib")


@dataclass(frozen=True)
class Fault:
    """A text of a file that is replaced by another, and the tests that should notice.

    Attributes
    ----------
    what : str
        What goes wrong.
    file : str
        The file, from the root of the tree.
    old, new : str
        The text, which must occur exactly once, and what is put in its place.
    tests : tuple of str
        What pytest is given: files, or single tests.
    """

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def mutated(self, root: Path) -> str:
        """The text of the file with the fault, or a sentence on why there is none."""
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"`old` occurs {text.count(self.old)} times in {self.file}, and must occur once")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Verdict:
    """What became of a fault: the test that found it, if any, what there is to tell, and the seconds it took."""

    fault: Fault
    by: str | None
    told: str
    seconds: float = 0.0


@dataclass
class Workshop:
    """Copies of the tree that faults are put into, and the processes that run there."""

    folder: Path
    copies: SimpleQueue[Path] = field(default_factory=SimpleQueue)
    running: set[subprocess.Popen[str]] = field(default_factory=set)
    closed: bool = False

    def furnish(self) -> None:
        """Make the copies, with byte code that notices a change of its source."""
        for k in range(WORKERS):
            copy = self.folder / f"copy-{k}"
            copy.mkdir()
            for name in COPIED:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy2(ROOT / name, copy / name)
            self._python(copy, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src").communicate()
            self.copies.put(copy)

    def _python(self, copy: Path, *arguments: str, cache: str = "cache") -> subprocess.Popen[str]:
        changed = {"PYTHONPATH": str(copy / "src"), "NUMBA_CACHE_DIR": str(self.folder / cache)}
        changed |= dict.fromkeys(THREADS, "1") | {"PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=copy,
            env=os.environ | changed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that tests with processes of their own can be ended with them
        )

    def run(self, copy: Path, *arguments: str, limit: float, cache: str = "cache") -> tuple[int | None, list[str], str]:
        """The exit code of pytest, None where the time was up; the tests that failed; and the last line."""
        process = self._python(copy, *PYTEST, *arguments, cache=cache)
        self.running.add(process)
        if self.closed:
            self.end(process)
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.end(process)
            process.communicate()
            return None, [], f"no verdict within {limit:.0f} s"
        finally:
            self.running.discard(process)
        lines = output.strip().splitlines() or [""]
        return process.returncode, [named(line) for line in lines if line.startswith("FAILED ")], lines[-1]

    def failing(self, tests: tuple[str, ...]) -> list[str]:
        """Which of the tests fail without a fault."""
        copy = self.copies.get()
        try:
            code, failed, told = self.run(copy, *tests, limit=LIMIT_AGAIN)
        finally:
            self.copies.put(copy)
        return [] if code == 0 else failed or [f"{told}: {' '.join(tests)}"]

    def judge(self, number: int, fault: Fault) -> Verdict:
        """Put a fault in, run its tests and take it out again."""
        copy, begun = self.copies.get(), time.monotonic()
        cache = f"cache-{number}" if fault.file.startswith(COMPILED) else "cache"
        path = copy / fault.file
        try:
            original = path.read_bytes()
            path.write_text(fault.mutated(copy), encoding="utf-8")
            try:
                code, failed, told = self.run(copy, "-x", *fault.tests, limit=LIMIT, cache=cache)
            finally:
                path.write_bytes(original)
        except (FileNotFoundError, ValueError) as error:
            return Verdict(fault, None, str(error))
        finally:
            self.copies.put(copy)
            if cache != "cache":
                shutil.rmtree(self.folder / cache, ignore_errors=True)
        by = failed[0] if code == 1 and failed else None
        return Verdict(fault, by, "survived" if code == 0 else by or told, time.monotonic() - begun)

    @staticmethod
    def end(process: subprocess.Popen[str]) -> None:
        """End a process with those that it has started."""
        with contextlib.suppress(ProcessLookupError):  # it may just have ended by itself
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End everything that still runs, and what is about to."""
        self.closed = True
        for process in list(self.running):
            self.end(process)


def named(line: str) -> str:
    """The test that a line of pytest's summary speaks of; all parameters of it where they cannot be told from more."""
    name = line.removeprefix("FAILED ").split(" - ")[0]
    return name.split("[")[0] if "[" in name and not name.endswith("]") else name
