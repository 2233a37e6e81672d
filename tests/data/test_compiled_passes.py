"""Compiled passes agree with the NumPy steps they stand for to 1e-13 of the absolute terms, whatever the storage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from projfree.data import layout, native
from projfree.data.native.arguments import MOST, MOST_OUTPUTS
from projfree.data.rows import FormImages, Pass
from projfree.losses import (
    LOSSES,
    BiWeight,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
)
from projfree.numerics.forms import form_of, register
from projfree.objectives.row_steps import DerivativeSums, SlopeSums, TangentSums, ValueSum

N, D, ROWS = 2_101, 11, 1_024  # no multiple of any tile, and three blocks
BLOCKS = -(-N // ROWS)
TOL = 1e-13
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, D))
WEIGHT = RNG.uniform(size=N) / N
ELEMENTWISE = [
    Squared(),
    Logistic(),
    SquaredSigmoid(),
    BiWeight(0.7),
    Huber(0.8),
    SquaredHinge(),
    Quantile(0.7, 0.4),
    Poisson(),
    Gamma(),
]
THIN = X * (X > 0.3)
STORAGES = {
    "C": X,
    "F": np.asfortranarray(X),
    "C single": X.astype(np.float32),
    "F single": np.asfortranarray(X.astype(np.float32)),
    "CSR": sp.csr_array(THIN),
    "CSR long": sp.csr_array(THIN),
    "CSR single": sp.csr_array(THIN.astype(np.float32)),
}
STORAGES["CSR long"].indices = STORAGES["CSR long"].indices.astype(np.int64)
STORAGES["CSR long"].indptr = STORAGES["CSR long"].indptr.astype(np.int64)


@dataclass
class Case:
    """A pass with everything that it may have, or nothing."""

    loss: Loss
    k: int = 0
    weighted: bool = True
    intercepts: bool = True
    points: int = 3
    m: int = 2
    base: bool = True
    offsets: bool = True
    size: float = 1.0

    def build(self, step=TangentSums, seed=0):
        rng = np.random.default_rng(seed)
        outputs = (self.k,) if self.k else ()
        b = tuple(rng.standard_normal(outputs) if self.intercepts else None for _ in range(self.points))
        if step is TangentSums:
            own = TangentSums(self.loss, b)
        elif step is FormImages:
            own = FormImages()
        else:
            own = step(self.loss, b[0] if step is ValueSum else np.asarray(rng.standard_normal(outputs)))
        coefficients = rng.standard_normal((self.points, self.m))
        coefficients[-1, :1] = 0.0
        return Pass(
            own,
            N,
            self.targets(rng),
            WEIGHT if self.weighted else None,
            tuple(self.size * rng.standard_normal((D, *outputs)) for _ in range(self.m)),
            coefficients,
            rng.standard_normal((N, *outputs)) if self.base else None,
            np.array([1.0, -0.4, 0.0])[: self.points] if self.base else np.zeros(self.points),
            tuple(np.full((N, *outputs), np.nan) if j != 1 else None for j in range(self.points)),
            outputs,
            rng.standard_normal((self.m, *outputs)) if self.offsets else None,
        )

    def targets(self, rng):
        if self.loss.coupled:
            return np.concatenate([np.arange(self.k), rng.integers(0, self.k, N - self.k)])
        y = rng.standard_normal((N, self.k) if self.k else N)
        y = np.abs(y) + 0.1 if self.loss.domain[0] >= 0.0 else y
        return np.where(y > 0, 1.0, -1.0) if self.loss.labels else y


def in_numpy(pass_, table):
    """Sums, adjoint, kept images, and the sums of the absolute terms of the adjoint."""
    A = table.toarray() if sp.issparse(table) else table
    A = A.astype(np.float64)
    residual, sums = pass_(slice(0, N), *(A @ w for w in pass_.vectors))
    kept = [None if store is None else store.copy() for store in pass_.keep]
    if residual is None:
        return sums, None, kept, None
    return sums, A.T @ residual, kept, np.abs(A).T @ np.abs(residual)


def work_on(prepared, table):
    if sp.issparse(table):
        return prepared.csr(table.data, table.indices, table.indptr)
    return prepared.dense(table)


def agrees(pass_, table):
    sums, gradient, kept, terms = in_numpy(pass_, table)
    for store in pass_.keep:
        if store is not None:
            store[:] = np.nan
    prepared = native.prepare(pass_, D, ROWS, BLOCKS)
    work = work_on(prepared, table)
    for block in range(BLOCKS):
        work(block, block + 1)
    found, adjoint = prepared.total()
    for store, due in zip(pass_.keep, kept, strict=True):
        if store is not None:
            np.testing.assert_allclose(store, due, rtol=0, atol=TOL * np.abs(due).max())
    assert (adjoint is None) == (gradient is None)
    if gradient is not None:
        assert adjoint.shape == gradient.shape
        assert (np.abs(adjoint - gradient) <= 2 * TOL * terms).all()
        k = pass_.outputs[0] if pass_.outputs else 1
        assert len(found) == layout.count(k, len(pass_.scale))
        scale = absolute_terms(pass_, sums, k)
        assert (np.abs(found - sums) <= 2 * TOL * scale).all(), (found - sums) / scale


def absolute_terms(pass_, sums, k):
    """For each sum of a tangent that of the sizes of its terms, or a bound on it."""
    scale = np.abs(sums)
    scale[layout.ALONG] = sums[layout.ALONG_SIZE]
    by_output = layout.SCALARS + np.arange(layout.PER_OUTPUT * k).reshape(layout.PER_OUTPUT, k)
    scale[by_output[layout.SLOPE]] = sums[by_output[layout.SLOPE_SIZE]]
    s = np.broadcast_to(1 / N if pass_.weight is None else pass_.weight, N)
    scale[by_output[layout.MEAN_IMAGE]] = s @ np.abs(pass_.keep[0]).reshape(N, k)
    return scale


@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_one_output(loss):
    agrees(Case(loss).build(), X)


@pytest.mark.parametrize("storage", STORAGES)
def test_storages(storage):
    agrees(Case(Logistic()).build(), STORAGES[storage])


@pytest.mark.slow  # one kernel after the other is compiled
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_every_loss_on_every_storage(loss, storage):
    agrees(Case(loss).build(), STORAGES[storage])


@pytest.mark.parametrize("k", [1, 3, 5, 8, MOST_OUTPUTS])
@pytest.mark.parametrize("loss", [*ELEMENTWISE, Softmax()], ids=repr)
def test_several_outputs(loss, k):
    if not (loss.coupled and k == 1):
        agrees(Case(loss, k).build(), X)


@pytest.mark.parametrize("storage", ["F", "C single", "F single"])
def test_several_outputs_of_other_layouts(storage):
    agrees(Case(Huber(0.8), 5).build(), STORAGES[storage])


def test_several_outputs_do_not_depend_on_the_layout():
    """A tile that is copied and one that is read where it is give the same bits."""
    found = []
    for storage in ("C", "F"):
        prepared = native.prepare(Case(Huber(0.8), 5).build(), D, ROWS, BLOCKS)
        prepared.dense(STORAGES[storage])(0, BLOCKS)
        found.append(prepared.total())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("k", [0, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercepts", [False, True])
@pytest.mark.parametrize("points", [1, 2, 3])
@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_what_a_pass_may_have(k, weighted, intercepts, points, m):
    for base in (False, True):
        for offsets in (False, True):
            agrees(Case(Huber(0.8), k, weighted, intercepts, points, m, base, offsets).build(), X)


@pytest.mark.parametrize("size", [1e-6, 30.0, 1e4])
def test_softmax_of_any_size(size):
    """Beyond 280 exponentials would leave the range; rows are then shifted by their largest entry."""
    agrees(Case(Softmax(), 5, size=size).build(), X)


@pytest.mark.parametrize("storage", ["C", "F", "CSR"])
@pytest.mark.parametrize(("step", "loss"), [(FormImages, Squared()), (ValueSum, Logistic()), (SlopeSums, Logistic())])
def test_steps_without_adjoint(step, loss, storage):
    pass_ = Case(loss).build(step)
    agrees(pass_, STORAGES[storage])
    sums = in_numpy(pass_, STORAGES[storage])[0]
    prepared = native.prepare(pass_, D, ROWS, BLOCKS)
    work_on(prepared, STORAGES[storage])(0, BLOCKS)
    np.testing.assert_allclose(prepared.total()[0], sums, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize(
    ("step", "loss", "k"),
    [(ValueSum, loss, k) for loss in ELEMENTWISE for k in (0, 1, 5)]
    + [(ValueSum, Softmax(), 5), (FormImages, Squared(), 0), (FormImages, Squared(), 3)]
    + [(SlopeSums, loss, k) for loss in (Logistic(), Huber(0.8)) for k in (0, 3, 20)],
)
def test_folds_over_known_images(step, loss, k, m, weighted):
    pass_ = Case(loss, k, weighted, m=m).build(step)
    images = [np.random.default_rng(q).standard_normal((N, *pass_.outputs)) for q in range(m)]
    _, due = pass_(slice(0, N), *images)
    kept = [None if store is None else store.copy() for store in pass_.keep]
    prepared = native.prepare(pass_, D, ROWS, BLOCKS)
    prepared.fold(images)(0, BLOCKS)
    sums, adjoint = prepared.total()
    assert adjoint is None
    size = np.abs(due)
    if step is SlopeSums:
        size = np.concatenate([np.split(size, 3)[2], *np.split(size, 3)[1:]])
    assert (np.abs(sums - due) <= 2 * TOL * size).all()
    for store, own in zip(pass_.keep, kept, strict=True):
        if store is not None:
            np.testing.assert_allclose(store, own, rtol=0, atol=TOL * np.abs(own).max())


@pytest.mark.parametrize("storage", ["C", "F"])
@pytest.mark.parametrize("k", [0, 5])
def test_chunks_add_up_and_may_begin_within_a_block(k, storage):
    pass_, table = Case(Logistic(), k).build(), STORAGES[storage]
    whole, parts = (native.prepare(pass_, D, ROWS, BLOCKS) for _ in range(2))
    whole.dense(table)(0, BLOCKS)
    for first, last in ((0, 512), (512, 1_536), (1_536, N)):
        chunk = np.array(table[first:last], order=storage)
        parts.dense(chunk, first)(first // ROWS, -(-last // ROWS))
    for one, two in zip(whole.total(), parts.total(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_read_only_data_are_compiled_once():
    pass_ = Case(Logistic()).build()
    agrees(pass_, X)
    (kernel,) = (own for key, own in native.prepared._KERNELS.items() if key[:3] == ("c_blocks", "tangent", Logistic))
    known = list(kernel.signatures)
    frozen, y, base = X.copy(), pass_.y.copy(), pass_.base.copy()
    for array in (frozen, y, base):
        array.flags.writeable = False
    agrees(Pass(**{**vars(pass_), "y": y, "base": base}), frozen)
    assert kernel.signatures == known


class Triple(Squared):
    """Three times the square: what is compiled for `Squared` is wrong for it."""

    def value(self, u, y):
        return 3.0 * super().value(u, y)

    def derivative(self, u, y):
        return 3.0 * super().derivative(u, y)

    def second(self, u, y):
        return 3.0 * super().second(u, y)


class Twofold(TangentSums):
    """A step of its own."""


def test_subclasses_inherit_nothing():
    assert form_of(Triple()) is None
    assert native.prepare(Case(Triple()).build(), D, ROWS, BLOCKS) is None
    own = Case(Squared(), points=1).build()
    step = Twofold(Squared(), own.step.b)
    assert native.prepare(Pass(**{**vars(own), "step": step}), D, ROWS, BLOCKS) is None


def test_what_has_no_compiled_form():
    def none(**changes):
        own = Case(Squared()).build()
        return native.prepare(Pass(**{**vars(own), **changes}), D, ROWS, BLOCKS) is None

    own = Case(Squared(), points=1).build()
    assert not none()
    assert none(step=DerivativeSums(Squared()))
    assert none(places=(np.zeros(N, int), np.zeros(N, int)))
    assert none(vectors=("factors", "factors"))
    assert native.prepare(Case(Squared(), MOST_OUTPUTS + 1).build(), D, ROWS, BLOCKS) is None
    assert native.prepare(Case(Squared(), points=1, m=MOST + 1).build(), D, ROWS, BLOCKS) is None
    assert native.prepare(Case(Squared()).build(SlopeSums), D, ROWS, BLOCKS) is None  # it has no slopes
    prepared = native.prepare(own, D, ROWS, BLOCKS)
    assert prepared.dense(np.repeat(X, 2, axis=1)[:, ::2]) is None
    assert prepared.dense(X.astype(np.float16)) is None
    assert prepared.fold([np.zeros(N)] * 2) is None  # a tangent needs the data
    several = native.prepare(Case(Squared(), 3).build(), D, ROWS, BLOCKS)
    assert several.csr(*(getattr(STORAGES["CSR"], name) for name in ("data", "indices", "indptr"))) is None
    with pytest.raises(ValueError, match="`kind` must be one of images"):
        native.register_step(Twofold, "other")


def test_every_loss_of_the_package_is_compiled():
    assert all(form_of(loss()) is not None for loss in LOSSES)


@dataclass(frozen=True)
class Pinball(Loss):
    """A smooth loss with three parameters, which the package does not know."""

    left: float = 0.5
    right: float = 2.0
    centre: float = 0.1

    smoothness = 4.0

    def _side(self, u, y):
        r = u - y - self.centre
        return r, np.where(r > 0, self.right, self.left)

    def value(self, u, y):
        r, side = self._side(u, y)
        return side * r * r - 0.3

    def derivative(self, u, y):
        r, side = self._side(u, y)
        return 2.0 * side * r

    def second(self, u, y):
        return 2.0 * self._side(u, y)[1]

    def targets(self, y):
        return y


def _side(r, left, right):
    return right if r > 0.0 else left


def _pinball(parameters, u, y, value, slope):
    for i in range(len(u)):
        r = u[i] - y[i] - parameters[2]
        side = _side(r, parameters[0], parameters[1])
        value[i] = side * r * r - 0.3
        slope[i] = 2.0 * side * r


@dataclass(frozen=True)
class Norm(Loss):
    """The smoothed Euclidean norm of a row of residuals: coupled, with numbers as targets."""

    coupled = True
    smoothness = 1.0

    def value(self, u, y):
        return np.sqrt(1.0 + np.sum((u - y) ** 2, axis=1))

    def derivative(self, u, y):
        return (u - y) / self.value(u, y)[:, None]

    def second(self, u, y):
        raise NotImplementedError

    def targets(self, y):
        return y


def _norm(parameters, u, y, value, slope):
    for i in range(len(u)):
        total = 1.0
        for c in range(u.shape[1]):
            slope[i, c] = u[i, c] - y[i, c]
            total += slope[i, c] ** 2
        value[i] = np.sqrt(total)
        for c in range(u.shape[1]):
            slope[i, c] /= value[i]


register(Pinball, tile=_pinball, parameters=lambda loss: (loss.left, loss.right, loss.centre))
register(Norm, tile=_norm)


@pytest.mark.parametrize("k", [0, 3])
def test_a_loss_from_outside_brings_its_form(k):
    """Its values may be negative, so the sum of their sizes is not their sum."""
    agrees(Case(Pinball(left=0.25), k).build(), X)


def test_a_coupled_loss_from_outside():
    pass_ = Case(Squared(), 5).build()
    agrees(Pass(**{**vars(pass_), "step": TangentSums(Norm(), pass_.step.b)}), X)
