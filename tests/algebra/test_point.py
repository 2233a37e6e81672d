"""Points form a vector space, and the image of a mixture is A times the mixture, however it came about."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree.algebra import Image, Point, mix
from projfree.algebra.image import MOST_PENDING

ROWS, D = 4, 3
A = np.random.default_rng(0).standard_normal((ROWS, D))

coefficients = st.sampled_from([0.0, 1.0, -1.0, 0.5]) | st.floats(-2.0, 2.0)
vectors = st.lists(st.floats(-10.0, 10.0), min_size=D, max_size=D).map(np.array)


def fresh(w) -> Point:
    w = np.array(w, dtype=float)
    return Point(w, Image.of(w))


def meet(point: Point) -> None:
    """What a pass does to the sources that it meets."""
    for source, _ in point.image.pending():
        source.image = A @ source.vector


def image(point: Point):
    known = point.image.known()
    total = np.zeros(ROWS) if known is None else known
    return total + sum((c * (A @ s.vector) for s, c in point.image.pending()), np.zeros(ROWS))


def assert_same(p: Point, q: Point, size: float = 100.0) -> None:
    np.testing.assert_allclose(p.w, q.w, rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(image(p), image(q), rtol=0, atol=1e-12 * size)


@given(st.data())
def test_image_stays_in_step_through_any_program(data):
    """Mixtures of mixtures, met by passes or settled in between, in any order."""
    pool = [fresh(data.draw(vectors)) for _ in range(3)]
    places = st.integers(0, 10**6).map(lambda i: i % len(pool))
    for _ in range(data.draw(st.integers(1, 12))):
        p, q = pool[data.draw(places)], pool[data.draw(places)]
        match data.draw(st.sampled_from(["mix", "new", "meet", "settle"])):
            case "mix":
                a, b = data.draw(coefficients), data.draw(coefficients)
                new = a * p + b * q
                np.testing.assert_array_equal(new.w, a * p.w + b * q.w)
                pool.append(new)
            case "new":
                pool.append(fresh(data.draw(vectors)))
            case "meet":
                meet(p)
                assert p.settled
            case "settle":
                p.image.settle(image(p))
                assert p.settled
        for point in pool:
            size = 1.0 + np.abs(point.w).max()
            np.testing.assert_allclose(image(point), A @ point.w, rtol=0, atol=1e-9 * size)
            assert len(point.image.pending()) <= MOST_PENDING
            assert len([s for s in point.image.folded() if s.image is not None]) <= 1


@given(vectors, vectors, vectors, coefficients, coefficients)
def test_vector_space(u, v, w, a, b):
    p, q, r = fresh(u), fresh(v), fresh(w)
    assert_same(p + q, q + p)
    assert_same((p + q) + r, p + (q + r))
    assert_same(a * (p + q), a * p + a * q)
    assert_same((a + b) * p, a * p + b * p)
    assert_same(a * (b * p), (a * b) * p)
    assert_same(p - q, p + (-1.0) * q)
    assert_same(mix((a, p), (b, q), (0.5, r)), a * p + b * q + 0.5 * r)


@given(vectors)
def test_what_cancels_has_no_terms_and_needs_no_pass(u):
    for zero in (fresh(u) * 0.0, mix((0.0, fresh(u)), (0.0, fresh(u))), (p := fresh(u)) - p):
        assert zero.settled
        assert not zero.image.terms
        np.testing.assert_array_equal(zero.w, np.zeros(D))
        v = zero + fresh(u)
        assert len(v.image.pending()) == 1
        np.testing.assert_array_equal(image(v), A @ v.w)


def test_mixing_changes_no_part():
    p, q = fresh([1.0, 2.0, 3.0]), fresh([-1.0, 0.0, 1.0])
    meet(q)
    before = [(x.w.copy(), image(x)) for x in (p, q)]
    meet(0.25 * p + 0.75 * q)
    for point, (w, u) in zip((p, q), before, strict=True):
        np.testing.assert_array_equal(point.w, w)
        np.testing.assert_array_equal(image(point), u)


def test_a_pass_over_one_mixture_settles_all_that_share_its_sources():
    v, x = fresh([1.0, 0.0, 2.0]), fresh([0.0, 1.0, 0.0])
    z, elsewhere = 0.5 * x + 0.5 * v, 0.9 * x + 0.1 * v
    meet(z)
    assert elsewhere.settled
    np.testing.assert_allclose(elsewhere.image.known(), A @ elsewhere.w, rtol=1e-14)


def test_many_unmet_vectors_collapse_into_one():
    points = [fresh(row) for row in np.eye(D)]
    two = points[0] + points[1]
    assert len(two.image.pending()) == MOST_PENDING == 2
    three = two + points[2]
    ((source, c),) = three.image.pending()
    assert source.vector is three.w
    assert c == 1.0


def test_known_images_fold_into_one():
    points = [fresh(row) for row in np.eye(D)]
    total = points[0]
    for point in points:
        meet(point)
        total = 0.5 * total + 0.5 * point
    assert len(total.image.folded()) == 1
    np.testing.assert_allclose(total.image.known(), A @ total.w, rtol=1e-14)


@pytest.mark.parametrize("kind", [np.float64, np.float32, int, lambda x: np.array(x)], ids=["f8", "f4", "int", "0-d"])
def test_numpy_scalars_defer_to_the_point(kind):
    for product in (kind(2) * fresh([1.0, 2.0, 3.0]), fresh([1.0, 2.0, 3.0]) * kind(2)):
        assert isinstance(product, Point)
        np.testing.assert_array_equal(product.w, [2.0, 4.0, 6.0])


def test_intercepts_mix_by_mass_and_vertices_have_none():
    x, y, vertex = fresh(np.ones(D)), fresh(np.ones(D)), fresh(np.ones(D))
    assert vertex.hint() is None
    x.anchored(np.array(2.0))
    y.anchored(np.array(6.0))
    assert (0.25 * x + 0.75 * vertex).hint() == 2.0
    assert (0.75 * x + 0.25 * y).hint() == pytest.approx(3.0)
    assert (vertex + vertex).hint() is None
    assert (1.5 * x - 0.5 * y).hint() == pytest.approx(3.0), "a point that is taken off is a neighbour too"


def test_leaning_on_a_neighbour():
    x, z, vertex = fresh(np.ones(D)), fresh(np.ones(D)), fresh(np.ones(D))
    z.anchored(np.array([1.0, -1.0]))
    x.lean_on(vertex)
    assert x.hint() is None
    x.lean_on(z)
    np.testing.assert_array_equal(x.hint(), [1.0, -1.0])
    x.anchored(np.array([5.0, 5.0]))
    x.lean_on(z)
    np.testing.assert_array_equal(x.hint(), [5.0, 5.0])


def test_a_mixture_claims_no_value():
    x = fresh(np.ones(D))
    x.value = 7.0
    assert (1.0 * x).value is None
