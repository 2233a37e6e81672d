"""The sentence that each bad input gets."""

import math
import re

import numpy as np
import pytest

from projfree.sets import Box, GroupBall, LpBall, OracleSet, SchattenBall, Simplex, Weighted

BALL = LpBall(2, 1)
SENTENCES = [
    (lambda: LpBall(0.5, 1), "`LpBall(p=...)` must be at least 1, got 0.5."),
    (lambda: LpBall(math.nan, 1), "`LpBall(p=...)` must be at least 1, got nan."),
    (lambda: LpBall(2, 0), "`LpBall(radius=...)` must be positive and finite, got 0."),
    (lambda: LpBall(2, math.inf), "`LpBall(radius=...)` must be positive and finite, got inf."),
    (lambda: LpBall("2", 1), "`LpBall(p=...)` must be a real number, got '2' of type str."),
    (lambda: GroupBall(0.9, 1, 1), "`GroupBall(p=...)` must be at least 1, got 0.9."),
    (lambda: GroupBall(1, 0, 1), "`GroupBall(q=...)` must be at least 1, got 0."),
    (lambda: GroupBall(1, 1, -2.0), "`GroupBall(radius=...)` must be positive and finite, got -2.0."),
    (lambda: SchattenBall(0, 1), "`SchattenBall(p=...)` must be at least 1, got 0."),
    (lambda: SchattenBall(1, math.nan), "`SchattenBall(radius=...)` must be positive and finite, got nan."),
    (lambda: Simplex(-1), "`Simplex(radius=...)` must be positive and finite, got -1."),
    (lambda: Box(1.0, 0.5), "`Box(lower=...)` must not exceed `upper`, got 1.0 > 0.5."),
    (lambda: Box(0.0, [1.0, -1.0]), "`Box(lower=...)` must not exceed `upper`, got 0.0 > -1.0 at index 1."),
    (lambda: Box(0.0, np.inf), "`Box(upper=...)` must be finite, got inf at index ()"),
    (lambda: Box(np.zeros(2), np.ones(3)), "`Box(lower=..., upper=...)` need shapes that fit together"),
    (lambda: Box(np.zeros(2), 1.0).lmo(np.ones(3)), "`Box` has bounds of shape (2,)"),
    (lambda: Weighted(BALL, [1.0, 0.0]), "`Weighted(weights=...)` must be positive, got 0.0; drop that feature."),
    (lambda: Weighted(BALL, [1.0, np.nan]), "`Weighted(weights=...)` must be finite, got nan at index 1"),
    (lambda: Weighted(Simplex(), 2.0), "`Weighted(ball=...)` must be a norm ball such as LpBall"),
    (lambda: Weighted(BALL, [1.0, 2.0]).lmo(np.ones(3)), "`Weighted` has weights of shape (2,)"),
    (lambda: GroupBall(2, 1, 1).lmo(np.ones(3)), "`GroupBall` needs matrices (groups x entries), got shape (3,)"),
    (lambda: SchattenBall(1, 1).norm(np.ones((2, 2, 2))), "`SchattenBall` needs matrices (rows x columns)"),
    (lambda: Weighted(GroupBall(2, 1, 1), 2.0).project(np.ones((2, 2))), "Weighted(ball=GroupBall(p=2.0"),
    (lambda: OracleSet(lambda g: g * math.nan, name="bad").lmo(np.ones(2)), "`lmo(g)` of bad must be finite"),
    (lambda: OracleSet(3), "`OracleSet(lmo=...)` must be a function, got int."),
    (lambda: OracleSet(BALL.lmo, 3.0), "`OracleSet(support=...)` must be a function, got float."),
    (lambda: OracleSet(BALL.lmo).contains(np.ones(2)), "OracleSet(lmo=lmo) cannot tell whether it contains a point"),
    (lambda: OracleSet(BALL.lmo, name="Disc").project(np.ones(2)), "Disc has no projection"),
    (lambda: OracleSet(lambda g: g[:1], name="Short").lmo(np.ones(2)), "`lmo(g)` of Short must have the shape (2,)"),
    (lambda: BALL.lmo(np.array(["a"])), "`w` must hold real numbers, got dtype <U1"),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=[s[:60] for _, s in SENTENCES])
def test_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=f"^{re.escape(sentence)}"):
        call()


SOME = [LpBall(1.5, 1), GroupBall(2, 1, 1), SchattenBall(1, 1), Simplex(), Box(0, 1), Weighted(BALL, 2.0)]


@pytest.mark.parametrize("C", SOME, ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("call", ["lmo", "project"])
def test_not_finite(C, bad, call):
    w = np.ones((2, 3))
    w[1, 2] = bad
    argument = {"lmo": "g", "project": "w"}[call]
    sentence = (
        f"`{call}({argument})` must be finite, got {bad} at index (1, 2); "
        "the function or the step that made it has overflowed."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        getattr(C, call)(w)
    assert not C.contains(w)
