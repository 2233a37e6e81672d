"""Paths of squares on few features: the plan against `Direct`, in seconds of the processor.

python benchmarks/plan_paths.py [--radii 20] [--tol 1e-6]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from common import console
from grid import Case
from tables import empty

from projfree import Direct, path

SHAPES = ("tall 50,000 x 100", "sparse 100,000 x 400", "square 4,000 x 600", "click 24,900 x 150")
BALLS = ("l_1", "l_1.5", "l_2")


def seconds(case: Case, solver: Any, radii: int, tol: float) -> tuple[float, str]:
    """What a path takes from fresh data, and the solver that it used."""
    f, ball = case.build()
    begun = time.process_time()
    found = path(f, ball, ball.radius * np.geomspace(0.02, 1.0, radii), solver=solver, tol=tol, record=0)
    return time.process_time() - begun, type(found.results[0].solver).__name__


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--radii", type=int, default=20)
    options.add_argument("--tol", type=float, default=1e-6)
    chosen = options.parse_args()
    table = empty("\nseconds of a path")
    for name in ("problem", "planned", "s", "Direct, s", "ratio"):
        table.add_column(name)
    for shape in SHAPES:
        for ball in BALLS:
            case = Case("squared", ball, shape, 2.0)
            seconds(case, Direct(), 2, 0.1)  # loads what a first run has to load
            spent, name = seconds(case, "auto", chosen.radii, chosen.tol)
            direct, _ = seconds(case, Direct(), chosen.radii, chosen.tol)
            table.add_row(case.name, name, f"{spent:.3f}", f"{direct:.3f}", f"{spent / direct:.2f}")
    console().print(table)


if __name__ == "__main__":
    main()
