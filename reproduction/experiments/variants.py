"""PA against the Frank-Wolfe variants: iterations by the paper's rule, times seconds of a step (Figures 2a and 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from reproduction.base import Claim, Experiment, Figure, Finding, Mode, Row, Setting, Task
from reproduction.drawing import CLOCK, label_axes, log_scales, mark_convergence, panels, plot_curve
from reproduction.experiments import gradient_descent, iteration_time, stochastic
from reproduction.experiments.gradient_descent import iterations
from reproduction.experiments.iteration_time import READINGS, step_ratio, step_seconds
from reproduction.measure import count, curve_rows
from reproduction.problems import EXACT, FWPLR, OPTION_B, PA, SEARCHED, Completion, least_squares, random_point, ratings
from reproduction.rules import FACTOR_WORDS, Rule, answer, compare, factor_rule, judge_all, number, select, undefined

METHODS = (PA, FWPLR, EXACT, SEARCHED, OPTION_B)
RHOS = {"standardised": (0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 1.5, 2.0), "raw": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9, 2.0)}
#: Starts: the centre, points around it at 1e-8 of the radius, and random points of the ball.
NEAR, NEARS, FARS = 1e-8, {"quick": 3, "full": 7}, {"quick": 1, "full": 3}
#: Iterations at most; the others than the searches are the same from everywhere and may take long.
MOST = {PA: 10_000, EXACT: 10_000, SEARCHED: 10_000, FWPLR: 100_000, OPTION_B: 100_000}
COMPLETION_SHARES, COMPLETION_MOST = (0.5, 0.9, 0.0), 400
#: The two panels of the regression figure: features and radius.
SHOWN = {"standardised": 0.5, "raw": 0.2}


def regression(mode: Mode, features: str, rho: float) -> Task:
    """Iterations of every method from several starts, on the Gram matrix; one curve of each from the centre."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode, features == "standardised")
        ball = problem.ball(2, rho)
        best = problem.minimum(ball)
        place = {**problem.place, "problem": "regression", "features": features, "rho": rho, "radius": ball.radius}
        yield {**place, "measure": "minimum", "value": best.value}
        places = {"centre": problem.zero}
        places |= {f"near {k}": random_point(ball, problem.zero.shape, k, NEAR) for k in range(NEARS[mode])}
        places |= {f"random {k}": random_point(ball, problem.zero.shape, 100 + k) for k in range(FARS[mode])}
        for name in METHODS:
            slow = name in (FWPLR, OPTION_B)
            for kind, start in places.items():
                if slow and kind not in ("centre", "near 0", "random 0"):
                    continue
                values = (best.value + problem.error(w, best) for w in problem.methods(ball, start)[name])
                found = count(values, best.value, problem.value(start), MOST[name])
                yield found.row(**place, method=name, start=kind)
                if kind == "centre" and rho == SHOWN[features]:
                    yield from curve_rows("loss", found.t, found.values, method=name, **place)

    return Task(f"regression {features} rho={rho:g}", run)


def completion(mode: Mode, share: float) -> Task:
    """The same on ratings; where the minimum is 0, 2 % of it means nothing and 2 % of the first loss is taken."""

    def run() -> Iterator[Row]:
        rated, place = ratings("100k" if mode == "quick" else "1m")
        norm = float(np.linalg.norm(rated.values))
        radius = share * norm if share else 12_000.0
        place = {**place, "problem": "completion", "features": "", "rho": radius / norm, "radius": radius}
        for seed in range(2 if mode == "quick" else 3):
            case = Completion(rated, radius, seed)
            first = case.value(case.w0)
            yield {**place, "measure": "minimum", "value": case.minimum}
            scale = None if case.minimum > 0 else first
            for name, iterates in case.methods().items():
                found = count(map(case.value, iterates), case.minimum, first, COMPLETION_MOST, scale)
                yield found.row(**place, method=name, start=f"random {seed}")
                if seed == 0:
                    yield from curve_rows("loss", found.t, found.values, method=name, **place)

    return Task(f"completion {share or 'r=12000'}", run)


