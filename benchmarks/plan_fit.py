"""Fit the constants of the plan's rules on one half of a grid of problems, and judge its choices on the other.

    python benchmarks/plan_fit.py [--every 5] [--skip 0] [--limit 2] [--only TEXT] [--repeat 2] [--records FILE ...]

Every rule's solver is run on every problem to three tolerances (`plan_measure`), or records of earlier runs are read.
A rule prices its solver by constants in `solvers/rules.py` and `solvers/costs.py`; the plan takes the cheapest. The fit
changes these constants, one at a time, by factors, and keeps what brings the plan's choices closest to the best solvers
of the first half: the mean logarithm of the ratio of times, plus a little for every change. Constants that decide what
a solver does, and prices that were measured by themselves, stay (`HELD`). Problems are divided by loss, ball and shape,
so that two radii of one problem are never in different halves. Nothing is written into the package: new values are
printed.

The last lines are the law of tolerances: the plan's reads of the data to a looser tolerance may exceed those to a
tighter one by a tenth at most. `--every 18 --limit 1 --repeat 1` takes two minutes of one processor.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from common import console
from grid import Case, cases, polytopes, wide
from plan_measure import TOLERANCES, measure
from record import commit, destinations, machine, save
from tables import empty

from projfree.solvers import costs as costs_module
from projfree.solvers import rules as rules_module
from projfree.solvers.costs import Costs

MODULES = (rules_module, costs_module)
#: Constants that change what a solver does, and those that `projections.py` and `plan_paths.py` measure.
HELD = ("RELAY_SHARE", "KRYLOV_SHARE", "LEAST_P", "NEXT_SOLVE", "PROJECTION", "POWER_PROJECTION", "ORACLE", "SPECTRUM")
#: And one that no problem of the grid asks for.
HELD += ("TASKS",)
FACTORS = (0.25, 0.5, 0.7, 0.85, 1.2, 1.4, 2.0, 4.0)
SWEEPS = 6
#: How random choices are during the search, from first to last.
HEATS = (1.0, 0.3, 0.1, 0.0)
#: The price of a change by a factor e, in the mean logarithm of ratios; what counts as far behind.
CAUTION, WORST = 0.01, 20.0
#: A choice is good within this of the best; problems done faster than this are shown, not judged.
GOOD, JUDGED = 1.5, 0.02
#: The law of tolerances.
TENTH, SLACK = 1.1, 2.0

Constants = dict[str, float]
Records = list[dict[str, Any]]


def constants() -> Constants:
    """All prices that the rules use, by name."""
    found = {name: value for module in MODULES for name, value in vars(module).items() if name.isupper()}
    return {name: value for name, value in found.items() if isinstance(value, float) and name not in HELD}


def put(values: Constants) -> None:
    """Set constants wherever a module has them by that name."""
    for module in MODULES:
        for name in values.keys() & vars(module).keys():
            setattr(module, name, values[name])


class Judge:
    """The plan's choices under any constants, against measured times."""

    def __init__(self, asked: list[Case], records: Records, clock: str) -> None:
        self.records = records
        self.times: dict[tuple[str, float], dict[str, float]] = {}
        for one in records:
            spent = one[clock] if one["certified"] else math.inf
            self.times.setdefault((one["problem"], one["tol"]), {})[one["rule"]] = max(spent, 1e-4)
        self.costs = {}
        for case in asked:
            f, ball = case.build()
            for tol in TOLERANCES:
                if math.isfinite(min(self.times.get((case.name, tol), {"": math.inf}).values())):
                    self.costs[case.name, tol] = Costs(f, ball)

    def work(self, key: tuple[str, float]) -> dict[str, float]:
        """The prices of the rules that apply and were measured."""
        known, work = self.times[key], {}
        costs = self.costs[key].repriced()  # some prices are in its numbers, which would stay as they were
        for rule in rules_module.RULES:
            if rule.__name__ in known and (choice := rule(costs)) is not None:
                work[rule.__name__] = choice.work
        return work

    def chosen(self, key: tuple[str, float]) -> str:
        """The rule that the plan follows."""
        work = self.work(key)
        return min(work, key=lambda name: work[name])

    def expected(self, key: tuple[str, float], heat: float) -> float:
        """The mean logarithm of the ratio if rules were drawn with the odds price^(-1 / heat)."""
        work, known = self.work(key), self.times[key]
        best, cheapest = min(known.values()), max(min(work.values()), 1e-9)
        odds = {name: (cheapest / max(price, 1e-9)) ** (1.0 / heat) for name, price in work.items()}
        logs = {name: math.log(min(known[name] / best, WORST)) for name in work}
        return sum(odds[name] * logs[name] for name in work) / sum(odds.values())

    def ratio(self, key: tuple[str, float]) -> float:
        """The chosen solver's time over the best one's."""
        known = self.times[key]
        return min(known[self.chosen(key)] / min(known.values()), WORST)

    def loss(self, keys: list[tuple[str, float]], heat: float = 0.0) -> float:
        """The mean logarithm of the ratios, of the plan's choices (heat 0) or as `expected`."""
        each = [self.expected(key, heat) if heat else math.log(self.ratio(key)) for key in keys]
        return sum(each) / max(len(keys), 1)


