"""Theorem 1: bounds (1) to (3), its constant over d, alpha and delta, and what the perturbation brings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from reproduction.base import Array, Claim, Experiment, Figure, Finding, Mode, Row, Task
from reproduction.drawing import errors, label, logarithmic, panels
from reproduction.measure import curve_rows, slope, window_name
from reproduction.problems import PA, least_squares, oracle_2
from reproduction.rules import MINUS_TWO, number, select, statement, yes_no

RHOS, BOUNDS_MOST = (0.5, 0.9, 2.0), 500
#: Accuracies asked for in units of f*; theta is epsilon / (4 D).
EPSILONS, ITSELF = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6), "f itself"
MOST = {"quick": 3_000, "full": 10_000}
#: Powers of d, 1/alpha and 1/delta in the printed bound.
POWERS = {"d": 1.0, "1/α": 2.0, "1/δ": 2.0}


def bounds(mode: Mode, rho: float) -> Task:
    """The largest share of bounds (1), (2) and (3) that the error uses, over all t of runs on least squares."""

    def run() -> Iterator[Row]:
        problem = least_squares("quick")
        ball = problem.ball(2, rho)
        best, oracle, D = problem.minimum(ball), oracle_2(ball.radius), 2 * ball.radius
        vertices: list[Array] = []

        def kept(c: Array) -> Array:
            vertices.append(oracle(c))
            return vertices[-1]

        place = {**problem.place, "rho": rho}
        for name in ("FW", PA):
            vertices.clear()
            zero = problem.zero
            runs = (
                paper.frank_wolfe(problem.gradient, kept, zero, paper.option_a)
                if name == "FW"
                else paper.primal_averaging(problem.gradient, kept, zero, paper.Averaged())
            )
            total, worst, before, last = 0.0, {"sum": 0.0, "diameter": 0.0}, zero, zero
            for t, w in enumerate(islice(runs, BOUNDS_MOST), start=1):
                total += float(np.sum((vertices[-1] - (before if name == "FW" else last)) ** 2))
                before, last = w, vertices[-1]
                error, scale = problem.error(w, best), 2 * problem.L / (t * (t + 1))
                worst["sum"] = max(worst["sum"], error / (scale * total))
                worst["diameter"] = max(worst["diameter"], error / (scale * t * D**2))
            for kind, value in worst.items():
                yield {**place, "method": name, "measure": "share of the bound", "bound": kind, "value": value}

    return Task(f"bounds rho={rho:g}", run)


def constants(mode: Mode) -> Task:
    """Sup t² (f(w_t) - f*) of PA on h over d, 1/alpha and 1/delta, as a share of dL/(α²δ²), with L = 1."""

    def run() -> Iterator[Row]:
        many = suprema(30, 0.5, 20 if mode == "quick" else 200)
        grid = [("d", float(d), max(suprema(d, 0.5, 3)), d * 0.5**2) for d in (3, 10, 30, 100, 300)]
        grid += [("1/α", r, max(suprema(30, r, 3)), 30 * r**2) for r in (0.1, 0.2, 0.4, 0.8)]
        for delta in (0.5, 0.2, 0.1, 0.05):
            grid.append(("1/δ", 1 / delta, float(np.quantile(many, 1 - delta)), 30 * 0.5**2 / delta**2))
        for of, x, value, bound in grid:
            yield {"measure": "constant", "of": of, "x": x, "value": value}
            yield {"measure": "share of the constant", "of": of, "x": x, "value": value / bound}

    return Task("constants", run)


def suprema(d: int, radius: float, seeds: int) -> list[float]:
    """Sup over 10 ≤ t ≤ 300 of t² times the error, where it is above epsilon, for several xi."""
    from scipy.optimize import brentq

    rng = np.random.default_rng(d)
    values, c = np.geomspace(1e-2, 1.0, d), rng.standard_normal(d)
    c /= np.linalg.norm(c)

    def f(w: Array) -> float:
        return float(0.5 * (w - c) @ (values * (w - c)))

    lam = brentq(lambda lam: np.linalg.norm(values * c / (values + lam)) - radius, 0.0, 1e6)

    def tilted(w: Array, tilt: Array) -> Array:
        return np.asarray(values * (w - c) + tilt)

    star, epsilon, out = f(values * c / (values + lam)), 1e-4 * f(np.zeros(d)), []
    for seed in range(seeds):
        tilt = paper.largest_theta(epsilon, 2 * radius) * paper.on_the_sphere((d,), np.random.default_rng(seed))
        runs = paper.primal_averaging(partial(tilted, tilt=tilt), oracle_2(radius), np.zeros(d), paper.Averaged())
        errors, t = np.array([f(w) - star for w in islice(runs, 300)]), np.arange(1, 301)
        kept = (t >= 10) & (errors > epsilon)
        out.append(float(np.max(t[kept] ** 2 * errors[kept])) if kept.any() else float(100 * errors[9]))
    return out


def perturbed(mode: Mode, rho: float) -> Task:
    """PA on f and on h for several ε: the error of f, its slope above ε, the iterations to ε, and where it ends."""

    def run() -> Iterator[Row]:
        problem = least_squares("quick")
        ball = problem.ball(2, rho)
        best, most = problem.minimum(ball), MOST[mode]
        xi = paper.on_the_sphere(problem.zero.shape, np.random.default_rng(0))

        def tilted(w: Array, tilt: Array) -> Array:
            return problem.gradient(w) + tilt

        t = np.arange(1, most + 1)
        for share in (*EPSILONS, 0.0):
            epsilon = share * best.value
            tilt = paper.largest_theta(epsilon, 2 * ball.radius) * xi
            runs = paper.primal_averaging(
                partial(tilted, tilt=tilt), oracle_2(ball.radius), problem.zero, paper.Averaged()
            )
            errors = np.array([problem.error(w, best) for w in islice(runs, most)])
            place = {**problem.place, "rho": rho, "epsilon": share, "method": f"ε = {share:g} f*" if share else ITSELF}
            yield from curve_rows("error", t, np.maximum(errors, 1e-300), **place)
            level = epsilon or 1e-5 * best.value
            above = np.flatnonzero(errors > level)
            end = int(above[-1]) + 1 if len(above) else 0
            if end >= 15:
                yield {**place, "measure": "slope", "window": window_name(10, end), "value": slope(t, errors, 10, end)}
            reached = float(end + 1) if end < most else math.inf
            yield {**place, "measure": "iterations to ε", "value": reached}
            if share:
                yield {**place, "measure": "last error over ε", "value": float(errors[-1] / epsilon)}

    return Task(f"perturbed rho={rho:g}", run)


def tasks(mode: Mode) -> list[Task]:
    """All checks, on the packaged data."""
    return [*(bounds(mode, rho) for rho in RHOS), constants(mode), *(perturbed(mode, rho) for rho in RHOS)]


def judge_share(method: str, bound: str) -> Any:
    """Whether the error stays within a bound over all t."""

    def judge(table: Any) -> Finding:
        rows = select(table, measure="share of the bound", method=method, bound=bound)
        rows = rows[rows["experiment"] == "theorem_1"]
        out = [yes_no(f"ρ = {rho:g}", v, v <= 1) for rho, v in zip(rows["rho"], rows["value"], strict=True)]
        return statement(out, rows, "within", "above", " of the bound")

    return judge


def judge_constant(table: Any) -> Finding:
    """Whether sup t² error is at most the printed bound with the constant 1."""
    rows = select(table, measure="share of the constant")
    values = zip(rows["of"], rows["x"], rows["value"], strict=True) if len(rows) else ()
    return statement([yes_no(f"{of} = {x:g}", v, v <= 1) for of, x, v in values], rows, "within", "above")


def above_epsilon(table: Any) -> Any:
    """Rows of runs on h that had enough iterations to fall below epsilon."""
    rows = table[table["experiment"] == "theorem_1"]
    return rows[(rows["epsilon"] > 0)] if "epsilon" in rows else rows.iloc[:0]


def judge_rate(table: Any) -> Finding:
    """The slope of f's error above epsilon, in runs on h."""
    rows = select(above_epsilon(table), measure="slope")
    out = [
        yes_no(f"ρ = {rho:g}, {m}, t in {w}", v, v <= MINUS_TWO)
        for rho, m, w, v in zip(rows["rho"], rows["method"], rows["window"], rows["value"], strict=True)
    ]
    return statement(out, rows, "-1.9 or steeper", "flatter")


