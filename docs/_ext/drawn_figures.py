"""The figures of the pages are drawn by the scripts in ``docs/_figures`` when these are newer than the figure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parents[1] / "_figures"
DRAWN = Path(__file__).parents[1] / "_drawn"


def draw(app: Any) -> None:
    """Run each script whose figure is missing or older; the figure has the script's name."""
    DRAWN.mkdir(exist_ok=True)
    for script in sorted(SCRIPTS.glob("*.py")):
        figure = DRAWN / f"{script.stem}.svg"
        if not figure.exists() or figure.stat().st_mtime < script.stat().st_mtime:
            subprocess.run([sys.executable, str(script), str(figure)], check=True)


def setup(app: Any) -> dict[str, bool]:
    """Draw before pages are read."""
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True}
