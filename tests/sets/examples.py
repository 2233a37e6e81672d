"""Examples of every set of the package, and strategies that draw one with arrays of a shape that it takes."""

from __future__ import annotations

from itertools import permutations
from math import inf

import numpy as np
from hypothesis import strategies as st

from projfree import sets
from projfree.sets import GroupBall, LpBall, Positive, SchattenBall, Weighted, WithUnpenalized
from projfree.testing import sets as laws

#: Exponents of norms, next to one and so large that powers overflow among them.
EXPONENTS = (1.0, 1.001, 1.1, 1.5, 2.0, 3.0, 500.0, inf)


def examples(cls):
    """A few sets of a class of the package, of every kind that it has."""
    r, weights, disc, cube = 1.5, np.array([0.1, 1.5, 40.0]), LpBall(2, 1), LpBall(inf, 1)
    lp = [LpBall(p, r) for p in EXPONENTS]
    pairs = [(2, 1), (inf, 1), (2, inf), *list(permutations(EXPONENTS, 2))[::9]]
    groups = [GroupBall(p, q, r, labels) for p, q in pairs for labels in (None, (0, 1, 0))]
    functions = {"contains": disc.contains, "project": disc.project, "diameter": 2.0}
    found = {
        LpBall: lp,
        GroupBall: groups,
        SchattenBall: [SchattenBall(p, r) for p in EXPONENTS],
        sets.Simplex: [sets.Simplex(), sets.Simplex(r)],
        sets.Box: [sets.Box(-1, 1), sets.Box(1, 1), sets.Box(weights - weights[::-1].max(), weights)],
        Weighted: [Weighted(ball, weights) for ball in (*lp, groups[0])] + [Weighted(lp[3], 2)],
        Positive: [*map(Positive, (*lp, groups[0], Weighted(lp[3], weights)))],
        WithUnpenalized: [WithUnpenalized(lp[3], (0,), 2), WithUnpenalized(lp[0], (1,), 0.5)],
        sets.KSupportBall: [sets.KSupportBall(k, r) for k in (1, 2, 3, 50)],
        sets.OwlBall: [sets.OwlBall(w, r) for w in (np.arange(12, 0, -1), np.arange(2, -1, -1), 1 / np.arange(1, 8))],
        sets.Birkhoff: [sets.Birkhoff()],
        sets.Shifted: [sets.Shifted(lp[0], 2.0), sets.Shifted(lp[4], weights), sets.Shifted(sets.Simplex(), -1.0)],
        sets.OracleSet: [sets.OracleSet(disc.lmo, disc.support, **functions), sets.OracleSet(cube.lmo, polytope=True)],
    }
    return tuple(found[cls])


@st.composite
def cases(draw, cls, **settings):
    """One of the examples of a class, or one with other exponents, and arrays as `laws.cases` draws them."""
    C, radius = draw(st.sampled_from(examples(cls))), draw(st.sampled_from((0.1, 1.5, 40.0)))
    if cls in (LpBall, SchattenBall) and draw(st.booleans()):
        C = cls(draw(st.floats(1, 12)), radius)
    if cls is GroupBall and draw(st.booleans()):
        exponents = st.sampled_from(EXPONENTS) | st.floats(1, 12)
        labels = (None, (0, 1, 0), (0, 0, 1), (2, 0, 1, 0), (1, 1, 1, 1), (0, 5, 5, 0, 0, 3, 5))
        C = GroupBall(draw(exponents), draw(exponents), radius, draw(st.sampled_from(labels)))
    return draw(laws.cases(C, **settings))