def tasks(mode: Mode) -> list[Task]:
    """A grid of radii and scalings, which the paper does not state, and completion."""
    out = [regression(mode, features, rho) for features, rhos in RHOS.items() for rho in rhos]
    return out + [completion(mode, share) for share in COMPLETION_SHARES]


def time_factors(table: Any, slow: str, rule: Rule, problem: str = "regression") -> list[Setting]:
    """Time of a Frank-Wolfe method over PA's: medians of iterations over starts, times seconds of a step.

    The range is that of the counts over starts; where a run ended before it converged the factor is a lower bound.
    """
    out = []
    rows = select(table, experiment="variants", problem=problem)
    for (features, rho), group in rows.groupby(["features", "rho"], sort=False):
        ratio = step_ratio(table, slow, PA, problem, features)
        if problem == "completion" and rho > 1:
            continue
        (pa, _), (fw, bound) = iterations(select(group, method=PA)), iterations(select(group, method=slow))
        if len(pa) and len(fw) and len(ratio):
            each = fw / np.median(pa) * np.median(ratio)
            name = slow.removeprefix("FWLS, ") + ", " if slow in READINGS else ""
            out.append(rule.at(f"{name}{features + ', ' if features else ''}ρ = {rho:.3g}", each, bound=bound))
    return out


def judge_regression(paper: float, *slow: str) -> Any:
    """Return the rule for a printed factor on regression."""

    def judge(table: Any) -> Finding:
        found = [s for name in slow for s in time_factors(table, name, factor_rule(paper))]
        return compare(found, select(table, experiment="variants", problem="regression"), "×")

    return judge


def judge_completion(paper: float, *slow: str) -> Any:
    """A printed factor on completion, where the paper's radius has the minimum 0."""

    def judge(table: Any) -> Finding:
        rows = select(table, experiment="variants", problem="completion")
        found = [s for name in slow for s in time_factors(table, name, factor_rule(paper), "completion")]
        zero = (select(rows, measure="minimum")["value"] == 0).any()
        finding = compare(found, rows, "×")
        reason = "at r = 12,000 the minimum is 0, for all ratings together have a smaller norm, and no loss is within "
        return undefined(finding, f"{reason}2 % of it") if zero else finding

    return judge


def judge_range(table: Any) -> Finding:
    """The conclusion's range over the Frank-Wolfe variants."""
    rule = Rule(2.8, 15.6, digits=1)
    found = [s for name in (FWPLR, *READINGS) for s in time_factors(table, name, rule)]
    words = {"within": "in the range", "beyond": "more than stated", "short": "less than stated"}
    return compare(found, select(table, experiment="variants", problem="regression"), "×", words)


def judge_fewer(table: Any) -> Finding:
    """Whether PA needs fewer iterations than FWPLR at every radius and scaling."""
    own, out = select(table, experiment="variants", problem="regression"), []
    for (features, rho), group in own.groupby(["features", "rho"], sort=False):
        (pa, _), (fw, bound) = iterations(select(group, method=PA)), iterations(select(group, method=FWPLR))
        if len(pa) and len(fw):
            ratio = float(np.median(fw) / np.median(pa))
            out.append(answer(f"{features}, ρ = {rho:g}", ratio, ratio > 1, bound))
    return judge_all(out, own, "fewer with PA", "no fewer", "×")


def judge_slower(table: Any) -> Finding:
    """Whether PA's iterations to the same accuracy grow with the radius, at every scaling and on completion."""
    out = []
    own = select(table, experiment="variants", method=PA, measure="iterations")
    for (problem, features), rows in own[(own["problem"] == "regression") | (own["rho"] < 1)].groupby(
        ["problem", "features"], sort=False
    ):
        counts = rows.groupby("rho")["value"].median().sort_index().to_numpy()
        name = iteration_time.task_name(problem, features)
        if len(counts) > 1:
            rising = bool(np.all(np.diff(counts) >= 0) and counts[-1] > counts[0])
            out.append(answer(name, float(counts[-1] / counts[0]), rising, f"{counts[0]:.0f} to {counts[-1]:.0f}"))
    return judge_all(out, own, "more iterations at larger radii", "not so", "×")


