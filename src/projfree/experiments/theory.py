"""Experiment 9: the bounds, lemmas and remarks of the paper, checked numerically; no clock is involved."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from projfree.experiments.base import Claim, Experiment, Finding, Mode, Origin, Panel, Row, Series, Task, Verdict
from projfree.experiments.counting import OnGram
from projfree.experiments.iteration_time import least_squares
from projfree.experiments.judging import UNMEASURED, all_true, judge_largest, rho_label, select
from projfree.experiments.sources import adult
from projfree.experiments.words import ball_name, number, span
from projfree.losses import SquaredSigmoid
from projfree.sets import GroupBall, LpBall

RHOS = (0.5, 0.9, 2.0)
DELTA = 0.1


def bounds(mode: Mode) -> Task:
    """The largest share of bounds (1), (2) and (3) that the error uses, over all t of real runs."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        for rho in RHOS:
            case = OnGram(problem, rho)
            seen: list[Array] = []

            def oracle(c: Array, case: OnGram = case, seen: list[Array] = seen) -> Array:
                seen.append(case.oracle(c))
                return seen[-1]

            D, shares = 2.0 * case.ball.radius, {"bound (1)": 0.0, "bound (2)": 0.0, "bound (3)": 0.0}
            w, total = case.zero, 0.0
            for t, new in enumerate(islice(paper.frank_wolfe(case.gradient, oracle, w, paper.option_a), 500), start=1):
                total += float(np.sum((seen[-1] - w) ** 2))
                error, w = problem.error(new, case.best), new
                shares["bound (1)"] = max(shares["bound (1)"], error * t * (t + 1) / (2 * case.L * total))
                shares["bound (2)"] = max(shares["bound (2)"], error * (t + 1) / (2 * case.L * D**2))
            seen[:], total = [case.zero], 0.0
            pa = paper.primal_averaging(case.gradient, oracle, case.zero, paper.Averaged())
            for t, new in enumerate(islice(pa, 500), start=1):
                total += float(np.sum((seen[-1] - seen[-2]) ** 2))
                share = problem.error(new, case.best) * t * (t + 1) / (2 * case.L * total)
                shares["bound (3)"] = max(shares["bound (3)"], share)
            for name, worst in shares.items():
                place = {**problem.place, "problem": name, "rho": rho, "variant": rho_label(rho)}
                yield {**place, "measure": "share", "value": worst}

    return Task("bounds", run, 0.2)


def lemma_one(mode: Mode) -> Task:
    """The largest ratio of the left side to the printed right side over random pairs of directions."""

    def run() -> Iterator[Row]:
        rng = np.random.default_rng(0)
        for p in (2.0, 1.5, 1.1):
            ball, worst = LpBall(p, 1.0), 0.0
            for d in (2, 5, 20, 90):
                for size in (1.0, 1e-2, 1e-5):
                    for _ in range(20 if mode == "quick" else 200):
                        a = rng.standard_normal(d)
                        b = a + size * rng.standard_normal(d)
                        worst = max(worst, _lipschitz(ball, a, b), _lipschitz(ball, a, a[::-1].copy()))
            place = {"problem": "lemma 1", "set": ball_name(p), "p": p, "variant": ball_name(p)}
            yield {**place, "measure": "ratio", "value": worst}

    return Task("lemma 1", run, 0.2 if mode == "quick" else 2)


def _lipschitz(ball: LpBall, p: Array, q: Array) -> float:
    apart = float(np.linalg.norm(p - q))
    if apart == 0.0:
        return 0.0
    moved = float(np.linalg.norm(ball.lmo(-p) - ball.lmo(-q)))
    alpha = ball.strong_convexity(p.shape)
    return moved * alpha * float(np.linalg.norm(p) + np.linalg.norm(q)) / apart


