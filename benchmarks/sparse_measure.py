"""How the benchmark of sparse problems measures: who is good enough at which setting, and times."""

from __future__ import annotations

import contextlib
import gc
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sparse_cases import Problem
from sparse_peers import Peer, peers

from projfree import minimize, path
from projfree.numerics.compilation import compile_seconds, watch

LEVELS = (1e-4, 1e-7)
#: What users of liblinear run, beside the setting that reaches the level.
FIXED, FIXED_TOLERANCES = "liblinear at 1e-3 and 1e-6", (1e-3, 1e-6)
#: Peers that took so many times as long as the best one when they were tried are not timed again.
FAR = 3.0
#: Quick problems are repeated more often, until about so many seconds are spent.
SPEND = 1.0


@dataclass(frozen=True)
class Limits:
    """How often each is run, and how many seconds ours may take."""

    repeat: int
    patience: float


@dataclass(frozen=True)
class Spent:
    """Seconds of the clock and of the processor."""

    wall: float
    cpu: float


def timed(call: Callable[[], Any]) -> tuple[Spent, Any]:
    """What a call took and gave, with the garbage collector off."""
    gc.collect()
    gc.disable()
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        out = call()
        return Spent(time.perf_counter() - wall, time.process_time() - cpu), out
    finally:
        gc.enable()


def compiled(call: Callable[[], Any]) -> tuple[Spent, Any]:
    """As `timed`, once more where numba compiled: at a tighter tolerance a peer may get to functions it did not use."""
    before = compile_seconds()
    spent, out = timed(call)
    return timed(call) if compile_seconds() > before else (spent, out)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without warnings and messages: a peer at a loose tolerance often warns."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def ours(problem: Problem, level: float, solver: Any, patience: float) -> tuple[Spent, dict[str, Any]]:
    """A run of ours from fresh data to a certified level."""
    f = problem.objective(problem.data())
    radii = [goal.radius for goal in problem.goals]
    settings = {"tol": level, "max_iter": 10**6, "time_limit": patience, "record": 0, "solver": solver}
    if len(radii) == 1:
        spent, result = timed(lambda: minimize(f, problem.ball(radii[0]), **settings))
        results = [result]
    else:
        settings["time_limit"] = patience / 5.0  # of each radius
        spent, found = timed(lambda: path(f, problem.ball(1.0), radii, **settings))
        results = list(found.results)
    return spent, _facts(problem, results, level)


def _facts(problem: Problem, results: list[Any], level: float) -> dict[str, Any]:
    """What the results prove, and a check of their bounds against the reference optima."""
    for goal, result in zip(problem.goals, results, strict=True):
        if result.bound > goal.value * (1.0 + 1e-12):
            raise AssertionError(f"{problem.case.name}: the bound {result.bound} is above the value {goal.value}.")
    worst = max(results, key=lambda result: result.relative_gap)
    return {
        "certified": bool(worst.relative_gap <= level),
        "gap": float(worst.relative_gap),
        "passes": float(sum(result.n_passes for result in results)),
        "solver": repr(worst.solver),
        "compile": float(sum(result.compile_seconds for result in results)),
    }


def tried(problem: Problem, peer: Peer, best: dict[float, float]) -> dict[float, tuple[float, float]]:
    """For each level the loosest setting of a peer that reaches it and its seconds; ``best`` are those of others."""
    found: dict[float, tuple[float, float]] = {}
    with quietly():
        peer.solve(problem, peer.settings[0])  # compiles, and loads what a first run has to load
        for setting in peer.settings:
            spent, answers = compiled(lambda: peer.solve(problem, setting))
            error = problem.error(answers)
            for level in LEVELS:
                if error <= level and level not in found:
                    found[level] = (setting, spent.cpu)
            missing = [level for level in LEVELS if level not in found]
            if not missing or spent.cpu > 2.0 * FAR * min(best[level] for level in missing) + 0.1:
                break
    return found


