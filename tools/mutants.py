"""Put faults into copies of the code, one at a time, and see whether the tests find them.

`tools/mutants.toml` lists the faults. Each replaces a text that occurs exactly once in one file, and names the tests
that should fail then. The exit code is zero only if every fault was found, every text still occurs exactly once, and
the tests that found a fault pass without it. Run ``make mutants``, or ``python tools/mutants.py [part of a file or of a
description] ...`` for some of them. Everything happens in temporary copies of the tree, which are removed at the end
and on Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from mutant_runs import ROOT, WORKERS, Fault, Verdict, Workshop


def read_faults(wanted: list[str]) -> list[Fault]:
    """The faults in the list whose file or description contains one of the given words; all without words."""
    table = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))
    faults = [Fault(**{**entry, "tests": tuple(entry["tests"])}) for entry in table["fault"]]
    return [fault for fault in faults if not wanted or any(word in fault.file + fault.what for word in wanted)]


def check(workshop: Workshop, pool: ThreadPoolExecutor, faults: list[Fault]) -> list[Verdict]:
    """The verdicts; a test that fails without a fault has found none."""
    workshop.furnish()
    verdicts = []
    for done in as_completed([pool.submit(workshop.judge, k, fault) for k, fault in enumerate(faults)]):
        verdicts.append(verdict := done.result())
        print(line(verdict), flush=True)
    names = sorted({verdict.by for verdict in verdicts if verdict.by})
    print(f"{len(names)} tests again, without a fault", flush=True)
    parts = [part for k in range(WORKERS) if (part := tuple(names[k::WORKERS]))]
    wrong = [name for failed in pool.map(workshop.failing, parts) for name in failed]
    for name in wrong:
        print(f"fails without a fault too: {name}")
    return [
        replace(verdict, by=None, told=f"{verdict.by} fails without it too") if told(verdict, wrong) else verdict
        for verdict in verdicts
    ]


def told(verdict: Verdict, wrong: list[str]) -> bool:
    """Whether a test that fails anyway is what has found the fault, or nobody knows."""
    return verdict.by is not None and any(verdict.by.split("[")[0] in name for name in wrong)


def line(verdict: Verdict) -> str:
    """A row of the table."""
    mark = "found" if verdict.by else "NOT FOUND"
    where = verdict.fault.file.removeprefix("src/projfree/")
    return f"{mark:9} {verdict.seconds:5.0f} s  {where:36} {verdict.fault.what}\n{'':19}{verdict.told}"


def main(wanted: list[str]) -> int:
    """Check the faults; returns the exit code."""
    faults, begun = read_faults(wanted), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="projfree-mutants-") as folder:
        workshop = Workshop(Path(folder))
        pool = ThreadPoolExecutor(WORKERS)
        try:
            verdicts = check(workshop, pool, faults)
        except KeyboardInterrupt:
            print("interrupted")
            return 130
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            workshop.close()
            pool.shutdown()
    missed = [verdict for verdict in verdicts if verdict.by is None]
    print(f"\n{len(verdicts) - len(missed)} of {len(verdicts)} found in {(time.monotonic() - begun) / 60:.1f} minutes")
    print(*map(line, missed), sep="\n")
    return 1 if missed or not verdicts else 0


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has told background jobs to ignore Ctrl-C
        signal.signal(number, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
