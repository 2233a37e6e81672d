"""What every rule of the plan takes on a problem: seconds and reads to several tolerances, as records to fit on."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

from grid import LARGE, LOSSES, SHAPES, VECTOR_BALLS, WIDE, Case

from projfree import minimize
from projfree.numerics.compilation import compile_seconds
from projfree.solvers.costs import Costs
from projfree.solvers.rules import RULES

#: Tolerances, loosest first.
TOLERANCES = (1e-3, 1e-4, 1e-6)


@dataclass(frozen=True)
class Record:
    """One run: which rule offered the solver, what it took, and whether it got there."""

    problem: str
    tol: float
    rule: str
    solver: str
    wall: float
    cpu: float
    passes: float
    certified: bool


def half(case: Case) -> str:
    """Whether constants are fitted on a problem or judged on it: a chessboard of losses, balls and shapes.

    So every ball is met with half of the losses and shapes on either side, and all radii of a problem are on one.
    """
    shapes, losses = [*SHAPES, *WIDE, *LARGE], [*LOSSES]
    balls = [*VECTOR_BALLS, "simplex", "group l_2,1", "Schatten-1", "Frobenius"]
    place = shapes.index(case.shape) + losses.index(case.loss) + balls.index(case.ball)
    return "judged" if place % 2 else "fitted"


def digits(tol: float) -> float:
    """The digits that a tolerance asks for, as the plan counts them."""
    return max(-math.log10(max(tol, 1e-15)), 1.0)


def offers(f: Any, ball: Any, tol: float) -> dict[str, Any]:
    """The choices of all rules that apply, by the names of the rules."""
    costs = Costs(f, ball, digits(tol))
    return {rule.__name__: choice for rule in RULES if (choice := rule(costs)) is not None}


#: On a busy machine a run may take so many times the seconds of the processor that it is given.
BUSY = 10.0


@dataclass(frozen=True)
class Cut:
    """A callback that ends a run by the processor's clock, so that other processes do not decide who is too slow."""

    end: float

    def __call__(self, run: Any) -> bool:
        return time.process_time() - compile_seconds() > self.end


def run(case: Case, rule: str, solver: Any, tol: float, limit: float) -> Record:
    """One solver on fresh data, for so many seconds of the processor."""
    f, ball = case.build()
    compiled, wall, cpu = compile_seconds(), time.perf_counter(), time.process_time()
    settings = {"max_iter": 10**6, "time_limit": BUSY * limit, "record": 0, "callbacks": Cut(cpu - compiled + limit)}
    result = minimize(f, ball, solver, tol=tol, **settings)
    wall, cpu, compiled = time.perf_counter() - wall, time.process_time() - cpu, compile_seconds() - compiled
    spent = max(wall - compiled, 0.0), max(cpu - compiled, 0.0)
    return Record(case.name, tol, rule, repr(solver), *spent, float(result.n_passes), result.status.converged)


def measure(case: Case, limit: float, repeat: int, clock: str = "cpu") -> list[dict[str, Any]]:
    """All rules at all tolerances, interleaved; of the repeats the fastest.

    Nobody waits for a solver that has taken ten times as long as another.
    """
    f, ball = case.build()
    found: dict[tuple[str, float], Record] = {}
    for _ in range(repeat):
        for tol in TOLERANCES:
            for rule, choice in offers(f, ball, tol).items():
                best = min(
                    (getattr(one, clock) for (_, at), one in found.items() if at == tol and one.certified),
                    default=limit,
                )
                record = run(case, rule, choice.solver, tol, min(limit, 10.0 * best + 0.2))
                key, before = (rule, tol), found.get((rule, tol))
                better = before is None or (record.certified, -getattr(record, clock)) > (
                    before.certified,
                    -getattr(before, clock),
                )
                if better:
                    found[key] = record
    return [asdict(record) | {"half": half(case)} for record in found.values()]