def lemma_two(mode: Mode) -> Task:
    """How often the gradient of h is smaller than the bound, as printed and with the factor theta put back."""

    def run() -> Iterator[Row]:
        rng, draws = np.random.default_rng(0), 100_000 if mode == "quick" else 1_000_000
        for d in (2, 3, 10, 90):
            xi = rng.standard_normal((draws, d))
            first = xi[:, 0] / np.linalg.norm(xi, axis=1)
            level = DELTA * np.sqrt(np.pi / (2 * d))
            here = {"problem": "lemma 2", "t": d, "note": f"δ = {DELTA:g}"}
            theta = 1e-3  # at a point where the gradient of f vanishes, the gradient of h has the norm theta
            yield {**here, "measure": "printed", "value": float(theta < level)}
            yield {**here, "measure": "one-sided", "value": float(np.mean(first <= level))}
            # The worst place for |a + xi_1| <= level, over a grid of a.
            worst = max(float(np.mean(np.abs(a + first) <= level)) for a in np.linspace(-1, 1, 41))
            yield {**here, "measure": "two-sided", "value": worst}

    return Task("lemma 2", run, 0.5 if mode == "quick" else 6)


def lemma_three(mode: Mode) -> Task:
    """Whether option B's progress is what Lemma 3 promises, at every iteration, on the squared sigmoid and on "
    "squares.
    """

    def run() -> Iterator[Row]:
        table, loss = adult("quick"), SquaredSigmoid()
        X, y, squares = table.X, table.y, least_squares(mode)
        sigmoid_L = loss.smoothness * float(np.linalg.eigvalsh(X.T @ X)[-1]) / len(y)

        def value(w: Array) -> float:
            return float(np.mean(loss.value(X @ w, y)))

        def gradient(w: Array) -> Array:
            return np.asarray(X.T @ loss.derivative(X @ w, y)) / len(y)

        cases: list[tuple[str, Any, Any, float, LpBall]] = []
        for r in (1.0, 10.0):
            cases.append((f"squared sigmoid, r = {r:g}", value, gradient, sigmoid_L, LpBall(2, r)))
        for rho in (0.5, 2.0):
            case = OnGram(squares, rho)
            of = squares.form
            cases.append(
                (f"squares, ρ = {rho:g}", lambda w, of=of: of.value(of.point(w)), case.gradient, case.L, case.ball)
            )
        for name, f, slope_of, L, ball in cases:
            yield {
                "problem": "lemma 3",
                "variant": name,
                "measure": "holds",
                "value": float(_progress(f, slope_of, L, ball)),
            }

    return Task("lemma 3", run, 0.5)


def _progress(f: Any, gradient: Any, L: float, ball: LpBall, most: int = 100) -> bool:
    """The inequality at the iterates of option B, with the last one in the place of the minimiser."""
    oracle, alpha = paper.lp_oracle(2, ball.radius), 1.0 / ball.radius
    start = ball.random((len(gradient(np.zeros(_dimension(gradient)))),), np.random.default_rng(0))
    path = [start, *islice(paper.frank_wolfe(gradient, oracle, start, paper.option_b(L)), most)]
    star, ok = path[-1], True
    for w, new in pairwise(path):
        g = gradient(w)
        gamma = min(1.0, alpha * float(np.linalg.norm(g)) / (4 * L))
        ok = ok and f(new) <= f(w) + gamma / 2 * float(g @ (star - w)) + 1e-13 * abs(f(w))
    return ok


def _dimension(gradient: Any) -> int:
    return next(d for d in (90, 108) if _takes(gradient, d))


def _takes(gradient: Any, d: int) -> bool:
    try:
        gradient(np.zeros(d))
    except ValueError:
        return False
    return True


def constants(mode: Mode) -> Task:
    """Sup t² (f(w_t) - f*) of PA on h over d, 1/alpha and 1/delta, and its share of dL/(α²δ²), with L = 1.

    Where xi is not the subject, delta is 1, which makes the bound as small as it can be.
    """

    def run() -> Iterator[Row]:
        many = _constants(30, 0.5, 20 if mode == "quick" else 200)
        grid = [("d", float(d), max(_constants(d, 0.5, 3)), d * 0.5**2) for d in (3, 10, 30, 100, 300)]
        grid += [("1/α", r, max(_constants(30, r, 3)), 30 * r**2) for r in (0.1, 0.2, 0.4, 0.8)]
        for delta in (0.5, 0.2, 0.1, 0.05):
            grid.append(("1/δ", 1 / delta, float(np.quantile(many, 1 - delta)), 30 * 0.5**2 / delta**2))
        for of, x, value, bound in grid:
            place = {"problem": "constants", "variant": of, "rho": x}
            yield {**place, "measure": "constant", "value": value}
            yield {**place, "measure": "share", "value": value / bound}

    return Task("constants", run, 1 if mode == "quick" else 4)


