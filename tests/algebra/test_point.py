"""Points are values and form a vector space; the image of a mixture is A times the mixture, however it came about."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from projfree import as_data
from projfree.algebra import Point, frozen, mix
from projfree.algebra.point import MOST_PARTS
from projfree.data.rows import FormPredictions, Step
from projfree.data.workspace import MAX_PREDICTIONS

ROWS, D = 4, 3
A = np.random.default_rng(0).standard_normal((ROWS, D))
TABLES = {"dense": A, "sparse": sp.csr_array(A)}

coefficients = st.sampled_from([0.0, 1.0, -1.0, 0.5]) | st.floats(-2.0, 2.0)
vectors = st.lists(st.floats(-10.0, 10.0), min_size=D, max_size=D).map(np.array)


@dataclass(frozen=True)
class WholeImage(Step):
    """The images themselves: numbers for every row, which only a test may ask for."""

    def block(self, rows, *images):
        return None, np.concatenate(images)


def fresh(w, intercept=None) -> Point:
    return Point(frozen(np.array(w, dtype=float)), None if intercept is None else np.asarray(intercept))


def image(point: Point):
    """The image through the points that a mixture knows."""
    return sum((c * (A @ part.w) for c, part in point.of or ((1.0, point),)), np.zeros(ROWS))


def extent(*points: Point) -> float:
    """The size of the numbers that the images of the points are made of."""
    parts = [(c, x) for p in points for c, x in (*p.of, (1.0, p))]
    return 1.0 + max(abs(c) * float(np.abs(x.w).max()) for c, x in parts)


def assert_same(p: Point, q: Point, size: float = 100.0) -> None:
    np.testing.assert_allclose(p.w, q.w, rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(image(p), image(q), rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("table", TABLES)
@given(data=st.data())
def test_image_stays_in_step_through_any_program(table, data):
    """Mixtures of mixtures, read alone or together or only held in between, in any order."""
    workspace = as_data(TABLES[table], np.zeros(ROWS)).open()
    pool = [fresh(data.draw(vectors)) for _ in range(3)]
    places = st.integers(0, 10**6).map(lambda i: i % len(pool))
    for _ in range(data.draw(st.integers(1, 12))):
        p, q = pool[data.draw(places)], pool[data.draw(places)]
        match data.draw(st.sampled_from(["mix", "new", "sweep", "both", "hold", "fold", "alone"])):
            case "mix":
                a, b = data.draw(coefficients), data.draw(coefficients)
                new = a * p + b * q
                np.testing.assert_array_equal(new.w, a * p.w + b * q.w)
                pool.append(new)
            case "new":
                pool.append(fresh(data.draw(vectors)))
            case "sweep":
                workspace.sweep(FormPredictions(), (p,))
            case "both":
                workspace.sweep(FormPredictions(), (p, q) if p is not q else (p,))
            case "hold":
                workspace.fold(FormPredictions(), (p,))
                assert workspace.holds(p)
            case "fold":
                images = workspace.fold(WholeImage(), (p, q))
                np.testing.assert_allclose(images, np.concatenate([A @ p.w, A @ q.w]), rtol=0, atol=1e-9 * extent(p, q))
            case "alone":
                pool.append(p.alone(None))
        for point in pool:
            np.testing.assert_allclose(image(point), A @ point.w, rtol=0, atol=1e-9 * extent(point))
            assert len(point.of) <= MOST_PARTS
        assert len(workspace._images) <= MAX_PREDICTIONS
    for point in pool:
        found = workspace.fold(WholeImage(), (point,))
        np.testing.assert_allclose(found, A @ point.w, rtol=0, atol=1e-9 * extent(point))


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
def test_what_cancels_has_no_parts_and_needs_no_pass(u):
    for zero in (fresh(u) * 0.0, mix((0.0, fresh(u)), (0.0, fresh(u))), (p := fresh(u)) - p):
        workspace = as_data(A, np.zeros(ROWS)).open()
        assert workspace.holds(zero)
        assert not zero.of
        np.testing.assert_array_equal(zero.w, np.zeros(D))
        np.testing.assert_array_equal(workspace.fold(WholeImage(), (zero,)), np.zeros(ROWS))
        assert workspace.rows_read == 0
        v = zero + fresh(u)
        np.testing.assert_allclose(workspace.fold(WholeImage(), (v,)), A @ v.w, rtol=1e-14, atol=1e-300)
        assert workspace.rows_read == (ROWS if v.w.any() else 0)


def test_points_that_are_held_make_all_their_mixtures_free():
    v, x = fresh([1.0, 0.0, 2.0]), fresh([0.0, 1.0, 0.0])
    z, elsewhere = 0.5 * x + 0.5 * v, 0.9 * x + 0.1 * v
    for held in ((x, v), (z, elsewhere)):  # two mixtures are read through their parts, which others share
        workspace = as_data(A, np.zeros(ROWS)).open()
        workspace.fold(FormPredictions(), held)
        assert workspace.rows_read == ROWS
        for point in (z, elsewhere, 0.3 * elsewhere + 0.7 * x):
            assert workspace.holds(point)
            np.testing.assert_allclose(workspace.fold(WholeImage(), (point,)), A @ point.w, rtol=1e-14)
        assert workspace.rows_read == ROWS


def test_intercepts_mix_by_mass_and_vertices_have_none():
    x, y, vertex = fresh(np.ones(D), 2.0), fresh(np.ones(D), 6.0), fresh(np.ones(D))
    assert vertex.intercept is None
    assert (0.25 * x + 0.75 * vertex).intercept == 2.0
    assert (0.75 * x + 0.25 * y).intercept == pytest.approx(3.0)
    assert (vertex + vertex).intercept is None
    assert (0.0 * x + 1.0 * vertex).intercept is None
    assert (1.5 * x - 0.5 * y).intercept == pytest.approx(3.0), "a point that is taken off is a neighbour too"


def test_an_intercept_that_was_found_replaces_the_average():
    x, y = fresh(np.ones(D), [1.0, -1.0]), fresh(-np.ones(D), [3.0, 5.0])
    z = mix((0.5, x), (0.5, y), intercept=np.array([7.0, 8.0]))
    np.testing.assert_array_equal(z.intercept, [7.0, 8.0])
    assert z.of == ((0.5, x), (0.5, y))
    np.testing.assert_array_equal(x.intercept, [1.0, -1.0])


def points():
    x, v = fresh([1.0, 0.0, 2.0], 0.5), fresh([0.0, 1.0, 0.0])
    return {"new": x, "mixture": 0.5 * x + 0.5 * v, "alone": (x + v).alone(None)}


@pytest.mark.parametrize("kind", ["new", "mixture", "alone"])
def test_nothing_can_be_assigned(kind):
    point = points()[kind]
    for field in fields(point):
        with pytest.raises(FrozenInstanceError):
            setattr(point, field.name, getattr(point, field.name))
    with pytest.raises((AttributeError, TypeError)):
        point.value = 7.0
    with pytest.raises(ValueError, match="read-only"):
        point.w[0] = 7.0


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_a_copy_is_a_point_of_its_own(again):
    x, v = fresh([1.0, 0.0, 2.0], 0.5), fresh([0.0, 1.0, 0.0])
    z = 0.25 * x + 0.75 * v
    workspace = as_data(A, np.zeros(ROWS)).open()
    workspace.fold(FormPredictions(), (x, v))
    x2, z2 = again((x, z))
    np.testing.assert_array_equal(z2.w, z.w)
    assert z2.intercept == z.intercept
    assert [c for c, _ in z2.of] == [0.25, 0.75]
    assert z2.of[0][1].handle is x2.handle, "what was shared before is shared again"
    assert not workspace.holds(x2)
    assert not workspace.holds(z2), "another process may hold other numbers"
    np.testing.assert_array_equal(workspace.fold(WholeImage(), (x2,)), A @ x.w)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_a_copy_is_read_only_too(again):
    with pytest.raises(ValueError, match="read-only"):
        again(fresh([1.0, 0.0, 2.0])).w[0] = 7.0
