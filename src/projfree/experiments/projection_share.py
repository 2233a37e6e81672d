"""Experiment 6: the part of the time of projected gradient methods that goes into projecting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.data import as_data
from projfree.experiments.base import Claim, Experiment, Finding, Mode, Origin, Panel, Row, Series, Task, Verdict
from projfree.experiments.counting import rescale
from projfree.experiments.drawing import bar_panel, noted
from projfree.experiments.implementations import (
    GeneralProjection,
    by_singular_values,
    general_available,
    loop_clip,
    threshold,
)
from projfree.experiments.iteration_time import repeats
from projfree.experiments.judging import TIME_MARGIN, UNMEASURED, decided, interval, medians, select
from projfree.experiments.measure import clock, timed
from projfree.experiments.problems import Completion
from projfree.experiments.sources import adult, part, ratings
from projfree.experiments.words import NOTHING, ball_name, number
from projfree.losses import Logistic
from projfree.objectives import Objective
from projfree.sets import LpBall, SchattenBall

SHARES = (0.01, 0.1, 1.0)
#: The size of a step, which its time does not depend on.
ETA = 1e-3
LP, SCHATTEN = (1.0, 1.5, 2.0, math.inf), (1.0, 2.0, math.inf)
KIND, OURS, LIBRARY = "the paper's kind", "ours", "plain projection, a library's row gradient"
CHEAP, DEAR = ("l₁", "l₂", "l∞"), ("l₁.₅", "Schatten-1", "Schatten-2", "Schatten-∞")


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


#: Points of per cent around one half within which a share is neither costly nor cheap.
NEAR = 5.0
ABSENT = "not measured in the paper's way"
#: The paper's ranges in per cent, by method and ball.
CLAIMED: dict[str, dict[str, tuple[float, float]]] = {
    "GD": {"l₁": (0, 7), "l₁.₅": (69, 99), "l₂": (0, 0.03), "l∞": (0, 3), "Schatten-1": (95, 99),
           "Schatten-2": (70, 99), "Schatten-∞": (71, 99)},
    "SGD": {"l₁": (5, 20), "l₂": (5, 11), "l∞": (50, 65)},
}  # fmt: skip


def shares(table: Any, ball: str, method: str, size: str) -> Array:
    """The shares of the paper's kind of projection in each round, in per cent; empty where there is none."""
    rows = select(table, measure="share", note=KIND, set=ball, solver=method, variant=size)
    return np.asarray(100 * rows.sort_values("seed")["value"].to_numpy())


def judge_range(method: str, ball: str) -> Any:
    """Whether our shares lie within the paper's range, widened by 5 points (doubled where it is below 10 %)."""
    low, high = CLAIMED[method][ball]
    most = 2 * high if high < 10 else high + 5

    def judge(table: Any) -> Finding:
        rows = select(table, measure="share", solver=method, set=ball, note=[KIND, LIBRARY])
        if not len(rows):
            missing = (
                "CVXPY is not installed; pip install 'projfree[reproduce]'" if ball == "l₁.₅" else UNMEASURED.reason
            )
            return Finding(Verdict.OPEN, UNMEASURED.ours, missing)
        states, shown = dict[str, bool | None](), list[str]()
        for (size, kind), group in rows.groupby(["variant", "note"], sort=False):
            each = 100 * group["value"].to_numpy()
            inside = low - 5 <= np.median(each) <= most
            flips = int(sum((low - 5 <= x <= most) != inside for x in each))
            name = str(size) if method == "GD" else {KIND: "plain NumPy"}.get(kind, str(kind))
            states[name] = bool(inside)
            shown.append(f"{number(float(np.median(each)), 1)} % ({name}; flips in {flips} of {len(each)})")
        middles = 100 * rows.groupby(["variant", "note"])["value"].median()
        if method == "SGD" and not any(states.values()) and middles.min() < low and middles.max() > high:
            states["a step of a cost between the two, with which the share falls"] = None
        return decided(states, shown, f"within {low:g}–{high:g} %, up to the tolerance,", "outside", "not measured")

    return judge


def balls_of(table: Any) -> list[str]:
    """The balls of the run, also those that the paper's kind of projection was not measured on."""
    return list(dict.fromkeys(select(table, measure="share")["set"]))


def judge_costly(table: Any) -> Finding:
    """Whether GD on all rows spends more than half of its time projecting exactly where no cheap closed form exists."""
    states, shown = dict[str, bool | None](), list[str]()
    for ball in balls_of(table):
        each = shares(table, ball, "GD", "100%")
        near = not len(each) or abs(float(np.median(each)) - 50) < NEAR
        states[ball] = None if near else bool((np.median(each) > 50) == (ball in DEAR))
        shown.append(f"{interval(each, 50.0)} % ({ball})" if len(each) else f"{NOTHING} ({ball})")
    open_ = f"{ABSENT}, or within {NEAR:g} points of one half,"
    return decided(states, shown, "as claimed (dear above, cheap below one half)", "the other way round", open_)


def judge_order(first: tuple[str, str], last: tuple[str, str], what: str, otherwise: str) -> Callable[[Any], Finding]:
    """Whether the share of the first method and size is larger than that of the last, for each ball."""

    def judge(table: Any) -> Finding:
        states, shown = dict[str, bool | None](), list[str]()
        for ball in balls_of(table):
            a, b = (shares(table, ball, *one) for one in (first, last))
            if not len(a) or not len(b):
                states[ball] = None
                shown.append(f"{NOTHING} ({ball})")
                continue
            apart = float(np.median(a) - np.median(b))
            flips = int(np.sum((a[: len(b)] > b[: len(a)]) != (apart > 0)))
            states[ball] = None if abs(apart) < 0.5 else apart > 0
            both = f"{number(float(np.median(a)), 1)} against {number(float(np.median(b)), 1)} %"
            shown.append(f"{both} ({ball}; flips in {flips} of {min(len(a), len(b))})")
        return decided(states, shown, what, otherwise, f"{ABSENT}, or equal to half a point,")

    return judge