def _constants(d: int, rho: float, seeds: int) -> list[float]:
    """Sup over 10 ≤ t ≤ 300 of t² times the error, where it is above epsilon, for several xi; f has L = 1."""
    rng = np.random.default_rng(d)
    values, c = np.geomspace(1e-2, 1.0, d), rng.standard_normal(d)
    c /= np.linalg.norm(c)
    oracle, out = paper.lp_oracle(2, rho), []

    def f(w: Array) -> float:
        return float(0.5 * (w - c) @ (values * (w - c)))

    def gradient(w: Array) -> Array:
        return np.asarray(values * (w - c))

    lam = _multiplier(values, c, rho)
    star = f(values * c / (values + lam))
    epsilon = 1e-4 * f(np.zeros(d))
    for seed in range(seeds):
        xi = paper.on_the_sphere((d,), np.random.default_rng(seed))
        _, of_h = paper.perturbed(f, gradient, paper.largest_theta(epsilon, 2 * rho), xi)
        iterates = paper.primal_averaging(of_h, oracle, np.zeros(d), paper.Averaged())
        errors = np.array([f(w) - star for w in islice(iterates, 300)])
        t = np.arange(1, 301)
        kept = (t >= 10) & (errors > epsilon)
        out.append(float(np.max(t[kept] ** 2 * errors[kept])) if kept.any() else float(100 * errors[9]))
    return out


def _multiplier(values: Array, c: Array, r: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda lam: np.linalg.norm(values * c / (values + lam)) - r, 0.0, 1e6))


def convexity(mode: Mode) -> Task:
    """The set of Definition 1 with alpha = (p-1)/r: by how much its largest norm exceeds the radius."""

    def run() -> Iterator[Row]:
        rng = np.random.default_rng(0)
        for p in (1.1, 1.5, 2.0):
            ball, worst = LpBall(p, 1.0), {"its own norm": 0.0, "the Frobenius norm": 0.0}
            for _ in range(400):  # singular values of matrices that share their vectors: the norm is that of a vector
                u, v = _pair(rng, p)
                u, v = u / ball.norm(u), v / ball.norm(v)
                middle = 0.5 * (u + v)
                slope = np.sign(middle) * np.abs(middle) ** (p - 1)
                for name, apart, z in (
                    ("its own norm", ball.norm(u - v), middle / ball.norm(middle)),
                    ("the Frobenius norm", float(np.linalg.norm(u - v)), slope / np.linalg.norm(slope)),
                ):
                    reached = ball.norm(middle + (p - 1) / 8 * apart**2 * z)
                    worst[name] = max(worst[name], float(reached))
            for name, value in worst.items():
                place = {"problem": "strong convexity", "set": ball_name(p, "Schatten"), "p": p, "variant": name}
                yield {**place, "measure": "largest norm", "value": value}

    return Task("strong convexity", run, 0.5)


def _pair(rng: np.random.Generator, p: float, d: int = 20) -> tuple[Array, Array]:
    """Two points: half of the time at random, else along the flattest direction where one entry is large."""
    if rng.uniform() < 0.5:
        return rng.standard_normal(d), rng.standard_normal(d)
    x = np.full(d, rng.uniform(0.005, 0.3))
    x[0] = 1.0
    normal = x ** (p - 1)
    h = -normal * normal[0] / float(normal[1:] @ normal[1:])
    h[0] = 1.0  # orthogonal to the normal, and almost all of it in the large entry
    size = rng.uniform(0.05, 0.5)
    return x + size * h, x - size * h


def normalised(mode: Mode) -> Task:
    """Frank-Wolfe on an l_2 ball against normalised gradient descent from the same point with the same steps."""

    def run() -> Iterator[Row]:
        problem = least_squares(mode)
        case = OnGram(problem, 0.5)
        w = 0.5 * case.oracle(-np.ones(len(case.zero)))
        g = case.gradient(w)
        direction = float(np.linalg.norm(case.oracle(g) / case.ball.radius + g / np.linalg.norm(g)))
        step = next(paper.frank_wolfe(case.gradient, case.oracle, w, lambda *_: 0.3))
        moved = w - 0.3 * case.ball.radius * g / np.linalg.norm(g)
        apart = float(np.linalg.norm(step - moved) / case.ball.radius)
        shrunk = float(np.linalg.norm(step - (moved - 0.3 * w)) / case.ball.radius)
        here = {**problem.place, "problem": "normalised gradient"}
        yield {
            **here,
            "variant": "the direction, which is the normalised gradient",
            "measure": "same",
            "value": float(direction < 1e-12),
        }
        yield {
            **here,
            "variant": "the iterate, which also shrinks by 1 − γ",
            "measure": "same",
            "value": float(apart < 1e-12),
        }
        yield {**here, "measure": "apart", "value": apart}
        yield {**here, "measure": "apart after shrinking", "value": shrunk}

    return Task("normalised gradient", run, 0.2)