def judge_end(table: Any) -> Finding:
    """Whether runs on h that pass epsilon end within 1.5 epsilon."""
    own = above_epsilon(table)
    reached = {(r["rho"], r["method"]) for _, r in select(own, measure="iterations to ε").iterrows()
               if math.isfinite(r["value"])}  # fmt: skip
    rows = select(own, measure="last error over ε")
    out = [
        yes_no(f"ρ = {rho:g}, {m}", v, v <= 1.5)
        for rho, m, v in zip(rows["rho"], rows["method"], rows["value"], strict=True)
        if (rho, m) in reached
    ]
    return statement(out, rows, "within", "above", " ε")


def remarks(table: Any) -> list[str]:
    """How iterations to epsilon grow, which is the rate that a user sees; and the growth of the constant."""
    out = []
    rows = select(above_epsilon(table), measure="iterations to ε")
    powers = []
    for _, group in rows.groupby("rho") if len(rows) else ():
        kept = group[np.isfinite(group["value"])]
        if len(kept) > 2:
            powers.append(float(np.polyfit(np.log(kept["epsilon"]), np.log(kept["value"]), 1)[0]))
    if powers:
        out.append(
            f"On h with θ = ε/4D the iterations to ε grow like ε^{number(min(powers))} to ε^{number(max(powers))} in "
            "these runs. The repaired proof gives no better than ε^-1.5, which is worse than the known ε^-1 of plain "
            "Frank-Wolfe, and f itself needs as many as h: the perturbation brings nothing here."
        )
    grown = []
    for of, power in POWERS.items():
        group = select(table, measure="constant", of=of)
        if len(group) > 2:
            found = float(np.polyfit(np.log(group["x"]), np.log(group["value"]), 1)[0])
            grown.append(f"like ({of})^{number(found)} (the bound: {power:g})")
    if grown:
        note = "the error grows faster in 1/α only because the gradient at the solution shrinks with the radius"
        out.append(f"Over our grids sup t²(f(w_t) - f*) grows {', '.join(grown)}, far below the bound; {note}.")
    return out