def remarks(table: Any) -> list[str]:
    """Where one reading of FWLS meets both printed numbers, and how far counts depend on the start."""
    steps = {s.name: s.state for s in iteration_time.search_steps(table)}
    each, met = [], 0
    for name in READINGS:
        factors, both = time_factors(table, name, factor_rule(15.6)), []
        for s in factors:
            reading, features, rho = s.name.split(", ")
            if (
                s.state == "within"
                and steps[f"{reading}, {iteration_time.task_name('regression', features)}"] == s.state
            ):
                both.append(f"{features} {rho}")
        met += len(both)
        at = f" ({' and '.join(both)})" if both else ""
        each.append(f"{name.removeprefix('FWLS, ')} at {len(both)} of {len(factors)} settings{at}")
    if all(state == "open" for state in steps.values()):
        return []
    plain = "" if met else "No single reading of FWLS meets both. "
    lines = [f"{plain}15.6 times in all, within the band, and 3.2 to 7.1 times a step together: {', '.join(each)}."]
    spread = start_spread(table)
    return [*lines, spread] if spread else lines


def start_spread(table: Any) -> str:
    """How far iterations move when the start moves by 1e-8 of the radius, where they move most, and PA's there."""
    rows = select(table, experiment="variants", problem="regression", measure="iterations")
    rows = rows[rows["start"].astype(str).str.startswith("near")]
    ends = rows.groupby(["features", "rho", "method"])["value"].agg(["min", "max", "median"])
    if not len(ends):
        return ""
    exact = ends.xs(EXACT, level="method")
    features, rho = (exact["max"] / exact["min"]).idxmax()
    a, b = (ends.loc[(features, rho, name)] for name in (EXACT, PA))
    move = f"from {number(a['min'])} to {number(a['max'])} (median {number(a['median'])})"
    return (
        f"When the start moves by 10⁻⁸ r, the iterations of the exact search move {move} at ρ = {rho:g}, {features} "
        f"features; PA's from {number(b['min'])} to {number(b['max'])}."
    )


def loss_panel(axis: Any, table: Any, problem: str, features: str, title: str) -> None:
    """Losses against seconds; a reading of FWLS that recomputes the loss stands for the paper's."""
    rows, at = select(table, experiment="variants", problem=problem, features=features, measure="loss"), {}
    if problem == "completion":
        rows = rows[rows["rho"] < 1]
        rows = select(rows, rho=float(rows["rho"].max())) if len(rows) else rows
    for name in METHODS:
        seconds, losses = step_seconds(table, name, problem, features), select(rows, method=name)
        if len(seconds) and len(losses):
            each = float(np.median(seconds))
            plot_curve(axis, losses["t"] * each, losses["value"], name)
            at[name] = each * float(losses["t"].max())
    mark_convergence(axis, at)
    log_scales(axis, least=CLOCK)
    label_axes(axis, title, "seconds", "loss")


def draw_2(table: Any) -> Any:
    """Plot Figure 2: loss against time."""
    figure, (a, b, c) = panels(3)
    loss_panel(a, table, "regression", "standardised", "(a) PA and FW, regression, l₂, ρ = 0.5")
    gradient_descent.loss_panel(b, table, "standardised", "(b) PA and GD, l₂, ρ = 0.5")
    stochastic.loss_panel(c, table, "l₂", "(c) SPA and SGD, l₂, ρ = 0.9")
    return figure


def draw_6(table: Any) -> Any:
    """Plot Figure 6: loss against time for regression and completion."""
    figure, (a, b) = panels(2, 3.6, 5.0)
    loss_panel(a, table, "regression", "raw", "(a) regression, l₂, raw features, ρ = 0.2")
    loss_panel(b, table, "completion", "", "(b) completion, Schatten-2, ρ = 0.9")
    return figure


def draw_8(table: Any) -> Any:
    """Plot Figure 8: PA against gradient descent, and the stochastic methods on both balls."""
    figure, (a, b, c) = panels(3)
    gradient_descent.loss_panel(a, table, "raw", "(a) PA and GD, raw features, ρ = 0.05")
    stochastic.loss_panel(b, table, "l₂", "(b) SPA and SGD, l₂, ρ = 0.9")
    stochastic.loss_panel(c, table, "l₁.₁", "(c) SPA and SGD, l₁.₁, ρ = 0.9")
    return figure