def group_oracle(mode: Mode) -> Task:
    """What the group oracle of the paper's source reaches, in units of the optimum."""

    def run() -> Iterator[Row]:
        rng = np.random.default_rng(0)
        for p, q in ((1.5, 1.5), (1.2, 1.8), (1.8, 1.2)):
            ball, C = GroupBall(p, q, 1.0), rng.standard_normal((6, 4))
            z, s = p / (p - 1), q / (q - 1)
            rows, other = (np.sum(np.abs(C) ** e, axis=1, keepdims=True) ** (1 / e) for e in (z, s))
            whole = float(np.sum(rows**s) ** (1 / s))
            source = -(whole ** (1 - s)) * other ** (s - z) * np.sign(C) * np.abs(C) ** (z - 1)
            for name, V in (("source", source), ("corrected", paper.group_oracle(p, q, 1.0)(C))):
                reached = float(-np.sum(C * V)) / ball.dual_norm(C)
                yield {"problem": "group oracle", "variant": f"p = {p:g}, q = {q:g}", "measure": name, "value": reached}

    return Task("group oracle", run, 0.2)


def tasks(mode: Mode) -> list[Task]:
    """All checks."""
    makers = (bounds, lemma_one, lemma_two, lemma_three, constants, convexity, normalised, group_oracle)
    return [make(mode) for make in makers]


def judge_lemma_one(table: Any) -> Finding:
    """Whether the ratio never exceeds 1 (as printed)."""
    rows = select(table, problem="lemma 1")
    found = judge_largest(1.0, "ratio of the left side to the printed right side", problem="lemma 1")(table)
    if not len(rows):
        return found
    doubled = "holds" if float(rows["value"].max()) <= 2 + 1e-6 else "fails too"
    proof = (
        f"with a factor 2 on the right it {doubled}: the proof's two inequalities carry a 2/α each, which is lost "
        f"when they "
        "are added; on the unit l₂ ball with equal norms both sides differ by exactly that factor"
    )
    return Finding(found.verdict, found.ours, f"{found.reason}; {proof}")


def judge_lemma_two(kind: str, why: str) -> Any:
    """Whether the chance of failure is at most delta in every dimension tried."""

    def judge(table: Any) -> Finding:
        rows = select(table, problem="lemma 2", measure=kind)
        if not len(rows):
            return UNMEASURED
        chance = dict(zip(rows["t"].astype(int), rows["value"], strict=True))
        good = [d for d, c in chance.items() if c <= DELTA * 1.05]
        shown = ", ".join(f"{c:.3f} (d = {d})" for d, c in chance.items())
        verdict = Verdict.HOLDS if len(good) == len(chance) else Verdict.CHOICE if good else Verdict.FAILS
        of = ", ".join(map(str, good)) or "none"
        return Finding(verdict, shown, f"chance of failure against δ = {DELTA:g}, at most δ for d = {of}; {why}")

    return judge


def judge_lemma_three(table: Any) -> Finding:
    """Whether the inequality holds at all iterations of all runs."""
    rows = select(table, problem="lemma 3")
    return all_true(
        rows, [f"{int(rows['value'].sum())} of {len(rows)} runs"], "at every iteration", "not at every iteration"
    )


def judge_constant(of: str, power: str) -> Any:
    """Whether sup t² error is at most dL/(α²δ²), with the constant 1, at every place of the grid."""

    def judge(table: Any) -> Finding:
        rows, shares = (select(table, problem="constants", variant=of, measure=m) for m in ("constant", "share"))
        if not len(shares):
            return UNMEASURED
        worst, growth = float(shares["value"].max()), math.nan
        if len(rows) > 2:
            growth = float(np.polyfit(np.log(rows["rho"]), np.log(rows["value"]), 1)[0])
        verdict = Verdict.HOLDS if worst <= 1 else Verdict.FAILS
        note = "; δ enters neither the algorithm nor θ, so it can only speak of ξ" if of == "1/δ" else ""
        shown = f"at most {number(worst)} of the bound; grows like ({of})^{number(growth)} over the grid"
        return Finding(verdict, shown, f"the bound grows like {power}, and its constant is taken as 1{note}")

    return judge