def draw(table: Any) -> Any:
    """The error of f in runs on h, for each accuracy."""
    figure, axes = panels(3, 3.2, 4.2)
    own = select(table, experiment="theorem_1")
    for axis, rho in zip(axes, RHOS, strict=True):
        errors(axis, select(own, rho=rho))
        logarithmic(axis)
        label(axis, f"ρ = {rho:g}", "iteration t", "f(w) - f*, run on h")
    return figure


EXPERIMENT = Experiment(
    name="theorem_1",
    title="Theorem 1: bounds, constant and perturbation",
    method=(
        "Bounds (1) to (3) on least squares over l₂ balls, errors without cancellation, L from the spectrum. The "
        "constant on diagonal quadratics with L = 1. The perturbation with θ = ε/4D and ξ uniform on the sphere, "
        "judged down to ε, below which the theorem is silent."
    ),
    tasks=tasks,
    claims=(
        Claim("bound-1", "Equation (1)", "FW: f(w_t) - f* ≤ 2L/(t(t+1)) Σ‖v_i - w_i₋₁‖²", "≤ 1",
              "holds if no error exceeds the bound", judge_share("FW", "sum")),
        Claim("bound-2", "Equation (2)", "FW: f(w_t) - f* ≤ 2LD²/(t+1)", "≤ 1", "holds if no error exceeds the bound",
              judge_share("FW", "diameter")),
        Claim("bound-3", "Equation (3)", "PA: f(w_t) - f* ≤ 2L/(t(t+1)) Σ‖v_i - v_i₋₁‖²", "≤ 1",
              "holds if no error exceeds the bound", judge_share(PA, "sum")),
        Claim("constant", "Theorem 1", "f(w_t) - f* is of the order dL/(α²δ²t²)", "≤ 1",
              "holds if sup t²(f(w_t) - f*) on h is at most dL/(α²δ²), the unstated constant taken as 1",
              judge_constant),
        Claim("rate", "Theorem 1", "On h = f + θ⟨ξ, w⟩ the error of f falls like 1/t², down to ε", "≤ -2",
              "holds if the slope from t = 10 to where the error meets ε is -1.9 or steeper", judge_rate, False,
              "theorem-1"),
        Claim("end", "Lemma 2", "Run on h, f ends within 1.5 ε", "≤ 1.5 ε",
              "holds if the last error of runs that pass ε is at most 1.5 ε", judge_end),
    ),
    figures=(Figure("theorem-1", 0, "The error of f in runs of PA on h for several accuracies ε.", draw),),
    remarks=remarks,
)  # fmt: skip