def judge_cheaper(table: Any) -> Finding:
    """Whether a call of our oracle takes less time than one of our projection, for each ball."""
    rows = select(table, measure="call").sort_values("seed", kind="stable")
    states, shown = dict[str, bool | None](), list[str]()
    for ball, calls in rows.groupby("set", sort=False):
        slow, fast = (select(calls, solver=name)["value"].to_numpy() for name in ("projection", "oracle"))
        ratio = float(np.median(slow) / np.median(fast))
        states[str(ball)] = None if abs(ratio - 1) < TIME_MARGIN else ratio > 1
        shown.append(f"{interval(slow[: len(fast)] / fast[: len(slow)], 1.0)} ({ball})")
    return decided(states, shown, "the projection takes longer", "the oracle takes longer", "too near to tell")


def judge_not(ball: str, proof: str) -> Any:
    """A statement that something cannot be done, refuted where the cheap way gives the same."""

    def judge(table: Any) -> Finding:
        rows = select(table, measure="same", set=ball)
        if not len(rows):
            return UNMEASURED
        same = bool((rows["value"] == 1).all())
        own = select(table, measure="cheap way", set=ball)["value"]
        slow = select(table, measure="projection", set=ball, note=KIND)["value"]
        both = len(own) and len(slow)
        cost = f"; the paper's kind takes {number(float(slow.median() / own.median()), 1)}× the time" if both else ""
        shown = f"{rows['variant'].iloc[0]} {'agree' if same else 'differ'}{cost}"
        return Finding(
            Verdict.FAILS if same else Verdict.HOLDS, shown, proof if same else "the cheap way gives something else"
        )

    return judge


def panels(table: Any) -> list[Panel | None]:
    """Figures 3 and 4: bars of the shares, with the paper's."""
    out: list[Panel | None] = []
    for method, figure in (("GD", "Figure 3"), ("SGD", "Figure 4")):
        rows = select(table, measure="share", solver=method)
        series = []
        for (kind, size), bars in rows.groupby(["note", "variant"], sort=False):
            if kind == KIND or size in ("100%", "one row"):
                middles = 100 * medians(bars, ["set"])
                series.append(Series(f"{kind}, {size}", list(middles.index), middles.to_list(), style="bar"))
        ends = {ball: high for ball, (_, high) in CLAIMED[method].items()}
        if series:
            series.append(Series("paper, upper end", list(ends), list(ends.values()), style="bar", colour=6))
            title = f"{figure}: share of {method}'s time spent on projections"
            note = "The Schatten balls: " + noted(rows[rows["stand_in"]]).lower() if rows["stand_in"].any() else ""
            out.append(bar_panel(method.lower(), title, "per cent", series, note, logy=False))
    times = medians(select(table, measure="call"), ["set", "solver"])
    if len(times):
        balls = list(dict.fromkeys(times.index.get_level_values(0)))
        series = [
            Series(w, balls, [1e6 * float(times[b, w]) for b in balls], style="bar") for w in ("oracle", "projection")
        ]
        out.append(bar_panel("calls", "One call of our oracle and of our projection", "microseconds", series))
    return out


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
              "calls the ball costly; within 5 points of it the ball is open", judge_costly, "gd", timed=True),
        Claim("larger", "The share of projections is larger in SGD than in GD", "larger", "Appendix B.2", SIDE,
              judge_order(("SGD", "one row"), ("GD", "100%"), "larger in SGD", "not larger"), "sgd", timed=True),
        Claim("falling", "The share falls with the size of the data", "falling", "Appendix B.2", SIDE,
              judge_order(("GD", "1%"), ("GD", "100%"), "smaller on all rows than on 1 %", "not smaller"), "gd",
              timed=True),
        Claim("schatten-svd", "Projecting onto a Schatten-2 ball requires the SVD of the matrix", "SVD", "Section "
                      "1; Appendix B.2",
              "refuted if a rescaling gives the same point to rounding",
              judge_not("Schatten-2", "the Schatten-2 norm is the Frobenius norm, so the projection is a rescaling"),
              "gd"),
        Claim("vectorised", "Projecting onto an l∞ ball cannot be vectorised", "no", "Appendix B.2",
              "refuted if a vectorised clip gives the same point",
              judge_not("l∞", "each entry is clipped on its own, which np.clip does at once"), "sgd"),
        *(
            Claim(f"{method}-{ball}", f"Projections onto {ball} take {low:g}–{high:g} % of {method}'s time",
                  f"{low:g}–{high:g} %", f"Appendix B.2, Figure {3 if method == 'GD' else 4}", RULE,
                  judge_range(method, ball),
                  method.lower(), timed=True)
            for method, balls in CLAIMED.items()
            for ball, (low, high) in balls.items()
        ),
        Claim("oracle", "A call of the linear oracle is cheaper than a projection", "cheaper", "Section 1", NEAR_CALLS,
              judge_cheaper,
              "calls", Origin.IMPLIED, True),
    ),
    panels=panels,
)  # fmt: skip
