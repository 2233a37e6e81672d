"""For every claim two small tables: one with which it must hold, and one with which it just must not."""

from __future__ import annotations

import math

from reproduction.base import Verdict
from reproduction.counting import FWLS, FWPLR, OPTION_B, PA
from reproduction.gradient_descent import named
from reproduction.implementations import GD, OURS, PAPERS
from reproduction.iteration_time import ACCELERATED
from reproduction.non_convex import MEAN, ON_H, PRINTED_ON_H, SMALL, SUM
from reproduction.projection_rules import CHEAP, CLAIMED, DEAR, KIND
from reproduction.projection_rules import OURS as OUR_PROJECTION
from reproduction.quasi_convex import ABOVE, BELOW
from reproduction.stochastic import GENERAL, SGD, SPA, SPA_A
from reproduction.stochastic_rate import PUBLISHED, SQUARES

N = 515_345
#: Experiment and key; the rows that must hold, those that must not, and the verdict of these where it is no plain "no".
CASES = {}


def case(experiment, key, good, bad, verdict=None):
    CASES[experiment, key] = (good, bad, verdict)


def each(values, **place):
    """A row for each value."""
    return [{"seed": k, "value": v, **place} for k, v in enumerate(values)]


# ------------------------------------------------------------------ rates


def slopes(*values, **place):
    return each(values, measure="slope", variant="[10, 100]", radius=1.0, rho=0.5, **place)


for key, place in {
    "logistic-theorem": {"problem": "logistic", "solver": PA},
    "completion-theorem": {"problem": "completion", "solver": PA, "p": 2.0},
    "schatten-1.5": {"problem": "completion", "p": 1.5},
    "fwplr-rate": {"problem": "least squares", "solver": FWPLR},
}.items():
    case("rates", key, slopes(-2.0, -1.95, **place), slopes(-1.86, -1.86, **place))
for key, number, place in (
    ("logistic-number", -2.34, {"problem": "logistic", "solver": PA}),
    ("completion-number", -2.41, {"problem": "completion", "p": 2.0}),
):
    case("rates", key, slopes(number - 0.1, number + 0.1, **place), slopes(-2.0, number + 0.03, **place))
search = {"problem": "least squares", "solver": FWLS}
case("rates", "fwls-rate", slopes(-2.5, **search), slopes(-1.87, **search))

# ------------------------------------------------------------------ iteration times


def steps(times, variant=PAPERS, problem="regression"):
    rows = []
    for solver, seconds in times.items():
        rows += each([seconds] * 3, measure="step", solver=solver, variant=variant, problem=problem)
        rows += each([2.0], measure="reads", solver=solver, variant=variant, problem=problem)
    return rows


case("iteration-time", "pa-fwplr", steps({PA: 0.5, FWPLR: 1.0}), steps({PA: 1.45, FWPLR: 1.0}))
case("iteration-time", "fwls-pa", steps({PA: 1.0, FWLS: 5.0}), steps({PA: 1.0, FWLS: 2.8, OPTION_B: 7.9}))
case("iteration-time", "ours-pa-fwplr", steps({PA: 1.2, FWPLR: 1.0}, OURS), steps({PA: 1.45, FWPLR: 1.0}, OURS))
case("iteration-time", "ours-fwls-pa", steps({PA: 1.0, FWLS: 1.5}, OURS), steps({PA: 1.0, FWLS: 2.25}, OURS))

# ------------------------------------------------------------------ variants and gradient descent


def counts(of, rho=0.5, note="standardised", problem="regression"):
    place = {"rho": rho, "note": note, "problem": problem, "n": N}
    return [{"solver": s, "measure": "iterations", "value": v, **place} for s, v in of.items()]


equal = steps({name: 1.0 for name in (PA, FWPLR, FWLS, OPTION_B, GD, ACCELERATED)})
ours = steps({name: 1.0 for name in (PA, FWPLR, FWLS, OPTION_B, GD, ACCELERATED)}, OURS)
both = equal + steps({name: 1.0 for name in (PA, FWPLR, FWLS, OPTION_B)}, problem="completion")
F = "2 % of f*"
case("variants", "fewer", counts({PA: 10, FWPLR: 11}), counts({PA: 10, FWPLR: 10}))
case("variants", "regression-fwplr", counts({PA: 10, FWPLR: 40}) + equal, counts({PA: 10, FWPLR: 24}) + equal)
case(
    "variants",
    "regression-fwls",
    counts({PA: 10, FWLS: 160}) + equal,
    counts({PA: 10, FWLS: 105, OPTION_B: 105}) + equal,
)
for key, slow, low, high in (("completion-fwplr", FWPLR, 18, 40), ("completion-fwls", FWLS, 78, 150)):
    good, bad = (counts({PA: 10, slow: n}, note=F, problem="completion") + both for n in (high, low))
    case("variants", key, good, bad)