def chosen_peers(problem: Problem) -> tuple[dict[tuple[str, float], tuple[Peer, float]], dict[str, str]]:
    """The peers that are worth timing, by name and level, with their settings; and why others are missing."""
    watch()
    found: dict[tuple[str, float], tuple[Peer, float, float]] = {}
    best, missing = dict.fromkeys(LEVELS, 60.0), {}
    for peer in peers(problem):
        try:
            levels = tried(problem, peer, best)
        except Exception as error:  # a peer may give up in any way, which is shown
            missing[peer.name] = "not installed" if isinstance(error, ImportError) else repr(error)
            print(f"  {peer.name} is missing: {missing[peer.name]}", flush=True)
            continue
        for level, (setting, seconds) in levels.items():
            found[peer.name, level] = (peer, setting, seconds)
            best[level] = min(best[level], seconds)
    near = {key: one for key, one in found.items() if one[2] <= FAR * best[key[1]] + 0.002}
    timing = {key: (peer, at) for key, (peer, at, _) in near.items()}
    for peer in peers(problem):  # as its users run it
        if peer.name == "liblinear" and len(problem.goals) == 1:
            timing |= {(FIXED, level): (peer, tol) for level, tol in zip(LEVELS, FIXED_TOLERANCES, strict=True)}
    return timing, missing


def compare(problem: Problem, limits: Limits, solver: Any) -> dict[str, Any]:
    """Ours and the peers, interleaved."""
    timing, missing = chosen_peers(problem)
    facts, spent = {}, {level: [] for level in LEVELS}
    others: dict[tuple[str, float], list[Spent]] = {key: [] for key in timing}
    gaps: dict[float, float] = {}
    ours(problem, 0.1, solver, limits.patience)  # compiles
    done, begun = 0, time.perf_counter()
    while done < limits.repeat or (time.perf_counter() - begun < SPEND and done < 5 * limits.repeat):
        for level in LEVELS:
            if done == 0 or facts[level]["certified"]:
                took, facts[level] = ours(problem, level, solver, limits.patience)
                spent[level].append(took)
            for key, (peer, setting) in timing.items():
                if key[1] == level:
                    with quietly():
                        took, answers = timed(lambda: peer.solve(problem, setting))
                    others[key].append(took)
                    if key[0] == FIXED and done == 0:
                        gaps[level] = problem.proved(answers[0])
        done += 1
    by_level = {level: {name: median(others[name, at]) for name, at in timing if at == level} for level in LEVELS}
    fixed = {str(level): by_level[level].pop(FIXED) | {"gap": gaps[level]} for level in gaps}
    settings = {level: {name: timing[name, at][1] for name, at in timing if at == level} for level in LEVELS}
    best = {level: _best(by_level[level], settings[level]) for level in LEVELS}
    goal = problem.goals[-1]
    return {
        "n": len(problem.y),
        "d": problem.csr.shape[1],
        "nonzeros": int(np.count_nonzero(goal.w)),
        "radius": goal.radius,
        "multiplier": goal.multiplier,
        "optimum": goal.value,
        "reference gap": max(each.gap for each in problem.goals),
        "runs": done,
        "ours": {str(level): facts[level] | median(spent[level]) for level in LEVELS},
        "peers": {str(level): by_level[level] for level in LEVELS},
        "best": {str(level): best[level] for level in LEVELS},
        "liblinear": fixed,
        "missing": missing,
    }


def median(spent: list[Spent]) -> dict[str, float]:
    """Medians of both clocks."""
    return {"wall": float(np.median([one.wall for one in spent])), "cpu": float(np.median([one.cpu for one in spent]))}


def _best(times: dict[str, dict[str, float]], settings: dict[str, float]) -> dict[str, Any] | None:
    if not times:
        return None
    name = min(times, key=lambda name: times[name]["cpu"])
    return {"name": name, "tol": settings[name]} | times[name]