def judge_convexity(table: Any) -> Finding:
    """Whether the balls of Definition 1 stay inside, in the ball's own norm and in the Frobenius norm."""
    rows = select(table, problem="strong convexity")
    fine = rows.assign(value=(rows["value"] <= 1 + 1e-9).astype(float))
    shown = [
        f"{name}: exceeds r by up to {number(max(0.0, float(g['value'].max()) - 1))} r"
        for name, g in rows.groupby("variant", sort=False)
    ]
    found = all_true(fine, shown, "inside", "not inside")
    return Finding(
        found.verdict, found.ours, f"{found.reason}; Lemma 1 and its users need the Frobenius (Euclidean) norm"
    )


def judge_normalised(table: Any) -> Finding:
    """Whether Frank-Wolfe's step is the normalised gradient step, in direction and in iterate."""
    rows = select(table, problem="normalised gradient")
    apart = select(rows, measure="apart")["value"]
    shown = [f"one step apart by {number(float(apart.iloc[0]))} r"] if len(apart) else []
    return all_true(select(rows, measure="same"), shown, "the same", "not the same")


def judge_group(table: Any) -> Finding:
    """Whether the formula in the source reaches the dual norm."""
    rows = select(table, problem="group oracle")
    if not len(rows):
        return UNMEASURED
    source, corrected = (select(rows, measure=m)["value"] for m in ("source", "corrected"))
    verdict = Verdict.HOLDS if bool(np.allclose(source, 1.0)) else Verdict.FAILS
    reason = f"with the row norm of exponent z in place of s: {span(corrected)}; the formula is not printed"
    return Finding(verdict, f"{span(source)} of the optimum", reason)


def panels(table: Any) -> list[Panel | None]:
    """The chances of Lemma 2 and the growth of the constant."""
    out: list[Panel | None] = []
    rows = select(table, problem="lemma 2", measure=["one-sided", "two-sided"])
    if len(rows):
        series = [
            Series(str(kind), part["t"].to_list(), part["value"].to_list(), style="points")
            for kind, part in rows.groupby("measure", sort=False)
        ]
        series.append(Series("δ", [2, 90], [DELTA, DELTA], style="reference", colour=6))
        alt = "Chance that the first coordinate is below the level of Lemma 2, by dimension: one-sided above one half."
        title = f"Lemma 2: chance of failure for δ = {DELTA:g}"
        out.append(Panel("lemma-2", title, "dimension d", "probability", series, logy=False, alt=alt))
    rows = select(table, problem="constants", measure="constant")
    if len(rows):
        series = []
        for k, (of, limit) in enumerate((("d", 1.0), ("1/α", 2.0), ("1/δ", 2.0))):
            part = select(rows, variant=of)
            x, y = part["rho"].to_numpy(), part["value"].to_numpy()
            claimed = 1.5 * y[0] * (x / x[0]) ** limit
            series.append(Series(of, x, y, colour=k))
            series.append(Series(f"claimed: {of}^{limit:g}", x, claimed, style="reference", colour=k))
        alt = "sup t² (f(w_t) − f*) against d, 1/α and 1/δ; each stays below the claimed power."
        out.append(
            Panel(
                "constants", "Theorem 1: growth of the constant", "d, 1/α, 1/δ", "sup t² (f(w_t) − f*)", series, alt=alt
            )
        )
    return out


