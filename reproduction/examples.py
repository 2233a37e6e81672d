"""The two functions that Section 5 quotes as examples: whether they are strictly-locally-quasi-convex."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from projfree import paper
from projfree.checks import Array
from reproduction.base import Claim, Finding, Mode, Panel, Row, Series, Task, Verdict
from reproduction.checks_drawn import holds_map
from reproduction.drawing import bar_panel
from reproduction.judging import UNMEASURED, all_true, select

#: Iterations in which a start of the first example is to arrive.
MOST = 50


def sigmoids(x: Array) -> tuple[float, Array]:
    """The function that the paper quotes as its first example, and its gradient."""
    s = 1.0 / (1.0 + np.exp(-x))
    return float(s.sum()), s * (1.0 - s)


def examples(mode: Mode) -> Task:
    """The two functions that the paper quotes: whether the definition holds, and whether FWLS finds the minimum."""

    def run() -> Iterator[Row]:
        star, rng = np.full(2, -10.0), np.random.default_rng(0)
        place = {"problem": "example", "data": "the paper's first example"}
        for epsilon in (0.01, 0.1, 1.0):
            ok = True
            for x in rng.uniform(-10, 10, (2_000, 2)):
                value, g = sigmoids(x)
                # The worst y of the ball around the minimiser is the one along the gradient.
                locally = float(g @ (star - x)) + epsilon * float(np.linalg.norm(g)) <= 0
                ok = ok and (value - sigmoids(star)[0] <= epsilon or locally)
            yield {**place, "variant": f"ε = {epsilon:g}", "measure": "definition", "value": float(ok)}
        search = paper.line_search(lambda x: sigmoids(x)[0])
        minimum = sigmoids(np.full(2, -10 / math.sqrt(2)))[0]
        for seed in range(20):
            x = np.random.default_rng(seed).uniform(-1, 1, 2) * 6.0
            path = paper.frank_wolfe(lambda x: sigmoids(x)[1], paper.lp_oracle(2, 10.0), x, search)
            values = np.array([sigmoids(w)[0] for w in islice(path, MOST)])
            reached = np.flatnonzero(values - minimum <= 1e-3)
            at = float(reached[0] + 1) if len(reached) else math.inf
            yield {**place, "set": "l₂", "seed": seed, "measure": "iterations to 1e-3", "value": at}
        yield from perceptron(rng)

    return Task("examples", run, 0.5)


def perceptron(rng: np.random.Generator) -> Iterator[Row]:
    """The second example: whether its gradient is zero where the error is not."""
    X = rng.standard_normal((50, 3))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = (X @ np.array([1.0, 2.0, -1.0]) >= 0).astype(float)
    zero = []
    for w in rng.standard_normal((200, 3)):

        def loss(w: Array) -> float:
            return float(np.mean((y - (X @ w >= 0)) ** 2))

        if loss(w) > 0:
            changes = [loss(w + 1e-9 * e) - loss(w - 1e-9 * e) for e in np.eye(3)]
            zero.append(not any(changes))
    place = {"problem": "perceptron", "data": "the paper's second example"}
    yield {**place, "measure": "zero gradient", "value": float(np.mean(zero))}


def judge_example(table: Any) -> Finding:
    """Whether the first example satisfies the definition, and FWLS finds its minimum on a ball from every start."""
    rows = select(table, problem="example")
    starts = select(rows, measure="iterations to 1e-3")["value"]
    shown = [f"{int(np.isfinite(starts).sum())} of {len(starts)} starts reach the minimum"] if len(starts) else []
    both = select(rows, measure="definition")
    if len(starts):
        both = both.assign(value=both["value"] * float(np.isfinite(starts).all()))
    return all_true(both, shown, "the definition holds and every start gets there", "not so")


def judge_perceptron(table: Any) -> Finding:
    """The second example has no gradient to descend along."""
    rows = select(table, problem="perceptron")
    if not len(rows):
        return UNMEASURED
    share = float(rows["value"].iloc[0])
    verdict = Verdict.UNDEFINED if share == 1 else Verdict.FAILS if share > 0 else Verdict.HOLDS
    reason = "φ is a step: the gradient is zero wherever it exists, ‖∇f‖ > 0 cannot hold, and f is not smooth"
    return Finding(
        verdict,
        f"zero gradient at {share:.0%} of the points with errors",
        reason if share else "the gradient is not zero",
    )


def panels(table: Any) -> list[Panel | None]:
    """How soon the starts of the first example arrive, where the definition holds, and the second one's gradients."""
    rows = select(table, problem="example")
    out = list[Panel | None]()
    arrived = select(rows, measure="iterations to 1e-3")["value"].value_counts().sort_index()
    if len(arrived):
        names = [f"{at:g}" if math.isfinite(at) else "never" for at in arrived.index]
        bars = Series("starts", names, arrived.to_list(), style="bar")
        title = f"The first example: iterations of FWLS until within 10⁻³ of the minimum, where {MOST} are allowed"
        alt = f"{title}; starts by iterations: " + ", ".join(f"{at}: {n}" for at, n in zip(names, bars.y, strict=True))
        out.append(Panel("example-starts", title, "", "number of starts", [bars], logx=False, logy=False, alt=alt))
    title = "The first example: the definition at 2,000 random points"
    out.append(holds_map("example-definition", title, select(rows, measure="definition"), "every point", ""))
    share = select(table, problem="perceptron")["value"]
    if len(share):
        zero = float(share.iloc[0])
        bars = Series("points with errors", ["zero", "not zero"], [zero, 1 - zero], style="bar")
        title = "The second example: the gradient at random points with errors"
        out.append(bar_panel("perceptron", title, "share of the points", [bars], logy=False))
    return out


CLAIMS = (
    Claim("example", "The first example is strictly-locally-quasi-convex, and FWLS finds its minimum", "every ε",
          "Section 5", "holds for ε at which the definition holds at 2,000 random points of [−10, 10]², if 20 of 20 "
          f"random starts come within 1e-3 in {MOST} iterations on the l₂ ball of radius 10", judge_example, "example"),
    Claim("perceptron", "The second example, with φ(z) = 1 for z ≥ 0, is strictly-locally-quasi-convex", "every w",
          "Section 5", "not defined where the gradient is zero at all points with errors", judge_perceptron,
          "perceptron"),
)  # fmt: skip
