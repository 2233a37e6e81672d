"""The share of projections in the time of (stochastic) gradient descent (Figures 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from projfree import Logistic, LpBall, Objective, SchattenBall, as_data
from reproduction.base import Array, Claim, Experiment, Figure, Finding, Mode, Row, Setting, Task
from reproduction.drawing import label_axes, panels, plot_bars
from reproduction.experiments.stochastic import general_projection
from reproduction.measure import timings
from reproduction.problems import l2_projection, rating_matrix, ratings
from reproduction.rules import Rule, answer, bounded, compare, judge_all, select

SHARES, ETA, ROUNDS = (0.01, 0.1, 1.0), 1e-3, 5
VECTORS = {"l₁": 1.0, "l₁.₅": 1.5, "l₂": 2.0, "l∞": math.inf}
MATRICES = {"Schatten-1": 1.0, "Schatten-2": 2.0, "Schatten-∞": math.inf}
GD, SGD, PLAIN, LIBRARY = "GD", "SGD", "row gradient in plain NumPy", "row gradient of a general library"


def project_l1(w: Array, radius: float) -> Array:
    """The projection onto the l_1 ball by sorting, written out."""
    a = np.abs(w)
    if a.sum() <= radius:
        return w
    u = np.sort(a)[::-1]
    sums = np.cumsum(u) - radius
    k = np.flatnonzero(u * np.arange(1, len(u) + 1) > sums)[-1]
    return np.asarray(np.sign(w) * np.maximum(a - sums[k] / (k + 1), 0.0))


def project_linf_by_loop(w: Array, radius: float) -> Array:
    """The projection onto an l_inf ball one entry after the other, as the paper says it must be done."""
    out = np.empty_like(w)
    for i, entry in enumerate(w.tolist()):
        out[i] = radius if entry > radius else -radius if entry < -radius else entry
    return out


def project_schatten(W: Array, p: float, radius: float) -> Array:
    """The projection onto a Schatten ball through a full decomposition, whatever p is."""
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return np.asarray((U * LpBall(p, radius).project(s)) @ Vt)


def shares(project: Any, moves: dict[str, Any], calls: dict[str, int], kind: str, **place: Any) -> Iterator[Row]:
    """Seconds of a projection and of the rest of each step, in rounds, and the share of the projection."""
    spent = timings({"projection": project, **moves}, calls, ROUNDS)
    for size in moves:
        for k, (own, rest) in enumerate(zip(spent["projection"], spent[size], strict=True)):
            value = float(own / (own + rest))
            yield {**place, "method": kind, "size": size, "measure": "share", "round": k, "value": value}


def vectors(name: str) -> Task:
    """Logistic loss on all of Adult without an intercept, radius 1, by plain NumPy; CVXPY for the l_1.5 ball."""

    def run() -> Iterator[Row]:
        from projfree.datasets import load_adult

        data, p = load_adult(), VECTORS[name]
        X, y, rng = data.X, data.y, np.random.default_rng(0)
        d = X.shape[1]
        w: Array = np.asarray(rng.standard_normal(d))
        kinds: dict[str, Callable[[Array], Array] | None] = {
            "l₁": partial(project_l1, radius=1.0),
            "l₁.₅": general_projection(1.5, 1.0, d),
            "l₂": l2_projection(1.0),
            "l∞": partial(project_linf_by_loop, radius=1.0),
        }
        project = kinds[name]
        place = {"data": "Adult, 48,842 × 108", "stand_in": False, "n": len(y), "set": name, "p": p}
        if project is None:
            return

        def table_step(X: Array, y: Array) -> Array:
            return np.asarray(w - ETA * (X.T @ (-y / (1.0 + np.exp(y * (X @ w))))))

        def row_step() -> Array:
            i = int(rng.integers(len(y)))
            x, label = X[i], float(y[i])
            return np.asarray(w - (ETA * -label / (1.0 + math.exp(label * float(x @ w)))) * x)

        moves: dict[str, Any] = {}
        for share in SHARES:
            rows = np.sort(rng.choice(len(y), round(share * len(y)), replace=False))
            moves[f"{share:.0%}"] = partial(table_step, X[rows], y[rows])
        slow = 4 if name == "l₁.₅" else 200
        often = {"projection": slow, "1%": 20, "10%": 10, "100%": 2}
        call = partial(project, w)
        yield from shares(call, moves, often, GD, **place)
        f = Objective(Logistic(), as_data(X, y), fit_intercept=False)
        at = f.point(w)
        rest = {PLAIN: row_step, LIBRARY: lambda: w - ETA * f.estimate(at, 1, rng).gradient}
        yield from shares(call, rest, {"projection": slow, PLAIN: 200, LIBRARY: 50}, SGD, **place)
        if p == math.inf:
            same = np.array_equal(project_linf_by_loop(w, 1.0), np.clip(w, -1.0, 1.0))
            yield {**place, "method": "", "measure": "the short form agrees", "value": float(same)}

    return Task(name, run, timed=True)


def matrices(name: str) -> Task:
    """Completion on 1, 10 and 100 % of the ratings; the matrix has its full size, the projection decomposes it."""

    def run() -> Iterator[Row]:
        (rated, place), p = ratings("100k"), MATRICES[name]
        M = rating_matrix(rated)
        radius = 0.5 * SchattenBall(p, 1.0).norm(M)
        W: Array = np.asarray(np.random.default_rng(0).standard_normal(M.shape))
        W *= 2.0 * radius / SchattenBall(p, 1.0).norm(W)
        n = len(rated.values)

        def move(k: int) -> Array:
            at, G = (rated.rows[:k], rated.cols[:k]), np.zeros(W.shape)
            G[at] = 2.0 * (W[at] - rated.values[:k])
            return np.asarray(W - ETA * G)

        moves = {f"{share:.0%}": partial(move, round(share * n)) for share in SHARES}
        here = {**place, "n": n, "set": name, "p": p}
        often = {"projection": 1, PLAIN: 3, **dict.fromkeys(moves, 3)}
        project = partial(project_schatten, W, p, radius)
        for row in shares(project, {**moves, PLAIN: partial(move, 1)}, often, GD, **here):
            yield {**row, "method": SGD} if row["size"] == PLAIN else row
        if p == 2:
            same = np.allclose(project(), l2_projection(radius)(W), atol=1e-10)
            yield {**here, "method": "", "measure": "the short form agrees", "value": float(same)}

    return Task(name, run, timed=True)


def tasks(mode: Mode) -> list[Task]:
    """Return the tasks: all seven balls."""
    return [*map(vectors, VECTORS), *map(matrices, MATRICES)]


#: The printed shares in per cent; those that begin at 0 are printed as "less than".
GD_SHARES = {
    "l₁": (0, 7),
    "l₂": (0, 0.03),
    "l∞": (0, 3),
    "l₁.₅": (69, 99),
    "Schatten-1": (95, 99),
    "Schatten-2": (70, 99),
    "Schatten-∞": (71, 99),
}
SGD_SHARES = {"l₁": (5, 20), "l₂": (5, 11), "l∞": (50, 65)}
RESCALED = ("no", "refuted by a rescaling, for the Schatten-2 norm is the Frobenius norm,")
CLIPPED = ("no", "refuted by a clip of all entries at once")
COSTLY = ("l₁.₅", *MATRICES)


def at_sizes(table: Any, method: str, ball: str, rule: Rule) -> list[Setting]:
    """The share of projections at each size of the data, or for each row gradient, in per cent."""
    rows = select(table, experiment="projection", measure="share", method=method, set=ball)
    return [rule.at(str(size), 100 * group["value"]) for size, group in rows.groupby("size", sort=False)]


def judge_share(method: str, ball: str, low: float, high: float) -> Any:
    """A printed share; more favours the paper where projecting is said to be costly, less where it is cheap."""
    digits = 2 if high < 1 else 0
    rule = Rule(low, high, more=low > 0, digits=digits)

    def judge(table: Any) -> Finding:
        words = {"within": "as printed", "beyond": "more than printed", "short": "less than printed"}
        if low == 0:
            words = {"within": "as printed", "beyond": "less than printed", "short": "more than printed"}
        rows = select(table, experiment="projection", set=ball)
        return compare(at_sizes(table, method, ball, rule), rows, " %", words)

    return judge


def median_share(table: Any, method: str, ball: str, size: str) -> float:
    """Return the median share in per cent, NaN if it was not measured."""
    rows = select(table, measure="share", method=method, set=ball, size=size)["value"]
    return float(100 * rows.median()) if len(rows) else math.nan


def judge_costly(table: Any) -> Finding:
    """Whether the share on all rows is above one half exactly for the balls that the paper calls costly."""
    out = []
    for ball in GD_SHARES:
        share = median_share(table, GD, ball, "100%")
        out.append(answer(ball, share, None if math.isnan(share) else (share > 50) == (ball in COSTLY)))
    return judge_all(out, select(table, experiment="projection"), "as stated", "not so", " %")


def judge_order(small: tuple[str, str], large: tuple[str, str]) -> Any:
    """Whether one share is below the other, for every ball; less than a point apart is open."""

    def judge(table: Any) -> Finding:
        out = []
        for ball in GD_SHARES:
            a, b = (median_share(table, method, ball, size) for method, size in (small, large))
            out.append(answer(ball, b - a, None if math.isnan(b - a) or abs(b - a) < 1 else b > a))
        return judge_all(out, select(table, experiment="projection"), "as stated", "not so", " points")

    return judge


def share_bars(axis: Any, table: Any, method: str, balls: Any, sizes: dict[str, str]) -> None:
    """Plot the shares for each ball as bars, and the printed ranges as lines."""
    names = list(balls)
    groups = {}
    for size, shown in sizes.items():
        found = {ball: median_share(table, method, ball, size) for ball in names}
        groups[shown] = {ball: x for ball, x in found.items() if not math.isnan(x)}
    plot_bars(axis, groups, names)
    for k, (low, high) in enumerate(balls.values()):
        axis.plot([k, k], [low, high], color="#222222", linewidth=2.5, label=None if k else "paper")
        axis.plot([k - 0.4, k + 0.4], [high, high], color="#222222", linewidth=1)
    label_axes(axis, "", "", "share of the projection, %")


def draw_3(table: Any) -> Any:
    """Plot Figure 3: gradient descent."""
    figure, (axis,) = panels(1, 3.6, 8.0)
    share_bars(axis, table, GD, GD_SHARES, {f"{s:.0%}": f"{s:.0%} of the data" for s in SHARES})
    return figure


def draw_4(table: Any) -> Any:
    """Plot Figure 4: stochastic gradient descent."""
    figure, (axis,) = panels(1, 3.6, 8.0)
    share_bars(axis, table, SGD, SGD_SHARES, {PLAIN: PLAIN, LIBRARY: LIBRARY})
    return figure


EXPERIMENT = Experiment(
    name="projection",
    title="What projecting costs",
    method=(
        "Processor seconds of a projection and of the rest of a step, in rounds: logistic loss on Adult (no intercept, "
        "r = 1), completion with the full matrix (r half the norm). As the paper did it: sorting for l₁, a rescaling "
        "for l₂, a loop over entries for l∞, a general-purpose convex solver for l₁.₅, a full decomposition for every "
        "Schatten ball. The share of SGD depends on what one row's gradient costs, in plain NumPy or in a library."
    ),
    tasks=tasks,
    claims=(
        *(
            Claim(f"gd-{ball}", "Figure 3", f"Share of projections in GD, {ball}",
                  f"< {high:g} %" if low == 0 else f"{low:g}-{high:g} %",
                  "reproduced in the printed range at all three sizes of the data", judge_share(GD, ball, low, high),
                  True, "figure-3", True)
            for ball, (low, high) in GD_SHARES.items()
        ),
        *(
            Claim(f"sgd-{ball}", "Figure 4", f"Share of projections in SGD, {ball}", f"{low:g}-{high:g} %",
                  "reproduced in the printed range for both row gradients", judge_share(SGD, ball, low, high), True,
                  "figure-4", True)
            for ball, (low, high) in SGD_SHARES.items()
        ),
        Claim("costly", "Appendix B.2", "Projections are costly exactly where no cheap closed form exists", "costly",
              "holds for balls where GD's share on all data is above one half as stated", judge_costly, False,
              "figure-3", True),
        Claim("larger", "Appendix B.2", "The share is larger in SGD than in GD", "larger",
              "holds for balls where it is; less than a point apart is open", judge_order((GD, "100%"), (SGD, PLAIN)),
              False, "figure-4", True),
        Claim("falling", "Appendix B.2", "The share falls with the size of the data", "falling",
              "holds for balls where it is smaller on all data than on 1 %; less than a point apart is open",
              judge_order((GD, "100%"), (GD, "1%")), False, "figure-3", True),
        Claim("svd", "Section 1", "Projecting onto a Schatten-2 ball requires the SVD", "SVD",
              "fails if a shorter form gives the same point",
              bounded("the short form agrees", {"set": ""}, 0.0, words=RESCALED, set="Schatten-2")),
        Claim("vectorised", "Appendix B.2", "Projecting onto an l∞ ball cannot be vectorised", "no",
              "fails if a vectorised form gives the same point",
              bounded("the short form agrees", {"set": ""}, 0.0, words=CLIPPED, set="l∞")),
    ),
    figures=(
        Figure("figure-3", 3, "Time spent on projection in gradient descent. Black: the printed ranges.", draw_3),
        Figure("figure-4", 4, "Time spent on projection in stochastic gradient descent. Black: the printed ranges.",
               draw_4),
    ),
)  # fmt: skip