def draw_factors(table: Any) -> Any:
    """How many times longer than PA each method takes, against the radius, with the printed factors."""
    figure, axes = panels(2, 3.6, 5.0)
    for axis, features in zip(axes, RHOS, strict=True):
        for name in METHODS[1:]:
            found = [s for s in time_factors(table, name, factor_rule(1.0)) if features in s.name]
            if found:
                points = sorted((float(s.name.rsplit(" ", 1)[1]), s.value) for s in found)
                plot_curve(axis, [x for x, _ in points], [y for _, y in points], name, marker="o", markersize=3)
        for k, paper in enumerate((3.7, 15.6)):
            axis.axhline(paper, color="#222222", linestyle=("--", ":")[k], linewidth=1, label=f"paper: {paper}×")
        log_scales(axis)
        label_axes(axis, f"regression, {features} features", "ρ", "time / time of PA")
    return figure


EXPERIMENT = Experiment(
    name="variants",
    title="PA against the Frank-Wolfe variants",
    method=(
        "The first iteration whose loss is within 2 % of the previous one and of the minimum, counted with "
        "`projfree.paper` on the Gram matrix from the centre, from seven points 10⁻⁸ r away and from three random "
        "points (medians and ranges), times measured seconds of a step with the same line search. Completion runs on "
        "the observed entries and one number for all others, which has the same iterates as on the matrix. The paper "
        "states neither radius (but 12,000) nor scaling: both are varied, and every setting counts."
    ),
    tasks=tasks,
    claims=(
        Claim("fwplr", "Figures 2a, 6a", "PA converges so many times faster than FWPLR (regression)", "3.7×",
              FACTOR_WORDS, judge_regression(3.7, FWPLR), True, "figure-2", True, True),
        Claim("fwls", "Figures 2a, 6a", "PA converges so many times faster than FWLS (regression)", "15.6×",
              FACTOR_WORDS + "; in three readings of FWLS", judge_regression(15.6, *READINGS), True, "figure-2", True,
              True),
        Claim("completion-fwplr", "Figure 6b", "PA converges so many times faster than FWPLR (completion)", "2.8×",
              FACTOR_WORDS, judge_completion(2.8, FWPLR), True, "figure-6", True),
        Claim("completion-fwls", "Figure 6b", "PA converges so many times faster than FWLS (completion)", "11.7×",
              FACTOR_WORDS, judge_completion(11.7, *READINGS), True, "figure-6", True),
        Claim("range", "Section 8", "PA reduces the time against standard FW variants", "2.8-15.6×",
              "reproduced within the printed range; more is exceeded; regression, all variants", judge_range, True,
              "variants-factors", True, True),
        Claim("fewer", "Section 7.2", "PA converges in fewer iterations than FWPLR", "fewer",
              "holds at every radius and scaling where the iterations of FWPLR are more", judge_fewer, full=True,
              figure="variants-factors"),
        Claim("alpha", "Appendix B.4", "A small α = 1/r slows PA", "slower",
              "holds where PA's iterations never fall, and rise, as the radius grows", judge_slower, full=True),
    ),
    figures=(
        Figure("figure-2", 2, "Loss against time. Dotted: convergence by the paper's rule.", draw_2),
        Figure("figure-6", 6, "Loss against time of the Frank-Wolfe variants on regression and completion. Dotted: "
               "convergence by the paper's rule.", draw_6),
        Figure("figure-8", 8, "PA against gradient descent, and SPA against SGD where projecting is cheap (l₂) and "
               "costly (l₁.₁). Dotted: convergence by the paper's rule.", draw_8),
        Figure("variants-factors", 0, "Time in units of PA's over radii and scalings, which the paper does not state.",
               draw_factors),
    ),
    reads=("iteration_time", "gradient_descent", "stochastic"),
    remarks=remarks,
)  # fmt: skip
