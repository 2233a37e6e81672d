"""Lemmas 1 to 3 and remarks of the paper, checked on random draws and on runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from projfree import GroupBall, LpBall, paper
from reproduction.base import Array, Claim, Experiment, Figure, Finding, Mode, Row, Task
from reproduction.drawing import curve, label, logarithmic, panels
from reproduction.experiments.quasi_convex import SigmoidMean
from reproduction.measure import slope
from reproduction.problems import least_squares, random_point
from reproduction.rules import number, select, statement, yes_no

DELTA, DIMENSIONS = 0.1, (2, 3, 10, 90)
#: For the norm of p_t: dimensions, iterations, draws of xi, and the accuracy in units of f(0) - f*.
P_DIMENSIONS, P_MOST, P_EPSILONS = (3, 10, 90), 3_000, (1e-2, 3e-3, 1e-3)
P_DRAWS = {"quick": 20, "full": 100}


def lemma_1(mode: Mode) -> Task:
    """The largest ratio of the two sides over random pairs of directions, with the l_2 modulus of the ball."""

    def run() -> Iterator[Row]:
        rng = np.random.default_rng(0)
        for name, p in (("l₂", 2.0), ("l₁.₅", 1.5), ("l₁.₁", 1.1)):
            ball, worst = LpBall(p, 1.0), 0.0
            for d in (2, 5, 20, 90):
                alpha = ball.strong_convexity((d,))
                for size in (1.0, 1e-2, 1e-5):
                    for _ in range(20 if mode == "quick" else 200):
                        a = rng.standard_normal(d)
                        for b in (a + size * rng.standard_normal(d), a[::-1].copy()):
                            moved = float(np.linalg.norm(ball.lmo(-a) - ball.lmo(-b)))
                            sides = alpha * float(np.linalg.norm(a) + np.linalg.norm(b)) / float(np.linalg.norm(a - b))
                            worst = max(worst, moved * sides)
            yield {"measure": "ratio of Lemma 1", "set": name, "value": worst}

    return Task("lemma 1", run)


def lemma_2(mode: Mode) -> Task:
    """Chances of failure of Lemma 2's bound for a fixed w: as printed, one-sided as in the proof, and two-sided."""

    def run() -> Iterator[Row]:
        rng, draws = np.random.default_rng(0), 100_000 if mode == "quick" else 1_000_000
        for d in DIMENSIONS:
            xi = rng.standard_normal((draws, d))
            first = xi[:, 0] / np.linalg.norm(xi, axis=1)
            level = DELTA * np.sqrt(np.pi / (2 * d))
            theta = 1e-3  # where the gradient of f vanishes, that of h has the norm theta
            worst = max(float(np.mean(np.abs(a + first) <= level)) for a in np.linspace(-1, 1, 41))
            found = {"printed": float(theta < level), "one-sided": float(np.mean(first <= level)), "two-sided": worst}
            for name, value in found.items():
                yield {"measure": "chance of failure", "reading": name, "d": d, "value": value}

    return Task("lemma 2", run)