case("variants", "drastic", counts({PA: 10, FWPLR: 40}) + counts({PA: 10, FWPLR: 20}, note=F, problem="completion"),
     counts({PA: 10, FWPLR: 20}) + counts({PA: 10, FWPLR: 40}, note=F, problem="completion"))  # fmt: skip
case("variants", "alpha", counts({PA: 10}) + counts({PA: 20}, 0.9), counts({PA: 20}) + counts({PA: 10}, 0.9))
many = {PA: 10, FWPLR: 40, FWLS: 160, OPTION_B: 160}
case(
    "variants",
    "range-fw",
    counts(many) + equal,
    counts({**many, FWPLR: 20, FWLS: 116, OPTION_B: 116}) + equal,
    Verdict.OPEN,
)
case("variants", "ours-fwplr", counts({PA: 10, FWPLR: 40}) + ours, counts({PA: 10, FWPLR: 24}) + ours)
case("variants", "ours-cached", counts({PA: 10, FWLS: 160}) + ours, counts({PA: 10, FWLS: 105}) + ours)
case("gradient-descent", "factor", counts({PA: 10, named(0.1): 100}) + equal, counts({PA: 10, named(0.1): 51}) + equal)
case("gradient-descent", "frank-wolfe", counts({FWPLR: 40, ACCELERATED: 20}), counts({FWPLR: 40, ACCELERATED: 21}))
for key, slow in (("ours-standardised", GD), ("ours-accelerated", ACCELERATED)):
    case("gradient-descent", key, counts({PA: 10, slow: 100}) + ours, counts({PA: 10, slow: 51}) + ours)

# ------------------------------------------------------------------ stochastic


def times(of, p):
    rows = []
    for solver, seconds in of.items():
        variant = "constant step" if solver == SGD else ""
        rows += each([seconds] * 3, measure="time", solver=solver, variant=variant, p=p, rho=0.3, n=N)
    return rows


def dear(spa, calls):
    """SGD takes a millisecond and so many calls of a millisecond each."""
    place = {"p": 1.1, "rho": 0.3, "n": N}
    rows = times({SPA: spa, SGD: 1e-3}, 1.1) + each([1e-3] * 3, measure="projection", solver=GENERAL, **place)
    return rows + each([calls], measure="projections", solver=SGD, variant="constant step", **place)


case(
    "stochastic",
    "sides",
    times({SGD: 1.0, SPA: 2.0}, 2.0) + dear(0.01, 100),
    times({SGD: 1.2, SPA: 1.0}, 2.0) + dear(0.01, 7),
)
case("stochastic", "l2", times({SGD: 1.0, SPA: 5.0}, 2.0), times({SGD: 1.0, SPA: 3.1}, 2.0))
case("stochastic", "l1.1", dear(0.01, 300), dear(0.01, 168))
descent = counts({PA: 10, named(1.0): 100}) + equal
case(
    "stochastic",
    "range-gd",
    dear(0.01, 300) + descent,
    dear(0.01, 186) + counts({PA: 10, named(1.0): 57}) + equal,
    Verdict.OPEN,
)
case("stochastic", "ours-l1.1", times({SPA: 1.0, SGD: 30.0}, 1.1), times({SPA: 1.0, SGD: 16.9}, 1.1))
case("stochastic", "ours-l2", times({SPA_A: 1.0, SGD: 1.0}, 2.0), times({SPA_A: 1.0, SGD: 0.146}, 2.0))


def falling(power, **place):
    place = {"rho": 0.1, "seed": 0, "n": N, **place}
    rows = [{"t": t, "measure": "error", "value": float(t) ** power, **place} for t in range(1, 31)]
    return [*rows, {"measure": "unit", "value": 1e-9, **place}]


for key, place in {
    "stream": {"problem": "stream", "solver": PUBLISHED, "note": "f"},
    "sample": {"problem": "sample", "solver": PUBLISHED, "note": "f"},
    "stream-h": {"problem": "stream", "solver": PUBLISHED, "note": "h"},
    "squares": {"problem": "stream", "solver": SQUARES, "note": "f"},
}.items():
    case("stochastic-rate", key, falling(-2, **place), falling(-1.6, **place))

