"""The workspace of a run: what it reads, which images it keeps, and that nothing goes wrong half-way."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import Entries, as_data
from projfree.algebra import Point, mix
from projfree.data.gram import Moments
from projfree.data.rows import FormPredictions, Step
from projfree.data.workspace import MAX_PREDICTIONS

N, D = 60, 4
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((N, D)), RNG.standard_normal(N)
PLACES = Entries(RNG.integers(0, D, N), np.zeros(N, int), (D, 1))


def table_of(places):
    table = np.zeros((N, D))
    table[np.arange(N), places.rows] = 1.0
    return table


#: The data and the same linear map as a table.
STORAGES = {
    "dense": (partial(as_data, X), X),
    "sparse": (partial(as_data, sp.csr_array(X)), X),
    "standardized": (partial(as_data, X, centre=np.ones(D), scale=np.full(D, 2.0)), (X - 1.0) / 2.0),
    "entries": (partial(as_data, PLACES), table_of(PLACES)),
}
KEEPING = ("sparse", "entries")


@dataclass(frozen=True)
class Keeps(Step):
    """Copies of the images that it was given; the first is the residual."""

    seen: list = field(default_factory=list)
    fails: bool = False

    def block(self, rows, *images):
        if self.fails:
            raise KeyboardInterrupt
        self.seen.append([image.copy() for image in images])
        return images[0], np.array([image.sum() for image in images])


@pytest.fixture(params=STORAGES)
def kind(request):
    return request.param


@pytest.fixture
def data(kind):
    return STORAGES[kind][0](y=Y)


@pytest.fixture
def points(data):
    rng = np.random.default_rng(1)
    return [Point(rng.standard_normal(data.shape(()))) for _ in range(MAX_PREDICTIONS + 2)]


def image(kind, x):
    return STORAGES[kind][1] @ np.ravel(x.w)


def sees(workspace, kind, *points, way="fold"):
    """The images that a step is given are those of the points."""
    step = Keeps()
    found = getattr(workspace, way)(step, points)
    (given,) = step.seen
    for u, x in zip(given, points, strict=True):
        np.testing.assert_allclose(u, image(kind, x), rtol=1e-12, atol=1e-12)
    sums = found[0] if way == "sweep" else found
    np.testing.assert_allclose(sums, [u.sum() for u in given], rtol=1e-12, atol=1e-12)
    if way == "sweep":
        np.testing.assert_allclose(np.ravel(found[1]), STORAGES[kind][1].T @ image(kind, points[0]), rtol=1e-11)


def test_a_sweep_is_one_read_and_keeps_images_where_that_pays(data, kind, points):
    workspace = data.open()
    sees(workspace, kind, *points[:3], way="sweep")
    assert workspace.rows_read == N
    assert data.caches_predictions == (kind in KEEPING)
    assert [workspace.holds(x) for x in points[:4]] == [data.caches_predictions] * 3 + [False]


def test_folds_read_what_is_missing_at_once(data, kind, points):
    workspace = data.open()
    assert not workspace.holds(points[0])
    sees(workspace, kind, *points[:2])
    assert workspace.rows_read == N, "both images in one read"
    sees(workspace, kind, points[1], points[0])
    sees(workspace, kind, *points[:3])
    assert workspace.rows_read == 2 * N, "only the third one was missing"
    assert all(workspace.holds(x) for x in points[:3])


def test_mixtures_of_held_points_cost_nothing(data, kind, points):
    workspace, (a, b, c, *_) = data.open(), points
    workspace.fold(FormPredictions(), [a, b])
    assert workspace.rows_read == N
    x = mix((0.25, a), (0.75, b))
    assert workspace.holds(x)
    sees(workspace, kind, x, 2.0 * x - a)
    assert workspace.rows_read == N
    assert not workspace.holds(x + c)
    sees(workspace, kind, x + c, x - c)
    assert workspace.rows_read == 2 * N, "two mixtures, one new point"
    assert workspace.holds(c)


@dataclass(frozen=True)
class SquaredImage(Step):
    """The squares of the image as the weights of rows."""

    def block(self, rows, *images):
        return images[0][:, None] ** 2, np.zeros(0)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "standardized"])
def test_second_moments_are_one_read_besides_that_for_predictions(data, kind, points, held):
    workspace, x = data.open(), points[0]
    if held:
        workspace.fold(FormPredictions(), [x])
    before = workspace.rows_read
    found = workspace.moments(SquaredImage(), x, Moments(1, centred=False))
    assert workspace.rows_read == before + (1 if held else 2) * N
    z = np.column_stack([STORAGES[kind][1], np.ones(N)])
    np.testing.assert_allclose(found, [(z.T * image(kind, x) ** 2) @ z], rtol=1e-11, atol=1e-11)


def test_zero_is_known(data, kind):
    workspace, zero = data.open(), Point(np.zeros(data.shape(())))
    assert workspace.holds(zero)
    sees(workspace, kind, zero)
    assert workspace.rows_read == 0


@pytest.mark.parametrize("way", ["sweep", "fold"])
def test_an_interrupt_leaves_it_as_it_was(data, kind, points, way):
    workspace, (a, b, *_) = data.open(), points
    workspace.fold(FormPredictions(), [a])
    with pytest.raises(KeyboardInterrupt):
        getattr(workspace, way)(Keeps(fails=True), [a, b])
    assert workspace.holds(a)
    if way == "sweep":
        assert workspace.rows_read == N, "a read that failed does not count"
        assert not workspace.holds(b)
    sees(workspace, kind, a, b)
    assert workspace.rows_read == 2 * N