def p_t(mode: Mode, d: int, share: float) -> Task:
    """How often ||p_t|| of PA on h falls below Lemma 2's bound (with its theta) where the minimiser is interior.

    Lemma 2 is for a fixed w; the proof of Theorem 1 applies it to all p_t, whose iterates depend on xi.
    """

    def run() -> Iterator[Row]:
        rng = np.random.default_rng(d)
        values, centre = np.geomspace(1e-2, 1.0, d), rng.standard_normal(d)
        centre *= 0.5 / float(np.linalg.norm(centre))
        epsilon = share * 0.5 * float(centre @ (values * centre))
        theta = paper.largest_theta(epsilon, 2.0)
        level, below, powers = theta * DELTA * np.sqrt(np.pi / (2 * d)), 0, list[float]()

        def tilted(w: Array, xi: Array) -> Array:
            return np.asarray(values * (w - centre) + theta * xi)

        for seed in range(P_DRAWS[mode]):
            xi = paper.on_the_sphere((d,), np.random.default_rng(seed))
            option, norms = paper.Averaged(), list[float]()

            def averaged(t: int, g: Array, option: paper.Averaged = option, norms: list[float] = norms) -> Array:
                p = option(t, g)
                norms.append(float(np.linalg.norm(p)))
                return p

            runs = paper.primal_averaging(partial(tilted, xi=xi), paper.lp_oracle(2, 1.0), np.zeros(d), averaged)
            next(islice(runs, P_MOST - 1, None))
            below += norms[-1] < level
            powers.append(slope(np.arange(1, P_MOST + 1), np.array(norms), P_MOST // 10, P_MOST))
        yield {"measure": "draws below the bound", "d": d, "epsilon": share, "n": P_DRAWS[mode], "value": float(below)}
        yield {"measure": "slope of the norm", "d": d, "epsilon": share, "value": float(np.median(powers))}

    return Task(f"p_t d={d} epsilon={share:g}", run)


def lemma_3(mode: Mode) -> Task:
    """Whether option B makes the progress of Lemma 3 at every iteration, on the squared sigmoid and on squares."""

    def run() -> Iterator[Row]:
        sigmoid, squares = SigmoidMean(), least_squares("quick")
        for r in (1.0, 10.0):
            fine = progresses(sigmoid.value, sigmoid.gradient, sigmoid.L, LpBall(2, r), sigmoid.d)
            yield {"measure": "progress of Lemma 3", "run": f"squared sigmoid, r = {r:g}", "value": fine}
        for rho in (0.5, 2.0):
            fine = progresses(squares.value, squares.gradient, squares.L, squares.ball(2, rho), len(squares.zero))
            yield {"measure": "progress of Lemma 3", "run": f"squares, ρ = {rho:g}", "value": fine}

    return Task("lemma 3", run)


def progresses(f: Callable[[Array], float], gradient: paper.Map, L: float, ball: LpBall, d: int) -> float:
    """The share of 100 iterations of option B with the inequality, the last one in the place of the minimiser."""
    start, alpha = random_point(ball, (d,), 0), 1.0 / ball.radius
    runs = paper.frank_wolfe(gradient, paper.lp_oracle(2, ball.radius), start, paper.option_b(L))
    path, kept = [start, *islice(runs, 100)], []
    for w, new in pairwise(path):
        g = gradient(w)
        gamma = min(1.0, alpha * float(np.linalg.norm(g)) / (4 * L))
        kept.append(f(new) <= f(w) + gamma / 2 * float(g @ (path[-1] - w)) + 1e-13 * abs(f(w)))
    return float(np.mean(kept))


def other_checks(mode: Mode) -> Task:
    """Strong convexity of Schatten balls, normalised gradient descent, vertices, and the oracle of the group ball."""

    def run() -> Iterator[Row]:
        yield from schatten_modulus()
        problem, rng = least_squares("quick"), np.random.default_rng(0)
        ball, d = problem.ball(2, 0.5), len(problem.zero)
        w = random_point(ball, (d,), 0, 0.5)
        g = problem.gradient(w)
        step = next(paper.frank_wolfe(problem.gradient, paper.lp_oracle(2, ball.radius), w, lambda *_: 0.3))
        moved = w - 0.3 * ball.radius * g / np.linalg.norm(g)
        for measure, other in (("step apart", moved), ("step apart after shrinking", moved - 0.3 * w)):
            yield {"measure": measure, "value": float(np.linalg.norm(step - other) / ball.radius)}
        l1 = problem.ball(1, 0.5)
        runs = paper.primal_averaging(problem.gradient, l1.lmo, problem.zero, paper.Averaged())
        most = max(np.count_nonzero(w) - (t + 1) for t, w in enumerate(islice(runs, 300), start=1))
        yield {"measure": "entries beyond t + 1", "value": float(most)}
        for p, q in ((1.5, 1.5), (1.2, 1.8), (1.8, 1.2)):
            unit, C = GroupBall(p, q, 1.0), rng.standard_normal((6, 4))
            z, s = p / (p - 1), q / (q - 1)
            rows, other = (np.sum(np.abs(C) ** e, axis=1, keepdims=True) ** (1 / e) for e in (z, s))
            source = -(float(np.sum(rows**s)) ** (1 / s - 1)) * other ** (s - z) * np.sign(C) * np.abs(C) ** (z - 1)
            yield {"measure": "group oracle", "p": p, "value": float(-np.sum(C * source)) / unit.dual_norm(C)}

    return Task("remarks", run)


def schatten_modulus() -> Iterator[Row]:
    """The set of Definition 1 with alpha = (p-1)/r: by how much its largest norm exceeds the radius, in two norms."""
    rng = np.random.default_rng(0)
    for p in (1.1, 1.5, 2.0):
        ball, worst = LpBall(p, 1.0), {"its own norm": 0.0, "the Frobenius norm": 0.0}
        for k in range(400):  # singular values of matrices that share their vectors: the norm is that of a vector
            u, v = rng.standard_normal((2, 20))
            if k % 2:  # else along the flattest direction where one entry is large
                x = np.full(20, rng.uniform(0.005, 0.3))
                x[0] = 1.0
                normal = x ** (p - 1)
                along = -normal * normal[0] / float(normal[1:] @ normal[1:])
                along[0] = 1.0
                size = rng.uniform(0.05, 0.5)
                u, v = x + size * along, x - size * along
            u, v = u / ball.norm(u), v / ball.norm(v)
            middle = 0.5 * (u + v)
            outward = np.sign(middle) * np.abs(middle) ** (p - 1)
            for name, apart, z in (
                ("its own norm", ball.norm(u - v), middle / ball.norm(middle)),
                ("the Frobenius norm", float(np.linalg.norm(u - v)), outward / np.linalg.norm(outward)),
            ):
                worst[name] = max(worst[name], float(ball.norm(middle + (p - 1) / 8 * apart**2 * z)) - 1.0)
        for name, value in worst.items():
            yield {"measure": "beyond the ball", "norm": name, "p": p, "value": value}


def tasks(mode: Mode) -> list[Task]:
    """All checks."""
    return [
        lemma_1(mode),
        lemma_2(mode),
        *(p_t(mode, d, e) for d in P_DIMENSIONS for e in P_EPSILONS),
        lemma_3(mode),
        other_checks(mode),
    ]


def at_most(measure: str, level: float, name: str, sign: str = "", **wanted: object) -> Callable[..., Finding]:
    """A rule: every value of a measure is at most a level; ``name`` is the column that tells settings apart."""

    def judge(table: Any) -> Finding:
        rows = select(table, experiment="lemmas", measure=measure, **wanted)
        values = zip(rows[name] if name in rows else [measure] * len(rows), rows["value"], strict=True)
        out = [yes_no(f"{sign}{at:g}" if sign else str(at), v, v <= level * (1 + 1e-9)) for at, v in values]
        return statement(out, rows, "within", "beyond")

    return judge


def judge_p_t(table: Any) -> Finding:
    """In how many draws the last p_t is below Lemma 2's bound, which the proof of Theorem 1 needs for all t."""
    rows = select(table, measure="draws below the bound")
    draws = rows["n"].fillna(P_DRAWS["full"])
    out = [
        yes_no(f"d = {d:g}, ε = {e:g} f(0)", v / n, v <= DELTA * n, f"{v:.0f} of {n:.0f} draws")
        for d, e, v, n in zip(rows["d"], rows["epsilon"], rows["value"], draws, strict=True)
    ]
    worst = sorted((s for s in out if s.state == "no"), key=lambda s: s.name)
    ours = "below in " + "; ".join(f"{s.note} ({s.name})" for s in worst) if worst else ""
    return statement(out, rows, "seldom", "too often", ours=ours)


def judge_progress(table: Any) -> Finding:
    """Lemma 3 at every iteration."""
    rows = select(table, measure="progress of Lemma 3")
    return statement([yes_no(r, v, v == 1) for r, v in zip(rows["run"], rows["value"], strict=True)], rows)


def judge_normalised(table: Any) -> Finding:
    """Whether a step of Frank-Wolfe on an l_2 ball is one of normalised gradient descent."""
    out = []
    for measure, name in (("step apart", "the step"), ("step apart after shrinking", "the step, w shrunk by 1 - γ")):
        out += [yes_no(name, v, v < 1e-12) for v in select(table, measure=measure)["value"]]
    return statement(out, select(table, measure="step apart"), "the same", "not the same", " r")


def remarks(table: Any) -> list[str]:
    """The norm of p_t with an interior minimiser, the corrected lemmas, and the oracle in the paper's source."""
    out = []
    two = select(table, measure="chance of failure", reading="two-sided")
    if len(two):
        each = ", ".join(f"{number(v, 3)} at d = {d:g}" for d, v in zip(two["d"], two["value"], strict=True))
        out.append(f"Two-sided, Pr(|a + ξ₁| ≤ δ√(π/2d)) is {each} for δ = {DELTA:g}: it holds for d ≥ 3.")
    powers = select(table, measure="slope of the norm")["value"]
    if len(powers):
        out.append(
            f"With an interior minimiser ‖p_t‖ falls like t^{number(float(powers.median()))}, so that it passes every "
            "bound that does not fall with t: the smaller ε is, the later."
        )
    group = select(table, measure="group oracle")["value"]
    if len(group):
        out.append(
            f"The group ball's oracle in the paper's source, which is not typeset, reaches {number(group.min())} to "
            f"{number(group.max())} of the optimum; with ‖C_i‖_z in place of ‖C_i‖_s it is exact."
        )
    return out


def draw(table: Any) -> Any:
    """Chances of failure of Lemma 2 by dimension."""
    figure, (axis,) = panels(1, 3.4, 5.5)
    for name in ("printed", "one-sided", "two-sided"):
        rows = select(table, measure="chance of failure", reading=name)
        curve(axis, rows["d"], rows["value"], name, None, marker="o", markersize=4)
    axis.axhline(DELTA, color="#222222", linestyle="--", linewidth=1, label="δ")
    logarithmic(axis, "x")
    label(axis, "Lemma 2 for a fixed w, δ = 0.1", "dimension d", "chance of failure")
    return figure


EXPERIMENT = Experiment(
    name="lemmas",
    title="Lemmas and remarks",
    method="Random directions, points and perturbations with fixed seeds; no clock and no data decide.",
    tasks=tasks,
    claims=(
        Claim("lemma-1", "Lemma 1", "‖x_p - x_q‖ ≤ ‖p - q‖ / (α(‖p‖ + ‖q‖))", "ratio ≤ 1",
              "holds if no ratio of the two sides exceeds 1", at_most("ratio of Lemma 1", 1.0, "set")),
        Claim("lemma-1-repaired", "Lemma 1", "The same with a factor 2 on the right, as the proof gives", "ratio ≤ 2",
              "holds if no ratio exceeds 2", at_most("ratio of Lemma 1", 2.0, "set")),
        Claim("lemma-2", "Lemma 2", "‖∇h(w)‖ ≥ δ√(π/2d) with probability 1 - δ, without θ", "failure ≤ δ",
              "holds if the chance of failure where ∇f = 0, with θ = 10⁻³ and δ = 0.1, is at most δ",
              at_most("chance of failure", DELTA, "d", "d = ", reading="printed"), False, "lemmas"),
        Claim("lemma-2-step", "Lemma 2", "Pr(ξ₁ ≤ δ√(π/2d)) ≤ δ, a step of the proof", "≤ δ",
              "holds if the measured chance is at most δ = 0.1",
              at_most("chance of failure", DELTA, "d", "d = ", reading="one-sided"), False, "lemmas"),
        Claim("p-t", "Theorem 1", "Lemma 2's bound, with its θ, holds for ‖p_t‖ along a run (interior minimiser)",
              "failure ≤ δ", f"holds if it fails in at most {DELTA:.0%} of the draws of ξ after {P_MOST:,} iterations",
              judge_p_t),
        Claim("lemma-3", "Lemma 3", "f(w_t₊₁) ≤ f(w_t) + (γ_t/2)⟨w* - w_t, ∇f(w_t)⟩", "every t",
              "holds if it does at 100 iterations of option B in every run", judge_progress),
        Claim("schatten", "Appendix B.4", "Schatten-p balls are α-strongly convex with α = (p - 1)/r", "own norm",
              "holds if the balls of Definition 1 stay inside, in the ball's own norm",
              at_most("beyond the ball", 1e-9, "p", "p = ", norm="its own norm")),
        Claim("schatten-frobenius", "Lemma 1", "The same in the Euclidean norm, which Lemma 1 needs", "Frobenius norm",
              "holds if the balls of Definition 1 stay inside, in the Frobenius norm",
              at_most("beyond the ball", 1e-9, "p", "p = ", norm="the Frobenius norm")),
        Claim("normalised", "Section 2", "On an l₂ ball FW is equivalent to normalised gradient descent", "equal",
              "holds if one step from the same point agrees to rounding", judge_normalised),
        Claim("vertices", "Section 1", "After t iterations the solution is made of at most t + 1 vertices", "≤ t + 1",
              "holds if PA's iterates on an l₁ ball have at most t + 1 entries for 300 iterations",
              at_most("entries beyond t + 1", 0.0, "measure")),
    ),
    figures=(Figure("lemmas", 0, "Lemma 2: as printed, by its one-sided proof, and two-sided.", draw),),
    remarks=remarks,
)  # fmt: skip
