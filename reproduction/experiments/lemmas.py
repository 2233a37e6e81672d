"""Lemmas 1 to 3 and remarks of the paper, checked on random draws and on runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from projfree import LpBall, paper
from reproduction.base import Array, Claim, Experiment, Finding, Mode, Row, Task
from reproduction.experiments.quasi_convex import SigmoidMean
from reproduction.measure import slope
from reproduction.problems import least_squares, random_point
from reproduction.rules import answer, bounded, judge_all, number, select

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
            worst = max(float(np.mean(np.abs(a + first) <= level)) for a in (*np.linspace(-1, 1, 41), 1 - level))
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

        def gradient_h(w: Array, xi: Array) -> Array:
            return np.asarray(values * (w - centre) + theta * xi)

        for seed in range(P_DRAWS[mode]):
            xi = paper.on_the_sphere((d,), np.random.default_rng(seed))
            option, norms = paper.Averaged(), list[float]()

            def store_norm(t: int, g: Array, option: paper.Averaged = option, norms: list[float] = norms) -> Array:
                p = option(t, g)
                norms.append(float(np.linalg.norm(p)))
                return p

            runs = paper.primal_averaging(partial(gradient_h, xi=xi), paper.lp_oracle(2, 1.0), np.zeros(d), store_norm)
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
            fine = progress_share(sigmoid.value, sigmoid.gradient, sigmoid.L, LpBall(2, r), sigmoid.d)
            yield {"measure": "progress of Lemma 3", "run": f"squared sigmoid, r = {r:g}", "value": fine}
        for rho in (0.5, 2.0):
            fine = progress_share(squares.value, squares.gradient, squares.L, squares.ball(2, rho), len(squares.zero))
            yield {"measure": "progress of Lemma 3", "run": f"squares, ρ = {rho:g}", "value": fine}

    return Task("lemma 3", run)


def progress_share(f: Callable[[Array], float], gradient: paper.Map, L: float, ball: LpBall, d: int) -> float:
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
    """Normalised gradient descent, and the entries of iterates on an l_1 ball."""

    def run() -> Iterator[Row]:
        problem = least_squares("quick")
        ball, d = problem.ball(2, 0.5), len(problem.zero)
        w = random_point(ball, (d,), 0, 0.5)
        g = problem.gradient(w)
        step = next(paper.frank_wolfe(problem.gradient, paper.lp_oracle(2, ball.radius), w, lambda *_: 0.3))
        moved = w - 0.3 * ball.radius * g / np.linalg.norm(g)
        for name, other in (("the step", moved), ("the step, w shrunk by 1 - γ", moved - 0.3 * w)):
            far = float(np.linalg.norm(step - other) / ball.radius)
            yield {"measure": "distance of a step", "run": name, "value": far}
        l1 = problem.ball(1, 0.5)
        runs = paper.primal_averaging(problem.gradient, l1.lmo, problem.zero, paper.Averaged())
        most = max(np.count_nonzero(w) - (t + 1) for t, w in enumerate(islice(runs, 300), start=1))
        yield {"measure": "entries beyond t + 1", "run": "PA, l₁", "value": float(most)}

    return Task("remarks", run)


def tasks(mode: Mode) -> list[Task]:
    """Return the tasks of all checks."""
    return [
        lemma_1(mode),
        lemma_2(mode),
        *(p_t(mode, d, e) for d in P_DIMENSIONS for e in P_EPSILONS),
        lemma_3(mode),
        other_checks(mode),
    ]


def judge_p_t(table: Any) -> Finding:
    """In how many draws the last p_t is below Lemma 2's bound, which the proof of Theorem 1 needs for all t."""
    rows = select(table, measure="draws below the bound")
    draws = rows["n"].fillna(P_DRAWS["full"])
    out = [
        answer(f"d = {d:g}, ε = {e:g} f(0)", v / n, v <= DELTA * n, f"{v:.0f} of {n:.0f} draws")
        for d, e, v, n in zip(rows["d"], rows["epsilon"], rows["value"], draws, strict=True)
    ]
    each = []
    for d, group in rows.groupby("d"):
        group = group.sort_values("epsilon", ascending=False)
        each.append(f"d = {d:g}: " + ", ".join(f"{v:.0f}" for v in group["value"]))
    ours = f"below in so many of {draws.max():.0f} draws, ε/f(0) = {', '.join(f'{e:g}' for e in P_EPSILONS)}: "
    return judge_all(out, rows, "seldom", "too often", ours=ours + "; ".join(each))