CHANCE = f"holds if the measured chance is at most 1.05 δ, δ = {DELTA:g}, in every dimension"
LARGEST = "holds if the error over the bound never exceeds 1 in 500 iterations"
POWER = (
    "holds if sup t²(f(w_t) − f*) is at most dL/(α²δ²), with the unstated constant taken as 1, over the whole grid; "
    "the theorem "
    "is an upper bound, so less is no failure"
)
EXPERIMENT = Experiment(
    name="theory",
    title="Bounds, lemmas and remarks",
    question="Do the inequalities hold as printed?",
    paper="Sections 2 to 4; Appendix A",
    method=(
        "Bounds on least squares over l₂ balls, with errors computed without cancellation and L from the spectrum. "
        "Lemmas "
        "on random directions and points with fixed seeds. The growth of Theorem 1's constant is measured on diagonal "
        "quadratics with L = 1, PA on h, between t = 10 and the accuracy ε. Errata found: Lemma 1 lacks a factor 2; "
        "Lemma 2 "
        "lacks θ, and its one-sided argument fails; Σ 1/i² is π²/6, not π/6."
    ),
    tasks=tasks,
    claims=(
        *(
            Claim(f"bound-{k}", text, "ratio ≤ 1", where, LARGEST,
                  judge_largest(1.0, "error over the bound", problem=f"bound ({k})"))
            for k, text, where in (
                (1, "FW: f(w_t) − f* ≤ 2L/(t(t+1)) Σ ‖v_i − w_i₋₁‖²", "Equation (1), Section 4.1"),
                (2, "FW: f(w_t) − f* ≤ 2LD²/(t+1)", "Equation (2), Section 4.1"),
                (3, "PA: f(w_t) − f* ≤ 2L/(t(t+1)) Σ ‖v_i − v_i₋₁‖²", "Equation (3), Section 4.1"),
            )
        ),
        Claim("constant-d", "Theorem 1's constant grows at most like d", "d¹", "Theorem 1", POWER,
              judge_constant("d", "d"), "constants"),
        Claim("constant-alpha", "Theorem 1's constant grows at most like 1/α²", "α⁻²", "Theorem 1", POWER,
              judge_constant("1/α", "1/α²"), "constants"),
        Claim("constant-delta", "Theorem 1's constant grows at most like 1/δ²", "δ⁻²", "Theorem 1", POWER,
              judge_constant("1/δ", "1/δ²"), "constants"),
        Claim("lemma-1", "‖x_p − x_q‖ ≤ ‖p − q‖ / (α(‖p‖ + ‖q‖))", "ratio ≤ 1", "Lemma 1, Appendix A.1",
              "holds if the largest ratio of the two sides is at most 1", judge_lemma_one),
        Claim("lemma-2", "‖∇h(w)‖ ≥ δ√(π/2d) with probability 1 − δ, without θ", "failure ≤ δ", "Lemma 2, Appendix A.1",
              "holds if the chance of failure, at a point with ∇f = 0 and θ = 10⁻³, is at most δ",
              judge_lemma_two("printed", "there ‖∇h‖ = θ whatever ξ is, so the bound needs the factor θ"), "lemma-2"),
        Claim("lemma-2-one", "Pr(ξ₁ ≤ δ√(π/2d)) ≤ δ, the step of the proof", "≤ δ", "proof of Lemma 2, Appendix A.1",
              CHANCE, judge_lemma_two("one-sided", "ξ₁ is symmetric, so the chance is at least one half"), "lemma-2"),
        Claim("lemma-3", "Option B: f(w_t₊₁) ≤ f(w_t) + (γ_t/2)⟨w* − w_t, ∇f(w_t)⟩ with γ_t = min(1, α‖∇f(w_t)‖/4L)",
              "every t", "Lemma 3, Appendix A.3", "holds if the inequality holds at all of 100 iterations of every run",
              judge_lemma_three),
        Claim("alpha-schatten", "The Schatten-p ball of radius r is α-strongly convex with α = (p − 1)/r", "(p − 1)/r",
              "Appendix B.4", "holds for a norm in Definition 1 if the balls it asks for stay inside (400 pairs)",
              judge_convexity),
        Claim("normalised", "On an l₂ ball FW is equivalent to normalised gradient descent", "equal", "Section 2",
              "holds for what agrees to rounding in one step from the same point", judge_normalised),
        Claim("lemma-2-two", "Pr(|a + ξ₁| ≤ δ√(π/2d)) ≤ δ for every a, the corrected step", "≤ δ", "after Lemma 2",
              CHANCE,
              judge_lemma_two("two-sided", "it needs d ≥ 3"), "lemma-2", Origin.OURS),
        Claim("group", "The group ball's oracle in the paper's source minimises over the ball", "optimum",
              "source of Section 3.2, not printed", "holds if the formula reaches the dual norm", judge_group,
              origin=Origin.OURS),
    ),
    panels=panels,
)  # fmt: skip