# ------------------------------------------------------------------ projections


def share(ball, value, method="GD", size="100%", kind=KIND):
    return each([value] * 3, measure="share", set=ball, solver=method, variant=size, note=kind)


def everywhere(cheap, costly):
    return [row for balls, v in ((CHEAP, cheap), (DEAR, costly)) for ball in balls for row in share(ball, v)]


S = "projection-share"
case(S, "costly", everywhere(0.1, 0.9), everywhere(0.56, 0.44))
larger = share("l₂", 0.2), share("l₂", 0.5, "SGD", "one row"), share("l₂", 0.194, "SGD", "one row")
case(S, "larger", larger[0] + larger[1], larger[0] + larger[2])


def by_size(*values):
    return [row for v, size in zip(values, ("1%", "10%", "100%"), strict=True) for row in share("l₂", v, size=size)]


case(S, "falling", by_size(0.9, 0.5, 0.1), by_size(0.5, 0.5, 0.506))
for key, ball in (("schatten-svd", "Schatten-2"), ("vectorised", "l∞")):
    cost = [row for kind in (KIND, OUR_PROJECTION) for row in each([1.0], measure="projection", set=ball, note=kind)]
    good, bad = (cost + each([v], measure="same", set=ball, variant="both ways") for v in (0.0, 1.0))
    case(S, key, good, bad)
for method, balls in CLAIMED.items():
    for ball, (low, high) in balls.items():
        size = "100%" if method == "GD" else "one row"
        above = 2 * high if high < 10 else high + 5
        outside = (low - 5.1 if low > 50 else above + 0.1) / 100
        case(S, f"{method}-{ball}", share(ball, (low + high) / 200, method, size), share(ball, outside, method, size))


def calls(oracle, projection):
    rows = each([oracle] * 3, measure="call", set="l₂", solver="oracle")
    return rows + each([projection] * 3, measure="call", set="l₂", solver="projection")


case(S, "oracle", calls(1.0, 2.0), calls(1.15, 1.0))

# ------------------------------------------------------------------ not convex


def part(name, value):
    return each([value], measure="slope", variant=name, solver=FWLS, radius=1.0, note="t 2 to 100")


Q = "quasi-convex"
case(Q, "above", part(ABOVE, -0.6), part(ABOVE, -0.47))
case(Q, "below", part(BELOW, -0.4), part(BELOW, -0.31))
case(Q, "above-number", part(ABOVE, -2.0) + part(ABOVE, -2.2), part(ABOVE, -1.0) + part(ABOVE, -2.09))
case(Q, "below-number", part(BELOW, -0.3) + part(BELOW, -0.4), part(BELOW, -0.41) + part(BELOW, -1.5))
case(Q, "steeper", part(ABOVE, -2.0) + part(BELOW, -0.4), part(ABOVE, -2.0) + part(BELOW, -2.03))


def shares(value, measure, **place):
    return each([value], measure=measure, variant="here", **place)


case(Q, "count", shares(0.5, "share of the count"), shares(1.01, "share of the count"))
case(Q, "definition", shares(1.0, "towards the minimum"), shares(0.999, "towards the minimum"))
example = {"problem": "example"}
reached, missed = (each([v], measure="iterations to 1e-3", **example) for v in (5.0, math.inf))
case(Q, "example", reached + shares(1.0, "definition", **example), missed + shares(1.0, "definition", **example))
zero = [each([v], problem="perceptron", measure="zero gradient") for v in (0.0, 1.0)]
case(Q, "perceptron", *zero, Verdict.UNDEFINED)


def gap(value, solver=FWLS):
    return each(
        [value], measure="gap slope", variant="[30, 300]", solver=solver, problem="regression", radius=1.0, note=""
    )


case("non-convex", "gap", gap(-1.0), gap(-0.87))
case("non-convex", "gap-h", gap(-1.0, ON_H), gap(-0.87, ON_H) + gap(-0.87, PRINTED_ON_H))
units = [each([v], measure="share of the bound", variant=u) for v in (0.5, 1.01) for u in (SUM, MEAN, SMALL)]
case("non-convex", "bound", units[0] + units[1] + units[5], units[3] + units[4] + units[5])
number = [each(v, measure="slope", variant="[10, 100]", problem="regression") for v in ((-1.4, -1.5), (-1.0, -1.43))]
case("non-convex", "number", *number)