def remarks(table: Any) -> list[str]:
    """The norm of p_t with an interior minimiser, and the corrected Lemma 2."""
    out = []
    two = select(table, measure="chance of failure", reading="two-sided")
    if len(two):
        each = ", ".join(f"{number(v, 3)} at d = {d:g}" for d, v in zip(two["d"], two["value"], strict=True))
        out.append(
            f"Two-sided, the largest Pr(|a + ξ₁| ≤ δ√(π/2d)) over a is {each} for δ = {DELTA:g}: it holds for d ≥ 3."
        )
    powers = select(table, measure="slope of the norm")["value"]
    if len(powers):
        out.append(
            f"With an interior minimiser ‖p_t‖ falls like t^{number(float(powers.median()))}, so that it passes every "
            "bound that does not fall with t: the smaller ε is, the later."
        )
    return out


EXPERIMENT = Experiment(
    name="lemmas",
    title="Lemmas and remarks",
    method="Random directions, points and perturbations with fixed seeds; no clock and no data decide.",
    tasks=tasks,
    claims=(
        Claim("lemma-1", "Lemma 1", "‖x_p - x_q‖ ≤ ‖p - q‖ / (α(‖p‖ + ‖q‖))", "ratio ≤ 1",
              "holds if no ratio of the two sides exceeds 1", bounded("ratio of Lemma 1", {"set": ""}, 1.0)),
        Claim("lemma-1-repaired", "Lemma 1", "The same with a factor 2 on the right, as the proof gives", "ratio ≤ 2",
              "holds if no ratio exceeds 2", bounded("ratio of Lemma 1", {"set": ""}, 2.0)),
        Claim("lemma-2", "Lemma 2", "‖∇h(w)‖ ≥ δ√(π/2d) with probability 1 - δ, without θ", "failure ≤ δ",
              "holds if the chance of failure where ∇f = 0, with θ = 10⁻³ and δ = 0.1, is at most δ",
              bounded("chance of failure", {"d": "d = "}, DELTA, reading="printed")),
        Claim("lemma-2-step", "Lemma 2", "Pr(ξ₁ ≤ δ√(π/2d)) ≤ δ, a step of the proof", "≤ δ",
              "holds if the measured chance is at most δ = 0.1",
              bounded("chance of failure", {"d": "d = "}, DELTA, reading="one-sided")),
        Claim("p-t", "Theorem 1", "Lemma 2's bound, with its θ, holds for ‖p_t‖ along a run (interior minimiser)",
              "failure ≤ δ", f"holds if it fails in at most {DELTA:.0%} of the draws of ξ after {P_MOST:,} iterations",
              judge_p_t),
        Claim("lemma-3", "Lemma 3", "f(w_t₊₁) ≤ f(w_t) + (γ_t/2)⟨w* - w_t, ∇f(w_t)⟩", "every t",
              "holds if it does at 100 iterations of option B in every run",
              bounded("progress of Lemma 3", {"run": ""}, 1.0, True)),
        Claim("normalised", "Section 2", "On an l₂ ball FW is equivalent to normalised gradient descent", "equal",
              "holds if one step from the same point agrees to rounding",
              bounded("distance of a step", {"run": ""}, 1e-12, of=" r")),
        Claim("vertices", "Section 1", "After t iterations the solution is made of at most t + 1 vertices", "≤ t + 1",
              "holds if PA's iterates on an l₁ ball have at most t + 1 entries for 300 iterations",
              bounded("entries beyond t + 1", {"run": ""}, 0.0)),
    ),
    remarks=remarks,
)  # fmt: skip
