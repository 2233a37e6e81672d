"""Experiment 6: the part of the time of projected gradient methods that goes into projecting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.data import as_data
from projfree.losses import Logistic
from projfree.objectives import Objective
from projfree.sets import LpBall, SchattenBall
from reproduction.base import Claim, Experiment, Mode, Origin, Row, Task
from reproduction.counting import rescale
from reproduction.implementations import (
    GeneralProjection,
    by_singular_values,
    general_available,
    loop_clip,
    threshold,
)
from reproduction.iteration_time import repeats
from reproduction.measure import clock, timed
from reproduction.problems import Completion
from reproduction.projection_rules import (
    CLAIMED,
    KIND,
    LIBRARY,
    OURS,
    judge_cheaper,
    judge_costly,
    judge_not,
    judge_order,
    judge_range,
    panels,
)
from reproduction.sources import adult, part, ratings
from reproduction.words import ball_name

SHARES = (0.01, 0.1, 1.0)
#: The size of a step, which its time does not depend on.
ETA = 1e-3
LP, SCHATTEN = (1.0, 1.5, 2.0, math.inf), (1.0, 2.0, math.inf)


def plain(p: float, d: int) -> Callable[[Array], Array] | None:
    """The projection onto the unit l_p ball as the paper did it, without the checks of a library call."""
    if p == 1.5:
        return GeneralProjection(LpBall(p, 1.0), d) if general_available() else None
    plain_ones: dict[float, Callable[[Array], Array]] = {
        1.0: partial(threshold, radius=1.0),
        2.0: rescale(1.0),
        math.inf: partial(loop_clip, radius=1.0),
    }
    return plain_ones[p]


def parts(
    move: Callable[[], Any], project: Callable[[], Any], calls: tuple[int, int], rounds: int, **place: Any
) -> Iterator[Row]:
    """Seconds of a step without its projection and of that, warmed up, in rounds that take turns, and its share."""
    move(), project()
    for seed in range(rounds):
        spent = []
        for action, often in zip((move, project), calls, strict=True):
            begun = clock()
            for _ in range(often):
                action()
            spent.append((clock() - begun) / often)
        yield {**place, "seed": seed, "measure": "projection", "value": spent[1]}
        yield {**place, "seed": seed, "measure": "share", "value": spent[1] / sum(spent)}


def row_gradient(x: Array, label: float, w: Array) -> Array:
    """The gradient of the logistic loss of one row, as one writes it out."""
    return x * (-label / (1.0 + math.exp(label * float(x @ w))))


def table_step(X: Array, y: Array, w: Array) -> Array:
    """A step of GD before its projection: the gradient of the sum over the rows of a table, and the move."""
    return np.asarray(w - ETA * (X.T @ (-y / (1.0 + np.exp(y * (X @ w))))))


def row_step(X: Array, y: Array, w: Array, rng: np.random.Generator) -> Array:
    """A step of SGD before its projection: draw a row, take its gradient, and move."""
    i = int(rng.integers(len(y)))
    return w - ETA * row_gradient(X[i], float(y[i]), w)


def vectors(mode: Mode, p: float) -> Task:
    """Logistic loss on Adult without an intercept, radius 1; GD on 1, 10 and 100 % of the rows, SGD with one row."""

    def run() -> Iterator[Row]:
        table, ball, name = adult("full"), LpBall(p, 1.0), ball_name(p)
        rng, d = np.random.default_rng(0), table.X.shape[1]
        w, rounds = np.asarray(rng.standard_normal(d)), repeats(mode)
        place = {"problem": "logistic", "set": name, "p": p, "radius": 1.0, "data": table.name, "n": len(table.y)}
        kinds: dict[str, Callable[[Array], Array]] = {OURS: ball.project}
        if (general := plain(p, d)) is not None:
            kinds = {KIND: general, **kinds}
        for share in (0.0, *SHARES):
            rows = table if share in (0.0, 1.0) else part(table, share)
            move = partial(table_step, rows.X, rows.y, w) if share else partial(row_step, rows.X, rows.y, w, rng)
            for kind, project in kinds.items():
                slow = p == 1.5 and kind == KIND
                often = (200 if share == 0.0 else 3 if share == 1.0 else 20, 8 if slow else 200)
                solver, variant = ("SGD", "one row") if share == 0.0 else ("GD", f"{share:.0%}")
                here = {**place, "solver": solver, "variant": variant, "note": kind}
                yield from parts(move, partial(project, w), often, rounds, **here)
        if KIND in kinds:  # one row of a general library, with its checks, costs far more than its arithmetic
            f = Objective(Logistic(), as_data(table.X, table.y))
            at, here = f.point(w), {**place, "solver": "SGD", "variant": "one row", "note": LIBRARY}
            often = (50, 8 if p == 1.5 else 200)
            yield from parts(
                lambda: w - ETA * f.estimate(at, 1, rng).gradient, partial(kinds[KIND], w), often, rounds, **here
            )
        calls: dict[str, Callable[[Array], Any]] = {"oracle": ball.oracle, "projection": ball.project}
        for what, call in calls.items():
            for seed, spent in enumerate(timed(partial(call, w), 100, rounds)):
                yield {**place, "solver": what, "measure": "call", "seed": seed, "value": spent}
        if p == math.inf:
            for seed, spent in enumerate(timed(lambda: np.clip(w, -1.0, 1.0), 200, rounds)):
                yield {**place, "measure": "cheap way", "seed": seed, "value": spent}
            same = bool(np.array_equal(loop_clip(w, 1.0), np.clip(w, -1.0, 1.0)))
            yield {**place, "measure": "same", "variant": "np.clip and the loop", "value": float(same)}

    return Task(ball_name(p), run, (3 if p == 1.5 else 0.5) * (1 if mode == "quick" else 1.5))


def matrices(mode: Mode, p: float) -> Task:
    """Completion on 1, 10 and 100 % of the ratings; the matrix has the full size throughout."""

    def run() -> Iterator[Row]:
        problem, rounds = Completion(*ratings("100k")), repeats(mode)
        ball = SchattenBall(p, 0.5 * SchattenBall(p, 1.0).norm(problem.observed))
        name = ball_name(p, "Schatten")
        place = {**problem.place, "problem": "completion", "set": name, "p": p, "radius": ball.radius}
        W, n = problem.random_start(ball, 0, 2.0), len(problem.y)
        svd = {
            seed: spent for seed, spent in enumerate(timed(partial(by_singular_values, W, p, ball.radius), 1, rounds))
        }
        own = dict(enumerate(timed(partial(ball.project, W), 1 if p != 2 else 5, rounds)))
        for share in (0.0, *SHARES):
            k = 1 if share == 0.0 else max(50, round(share * n))
            at, y = (problem.at.rows[:k], problem.at.cols[:k]), problem.y[:k]

            def move(at: Any = at, y: Array = y) -> Array:
                G = np.zeros(W.shape)
                G[at] = 2.0 * (W[at] - y)
                return np.asarray(W - ETA * G)

            solver, variant = ("SGD", "one row") if share == 0.0 else ("GD", f"{share:.0%}")
            for seed, spent in enumerate(timed(move, 3, rounds)):
                for kind, times in ((KIND, svd), (OURS, own)):
                    here = {**place, "solver": solver, "variant": variant, "note": kind, "seed": seed}
                    yield {**here, "measure": "projection", "value": times[seed]}
                    yield {**here, "measure": "share", "value": times[seed] / (times[seed] + spent)}
        for seed, spent in enumerate(timed(partial(ball.oracle, W), 1, rounds)):
            yield {**place, "solver": "oracle", "measure": "call", "seed": seed, "value": spent}
            yield {**place, "solver": "projection", "measure": "call", "seed": seed, "value": own[seed]}
        if p == 2:
            for seed, spent in enumerate(timed(lambda: W * (ball.radius / np.linalg.norm(W)), 5, rounds)):
                yield {**place, "measure": "cheap way", "seed": seed, "value": spent}
            same = np.allclose(
                by_singular_values(W, 2.0, ball.radius), W * (ball.radius / np.linalg.norm(W)), atol=1e-10
            )
            yield {**place, "measure": "same", "variant": "a rescaling and the decomposition", "value": float(same)}

    return Task(ball_name(p, "Schatten"), run, (3 if p == 2 else 9) if mode == "quick" else 10)


def tasks(mode: Mode) -> list[Task]:
    """All seven balls."""
    return [vectors(mode, p) for p in LP] + [matrices(mode, p) for p in SCHATTEN]


RULE = (
    "holds at sizes (in SGD: for row gradients) where the median share lies in the paper's range, from 5 points below "
    "it to 5 points above it, or to twice its upper end where that is below 10 %; open where one share of SGD lies "
    "below the range and the other above it"
)
SIDE = "medians over rounds; balls whose two shares differ by less than half a point are open"
NEAR_CALLS = "medians over rounds; balls whose two times differ by less than a tenth are open"
EXPERIMENT = Experiment(
    name="projection-share",
    title="What projecting costs",
    question="When is the projection the bottleneck of gradient descent?",
    paper="Appendix B.2, Figures 3 and 4",
    method=(
        "A projection and the rest of a step (for SGD the draw of a row, its gradient and the move) are timed apart, "
        "after a call of each that is not counted: logistic loss on Adult (no intercept, r = 1), completion on the "
        "ratings (r half the norm of the observed matrix). The paper's kind is plain NumPy: sorting for l₁, a "
        "rescaling for l₂, a loop over entries for l∞, CVXPY for l₁.₅, a full decomposition for every Schatten ball, "
        "and the gradient written out; because that of one row is so cheap, SGD's shares are also measured with the "
        "row gradient of a general library (this one). Ours are the package's own calls, with their checks."
    ),
    tasks=tasks,
    claims=(
        Claim("costly", "Projections are costly whenever there is no closed form, or only an expensive one", "dear "
                      "and cheap",
              "Appendix B and B.2", "holds for balls where the share of GD on all rows is above one half exactly if "
              "the paper "
              "calls the ball costly; within 5 points of it the ball is open", judge_costly, "gd map-trends",
              timed=True),
        Claim("larger", "The share of projections is larger in SGD than in GD", "larger", "Appendix B.2", SIDE,
              judge_order(("SGD", "one row"), ("GD", "100%"), "larger in SGD", "not larger"), "sgd map-trends",
              timed=True),
        Claim("falling", "The share falls with the size of the data", "falling", "Appendix B.2", SIDE,
              judge_order(("GD", "1%"), ("GD", "100%"), "smaller on all rows than on 1 %", "not smaller"),
              "gd map-trends",
              timed=True),
        Claim("schatten-svd", "Projecting onto a Schatten-2 ball requires the SVD of the matrix", "SVD", "Section "
                      "1; Appendix B.2",
              "refuted if a rescaling gives the same point to rounding",
              judge_not("Schatten-2", "the Schatten-2 norm is the Frobenius norm, so the projection is a rescaling"),
              "gd"),
        Claim("vectorised", "Projecting onto an l∞ ball cannot be vectorised", "no", "Appendix B.2",
              "refuted if a vectorised clip gives the same point",
              judge_not("l∞", "each entry is clipped on its own, which np.clip does at once, and max(min(w, r), −r) in "
                        "Matlab"),
              "sgd"),
        *(
            Claim(f"{method}-{ball}", f"Projections onto {ball} take {low:g}–{high:g} % of {method}'s time",
                  f"{low:g}–{high:g} %", f"Appendix B.2, Figure {3 if method == 'GD' else 4}", RULE,
                  judge_range(method, ball),
                  f"{method.lower()} map-{method.lower()}", timed=True)
            for method, balls in CLAIMED.items()
            for ball, (low, high) in balls.items()
        ),
        Claim("oracle", "A call of the linear oracle is cheaper than a projection", "cheaper", "Section 1", NEAR_CALLS,
              judge_cheaper,
              "calls map-calls", Origin.IMPLIED, True),
    ),
    panels=panels,
)  # fmt: skip
