"""All recorded runs, and the file with what they gave.

    python tests/golden/record.py [part of a name]

writes the file anew, or only the runs with such a name. Do so only where results are meant to change, and say in the
commit why.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from golden import linear, others
from golden.cases import Case

FILE = Path(__file__).with_name("golden.json")
CASES: dict[str, Case] = (
    linear.LOSSES | linear.STORAGE | linear.SOLVERS | others.COMPLETION | others.OBJECTIVES | others.SETS | others.FITS
)


def recorded() -> dict[str, Any]:
    """What was recorded, by the names of the runs."""
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else {}


def record(part: str = "") -> None:
    """Run what has ``part`` in its name, or is new, and write it down; runs that are gone are dropped."""
    known = recorded()
    warnings.simplefilter("ignore")  # some runs are meant to stop short of the tolerance
    found = {name: case.run() if part in name or name not in known else known[name] for name, case in CASES.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    record(*sys.argv[1:2])
