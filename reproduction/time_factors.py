"""Factors of time as products: iterations, which are counted, times the seconds of a step, which are measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reproduction.base import Panel, Series
from reproduction.drawing import bar_panel
from reproduction.judging import NO_FACTOR, medians, select
from reproduction.words import number

COUNTS = ["iterations", "iterations at least"]


def factors(table: Any, fast: str, slow: str, implementation: str, step: str = "", **wanted: Any) -> Any:
    """Time of ``slow`` over time of ``fast``, one row for each count and round of the clock.

    ``step`` names the method whose step time is used for ``slow``, where several share one. A slow run that did not
    converge gives a lower bound; where the fast one did not, the row says that there is no factor.
    """
    import pandas as pd

    counts = select(table, measure=COUNTS, **wanted)
    keys = ["problem", "note", "rho"]
    per_round = _step_ratios(table, fast, step or slow, implementation)
    out = []
    for (problem, note, rho), group in counts.groupby(keys, sort=False):
        a, b = select(group, solver=fast), select(group, solver=slow)
        if not len(a) or not len(b):
            continue
        measure, iterations = _ratio(a, b)
        for seed, ratio in enumerate(per_round.get(problem, ())):
            row = {**b.iloc[0].to_dict(), "solver": slow, "variant": implementation, "note": note, "rho": rho}
            out.append({**row, "measure": measure, "seed": seed, "value": iterations * ratio})
    return pd.DataFrame(out, columns=list(table.columns))


def _ratio(fast: Any, slow: Any) -> tuple[str, float]:
    """What the ratio of two counts is, and the ratio: a lower bound where the slow run ended before it converged."""
    if fast["measure"].iloc[0] != "iterations":
        return NO_FACTOR, math.nan
    measure = "factor" if slow["measure"].iloc[0] == "iterations" else "factor at least"
    return measure, float(slow["value"].iloc[0]) / float(fast["value"].iloc[0])


def _step_ratios(table: Any, fast: str, slow: str, implementation: str) -> dict[str, Any]:
    rows, out = select(table, measure="step", variant=implementation), {}
    for problem, group in rows.groupby("problem"):
        times = [select(group, solver=name).sort_values("seed")["value"].to_numpy() for name in (slow, fast)]
        n = min(map(len, times))
        out[problem] = times[0][:n] / times[1][:n]
    return out


def iteration_factors(table: Any, fast: str, slow: str, **wanted: Any) -> Any:
    """The same with one second a step for all: ratios of iterations, which no clock enters."""
    import pandas as pd

    out = []
    for _, group in select(table, measure=COUNTS, **wanted).groupby(["problem", "note", "rho"], sort=False):
        a, b = select(group, solver=fast), select(group, solver=slow)
        if len(a) and len(b):
            measure, ratio = _ratio(a, b)
            out.append({**b.iloc[0].to_dict(), "measure": measure, "value": ratio, "seed": 0})
    return pd.DataFrame(out, columns=list(table.columns))


def taken_apart(table: Any, fast: str, slow: str, implementation: str, problem: str) -> str:
    """The ratio of step times as reads a step times seconds a read, in words."""
    rows = select(table, variant=implementation, problem=problem)
    steps, reads = (medians(select(rows, measure=m), ["solver"]) for m in ("step", "reads"))
    if not {fast, slow} <= set(steps.index) or not {fast, slow} <= set(reads.index):
        return ""
    of_steps, of_reads = steps[slow] / steps[fast], reads[slow] / reads[fast]
    return (
        f"a step of {slow} costs {number(of_steps)} of {fast}'s in {implementation}: {number(of_reads)} times the "
        f"reads "
        f"({number(reads[slow], 1)} against {number(reads[fast], 1)}) at {number(of_steps / of_reads)} of the "
        f"seconds a read"
    )


def apart_panel(
    table: Any, fast: str, slow: str, implementations: tuple[str, ...], title: str, **wanted: Any
) -> Panel | None:
    """A factor as bars: iterations, reads a step, seconds a read, and their product, for each implementation."""
    counts = select(table, measure="iterations", **wanted).set_index("solver")["value"]
    if not {fast, slow} <= set(counts.index):
        return None
    series = []
    for name in implementations:
        rows = select(table, variant=name, problem=wanted["problem"])
        steps, reads = (medians(select(rows, measure=m), ["solver"]) for m in ("step", "reads"))
        if {fast, slow} <= set(steps.index) & set(reads.index):
            iterations, of_reads = float(counts[slow] / counts[fast]), float(reads[slow] / reads[fast])
            each = float(steps[slow] / steps[fast]) / of_reads
            bars = [iterations, of_reads, each, iterations * of_reads * each]
            series.append(Series(name, ["iterations", "reads a step", "seconds a read", "product"], bars, style="bar"))
    return bar_panel(f"apart-{wanted['note']}", title, f"{slow} over {fast}", series) if series else None


def loss_rows(table: Any, implementation: str, **wanted: Any) -> tuple[Any, dict[str, float]]:
    """Losses with the seconds at which they are reached, and those of convergence: t times the seconds of a step."""
    losses = select(table, measure="loss", **wanted).copy()
    times = medians(select(table, measure="step", variant=implementation), ["problem", "solver"])
    marks = dict[str, float]()
    each = np.full(len(losses), np.nan)
    for (problem, name), part in losses.groupby(["problem", "solver"], sort=False):
        if (problem, name) in times.index:
            seconds = float(times[problem, name])
            each[losses.index.get_indexer(part.index)] = seconds * part["t"].to_numpy()
            at = select(select(table, measure="iterations", **wanted), solver=name)["value"]
            marks |= {str(name): seconds * float(at.iloc[0])} if len(at) else {}
    losses["seconds"] = each
    return losses[np.isfinite(each)], marks