def fit(judge: Judge, keys: list[tuple[str, float]], log: Callable[[str], None]) -> Constants:
    """Constants that choose best on the problems of the keys, by coordinate search from the present ones.

    Choices jump with the constants, so that most changes of one alone do nothing. The search therefore begins with
    what is expected of choices at random (`Judge.expected`), and cools down; of all that it met it returns what is best
    for the plan itself. A solver that was not done in its time counts as `WORST` times the best one.
    """
    present = constants()
    found = best = dict(present)

    def price(values: Constants, heat: float) -> float:
        put(values)
        change = sum(abs(math.log(values[name] / present[name])) for name in present)
        return judge.loss(keys, heat) + CAUTION * change

    lowest = price(found, 0.0)
    for heat in HEATS:
        best = swept(best, lambda values: price(values, heat))
        if (cost := price(best, 0.0)) < lowest:
            found, lowest = best, cost
        log(f"heat {heat:g}: {cost:.4f}, the lowest so far {lowest:.4f}")
    put(present)
    return found


def swept(start: Constants, price: Callable[[Constants], float]) -> Constants:
    """Change one constant at a time by the factors, while that helps."""
    best, lowest = start, price(start)
    for _ in range(SWEEPS):
        before = lowest
        for name in start:
            for factor in FACTORS:
                tried = best | {name: best[name] * factor}
                if (cost := price(tried)) < lowest - 1e-9:
                    best, lowest = tried, cost
        if lowest == before:
            break
    return best


def summary(judge: Judge, keys: list[tuple[str, float]]) -> dict[str, float]:
    """How good the choices are on these problems, as far as they are judged."""
    counted = [key for key in keys if min(judge.times[key].values()) >= JUDGED]
    ratios = sorted(judge.ratio(key) for key in counted)
    return {
        "problems": len(ratios),
        "good": sum(ratio <= GOOD for ratio in ratios) / max(len(ratios), 1),
        "mean": math.exp(judge.loss(counted)),
        "worst": ratios[-1] if ratios else math.nan,
    }


def law_of_tolerances(judge: Judge) -> list[dict[str, Any]]:
    """Problems on which the plan reads the data more often for a looser tolerance."""
    passes = {(one["problem"], one["tol"], one["rule"]): one for one in judge.records}
    broken = []
    for problem in dict.fromkeys(name for name, _ in judge.costs):
        found = []
        for tol in TOLERANCES:
            if (problem, tol) in judge.costs:
                found.append((tol, passes[problem, tol, judge.chosen((problem, tol))]))
        for (loose, first), (tight, then) in pairwise(found):
            if then["certified"] and first["passes"] > TENTH * then["passes"] + SLACK:
                broken.append({"problem": problem, "loose": loose, "tight": tight} | _both(first, then))
    return broken


def _both(first: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    return {
        "passes": [first["passes"], then["passes"]],
        "solvers": [first["solver"], then["solver"]],
    }


def show(title: str, rows: dict[str, dict[str, float]]) -> None:
    table = empty(f"\n{title}")
    for name in ("", "problems", f"within {GOOD:g}", "mean ratio", "worst"):
        table.add_column(name, justify="right" if name else "left")
    for name, row in rows.items():
        cells = f"{row['problems']}", f"{row['good']:.0%}", f"{row['mean']:.2f}", f"{row['worst']:.1f}"
        table.add_row(name, *cells)
    console().print(table)


def obtained(asked: list[Case], chosen: argparse.Namespace) -> Records:
    """The records, read or measured."""
    if chosen.records:
        return [one for file in chosen.records for one in json.loads(file.read_text(encoding="utf-8"))["records"]]
    records: Records = []
    for number, case in enumerate(asked, start=1):
        records += measure(case, chosen.limit, chosen.repeat, chosen.clock)
        print(f"{number}/{len(asked)} {case.name}", flush=True)
    return records


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="")
    options.add_argument("--every", type=int, default=1, help="one of so many problems")
    options.add_argument("--limit", type=float, default=10.0, help="seconds of a run")
    options.add_argument("--repeat", type=int, default=2)
    options.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    options.add_argument("--skip", type=int, default=0, help="leave out so many problems first")
    options.add_argument("--records", type=Path, nargs="*", default=[], help="of earlier runs, instead of a new one")
    options.add_argument("--name", default="plan", help="of the file of results")
    destinations(options)
    chosen = options.parse_args()
    asked = [case for case in cases() + wide() + polytopes() if chosen.only in case.name]
    asked = asked[chosen.skip :: 1 if chosen.records else chosen.every]
    records = obtained(asked, chosen)
    asked = [case for case in asked if case.name in {one["problem"] for one in records}]
    payload: dict[str, Any] = {"machine": machine(), "records": records}
    save(chosen.out, chosen.name, payload)  # before the fit, which can be repeated
    judge, halves = Judge(asked, records, chosen.clock), {one["problem"]: one["half"] for one in records}
    keys = {name: [key for key in judge.costs if halves[key[0]] == name] for name in ("fitted", "judged")}
    present, broken = constants(), law_of_tolerances(judge)
    quick = sum(min(judge.times[key].values()) < JUDGED for key in judge.costs)
    print(
        f"{len(judge.times)} problems with their tolerances: {len(judge.times) - len(judge.costs)} that no solver "
        f"certified within the limit are left out, {quick} done in under {JUDGED:g} s are fitted on and not judged"
    )
    before = {name: summary(judge, each) for name, each in keys.items()}
    fitted = fit(judge, keys["fitted"], print)
    put(fitted)
    after = {name: summary(judge, each) for name, each in keys.items()}
    put(present)
    show("present constants, on the half to fit on and the half to judge on", before)
    show("fitted constants", after)
    for name in present:
        if fitted[name] != present[name]:
            print(f"{name}: {present[name]:g} -> {fitted[name]:.3g}")
    for one in broken:
        print(f"more reads at a looser tolerance: {one}")
    print(f"{len(broken)} of {len(asked)} problems break the law of tolerances")
    if chosen.commit:
        results = {"present": before, "fitted": after, "constants": fitted, "law": broken}
        commit("plan", payload | results)


if __name__ == "__main__":
    main()