# ------------------------------------------------------------------ theory and perturbation

T = "theory"
for k in (1, 2, 3):
    case(T, f"bound-{k}", shares(0.9, "share", problem=f"bound ({k})"), shares(1.01, "share", problem=f"bound ({k})"))
for key, of in (("constant-d", "d"), ("constant-alpha", "1/α"), ("constant-delta", "1/δ")):  # noqa: RUF001 - as in the report
    good, bad = (each([v], problem="constants", variant=of, measure="share", rho=1.0) for v in (0.5, 1.01))
    case(T, key, good, bad)


def growing(**powers):
    """Constants that grow with these powers of d, 1/alpha and 1/delta."""
    names = {"d": "d", "alpha": "1/α", "delta": "1/δ"}  # noqa: RUF001 - as in the report
    place = {"problem": "constants", "measure": "constant"}
    return [
        {**place, "variant": names[of], "rho": x, "value": x**power}
        for of, power in powers.items()
        for x in (1.0, 2.0, 4.0)
    ]


good, bad = (growing(d=1.0, alpha=power, delta=0.0) for power in (2.05, 3.07))
case(T, "constant-growth", good, bad, Verdict.OPEN)  # growth below a bound does not refute it
case(T, "lemma-1", shares(1.0, "ratio", problem="lemma 1"), shares(1.01, "ratio", problem="lemma 1"))
for key, kind in (("lemma-2", "printed"), ("lemma-2-one", "one-sided"), ("lemma-2-two", "two-sided")):
    good, bad = (each([v], problem="lemma 2", measure=kind, t=10) for v in (0.09, 0.11))
    case(T, key, good, bad)
case(T, "lemma-3", shares(1.0, "holds", problem="lemma 3"), shares(0.0, "holds", problem="lemma 3"))
convex = {"problem": "strong convexity", "set": "Schatten-1.5"}
case(T, "alpha-schatten", shares(1.0, "largest norm", **convex), shares(1.01, "largest norm", **convex))
same = {"problem": "normalised gradient"}
case(T, "normalised", shares(1.0, "same", **same), shares(0.0, "same", **same))
group = [each([v], problem="group oracle", measure="source") for v in (1.0, 0.5)]
case(T, "group", *(rows + each([1.0], problem="group oracle", measure="corrected") for rows in group))
on_h = {"problem": "least squares", "solver": "h, ε = 0.001 f*"}
case("perturbation", "rate", slopes(-2.0, **on_h), slopes(-1.87, **on_h))
end = [each([v], measure="end", rho=0.5, **on_h) for v in (1.0, 1.55)]
case("perturbation", "reached", *end, Verdict.OPEN)


def gain(plain, perturbed):
    """Iterations to 1e-3 of f* = 1 on f and on h."""
    rows = [{"measure": "error", "solver": "f itself", "rho": 0.5, "t": plain, "value": 1e-4, "seed": 0}]
    rows += [{"measure": "error", "rho": 0.5, "t": 99, "value": 1e-3, "seed": 0, **on_h}]
    rows += each([1.0], measure="end", rho=0.5, **on_h)
    return rows + each([perturbed], measure="iterations to ε", rho=0.5, radius=1.0, **on_h)


case("perturbation", "gain", gain(20, 10), gain(10, 10))

# ------------------------------------------------------------------ beyond the paper


def vertices(count):
    return [{"measure": "vertices", "set": "l₁", "solver": PA, "t": 5, "value": count}]


def race(measure, of):
    place = {"problem": "least squares", "set": "l₂"}
    return [{"solver": s, "measure": measure, "value": v, "note": s, **place} for s, v in of.items()]


B = "beyond"
case(B, "vertices", vertices(6.0), vertices(7.0))
case(
    B,
    "corrective",
    race("passes", {"PA": 100.0, "corrective PA": 10.0}),
    race("passes", {"PA": 5.0, "corrective PA": 10.0}),
)
case(B, "auto", race("time", {"PA": 1.0, "auto": 1.5}), race("time", {"PA": 1.0, "auto": 2.25}))
over = [
    [{"problem": "certificate", "set": "l₂", "solver": "PA", "measure": "bound above minimum", "value": v}]
    for v in (0.0, 1e-9)
]
case(B, "certificates", *over)
