"""What every rule of the plan takes on a problem: seconds and reads to several tolerances, as records to fit on."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from grid import CALLS, LARGE, LOSSES, SHAPES, VECTOR_BALLS, WIDE, Case

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
    shapes, losses = [*SHAPES, *WIDE, *LARGE], [*LOSSES, CALLS]
    balls = [*VECTOR_BALLS, "simplex", "group l_2,1", "Schatten-1", "Frobenius", "ordered l_1"]
    place = shapes.index(case.shape) + losses.index(case.loss) + balls.index(case.ball)
    return "judged" if place % 2 else "fitted"


def offers(f: Any, ball: Any) -> dict[str, Any]:
    """The choices of all rules that apply, by the names of the rules."""
    costs = Costs(f, ball)
    return {rule.__name__: choice for rule in RULES if (choice := rule(costs)) is not None}


#: On a busy machine a run may take so many times the seconds of the processor that it is given.
BUSY = 10.0


@dataclass
class Watch:
    """A callback that notes when each tolerance is reached, and ends a run by the processor's clock.

    Other processes then do not decide who is too slow.
    """

    end: float
    reached: dict[float, tuple[float, float, float]] = field(default_factory=dict)

    def __call__(self, run: Any) -> bool:
        wall, cpu = now()
        for tol in TOLERANCES:
            if tol not in self.reached and run.relative_gap <= tol:
                self.reached[tol] = wall, cpu, float(run.passes)
        return cpu > self.end


def now() -> tuple[float, float]:
    """Seconds of the clock and of the processor, without those of compilers."""
    compiled = compile_seconds()
    return time.perf_counter() - compiled, time.process_time() - compiled


def run(case: Case, rule: str, solver: Any, limit: float) -> list[Record]:
    """One solver on fresh data to the tightest tolerance, for so many seconds of the processor.

    What the check at the end of a run takes is added to the time of every tolerance.
    """
    f, ball = case.build()
    wall, cpu = now()
    watch = Watch(cpu + limit)
    settings = {"max_iter": 10**6, "time_limit": BUSY * limit, "record": 0, "callbacks": watch}
    result = minimize(f, ball, solver, tol=TOLERANCES[-1], **settings)
    over = now()
    if result.status.converged:
        last = watch.reached.get(TOLERANCES[-1], (*over, result.n_passes))
        after = over[0] - last[0], over[1] - last[1], result.n_passes - last[2]
    else:
        watch.reached.pop(TOLERANCES[-1], None)
        after = (0.0, 0.0, 1.0)
    records = []
    for tol in TOLERANCES:
        at = watch.reached.get(tol, (*over, result.n_passes))
        times = max(at[0] + after[0] - wall, 0.0), max(at[1] + after[1] - cpu, 0.0)
        certified = tol in watch.reached or result.relative_gap <= tol
        records.append(Record(case.name, tol, rule, repr(solver), *times, float(at[2] + after[2]), certified))
    return records


def measure(case: Case, limit: float, repeat: int, clock: str = "cpu") -> list[dict[str, Any]]:
    """All rules, interleaved; of the repeats the fastest.

    Nobody waits for a solver that has taken ten times as long as another.
    """
    f, ball = case.build()
    found: dict[tuple[str, float], Record] = {}
    for _ in range(repeat):
        for rule, choice in offers(f, ball).items():
            done = [one for (_, tol), one in found.items() if tol == TOLERANCES[-1] and one.certified]
            best = min((getattr(one, clock) for one in done), default=limit)
            for record in run(case, rule, choice.solver, min(limit, 10.0 * best + 0.2)):
                key, before = (rule, record.tol), found.get((rule, record.tol))
                if before is None or _order(record, clock) > _order(before, clock):
                    found[key] = record
    return [asdict(record) | {"half": half(case)} for record in found.values()]


def _order(record: Record, clock: str) -> tuple[bool, float]:
    return record.certified, -getattr(record, clock)
