"""Checks of data backends: runs must give the same results as on the same rows in memory.

The tests of a new data class call `check_backend`::

    from projfree.testing.backends import check_backend

    def test_my_rows():
        check_backend(lambda X, y, weight: MyData(X, y, weight))
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from projfree import losses, solvers, steps
from projfree.checks import Array
from projfree.data import Data, as_data
from projfree.data.rows import Rows, Step
from projfree.losses.base import LogLinkLoss, Loss
from projfree.losses.squared import is_squared
from projfree.objectives import Objective
from projfree.objectives.row_steps import weigh
from projfree.run import Checkpoint, Result, minimize, path
from projfree.sampling import Growing
from projfree.sets import LpBall
from projfree.solvers import Solver

#: ``make(X, y, weight)`` returns an instance of the class under test with these rows.
Make = Callable[[Array, Array, Array | None], Data]
#: Absolute tolerance of values and of runs with predefined steps, relative to the largest entry, and relative tolerance
#: by which a lower bound may exceed a value.
AGREEMENT, ROUNDING = 1e-10, 1e-12
#: Number of rows (several blocks of a backend, but few enough for thousands of passes), features and outputs.
ROWS, FEATURES, OUTPUTS = 211, 6, 3
BALL = LpBall(1.5, radius=1.0)

FIXED: tuple[Solver, ...] = (
    solvers.PrimalAveraging(),
    solvers.PrimalAveraging(sampling=Growing(2)),
    solvers.FrankWolfe(steps.OpenLoop(2)),
    solvers.ProjectedGradient(steps.InverseSmoothness(20)),
)
SEARCHING: tuple[Any, ...] = (
    solvers.FrankWolfe(),
    solvers.PrimalAveraging(search=steps.ExactLineSearch()),
    solvers.CorrectivePrimalAveraging(),
    solvers.PairwiseFrankWolfe(),
    solvers.AcceleratedProjectedGradient(steps.BacktrackingGradient()),
    solvers.ConstrainedNewton(),
    solvers.HessianFreeNewton(),
    solvers.WorkingSet(smallest=2),
    "auto",
)
QUADRATIC: tuple[Solver, ...] = (solvers.Direct(),)
#: Each loss with one output, and some losses with several outputs, for which a backend may have a separate code path.
LOSSES: tuple[tuple[Loss, int], ...] = (
    *((loss(), 0) for loss in losses.LOSSES if not loss.coupled),
    *((loss(), OUTPUTS) for loss in (losses.Squared, losses.Logistic, losses.Poisson, losses.Softmax)),
)


def table(loss: Loss, outputs: int) -> tuple[Array, Array, Array]:
    """Return random features, targets that suit the loss, and weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES)) + 0.5
    u = X @ rng.standard_normal((FEATURES, max(1, outputs))) + 0.5 * rng.standard_normal((ROWS, max(1, outputs)))
    if loss.coupled:
        y = u.argmax(axis=1)
    else:
        y = np.where(u > 0.0, 1.0, -1.0) if loss.labels else np.exp(0.5 * u) if isinstance(loss, LogLinkLoss) else u
        y = y if outputs else y[:, 0]
    return X, y, rng.uniform(0.5, 2.0, ROWS)


def check_backend(
    make: Make,
    *,
    same_draws: bool = True,
    losses: Sequence[tuple[Loss, int]] = LOSSES,
    searching: Sequence[Any] = SEARCHING,
) -> None:
    """Run all checks; an AssertionError has a note that names the check that failed.

    Parameters
    ----------
    make : callable
        ``make(X, y, weight)`` returns an instance of the class under test with these rows.
    same_draws : bool
        Whether samples consist of the same rows as in memory; if not, runs on samples are compared by their
        certificates.
    losses : sequence of (Loss, int)
        Losses for the solvers, each with its number of outputs; all losses are evaluated. Pass fewer if passes are
        slow, because the solvers make thousands of them.
    searching : sequence of Solver or "auto"
        Solvers whose steps depend on the data.

    Examples
    --------
    To be quick, the example compares evaluations, predefined steps, paths and checkpoints only; omit ``losses`` and
    ``searching`` to run all checks.

    >>> from projfree import Squared
    >>> from projfree.testing import SealedData
    >>> from projfree.testing.backends import check_backend
    >>> check_backend(lambda X, y, weight: SealedData(X, y, weight), losses=[(Squared(), 0)], searching=[])
    """
    cases: list[tuple[Any, ...]] = [(check_evaluations, *case) for case in product(LOSSES, (False, True))]
    for case in product(losses, (False, True)):
        for solver in FIXED:
            same = same_draws or not isinstance(getattr(solver, "sampling", None), Growing)
            cases.append((check_fixed, *case, solver) if same else (check_searching, *case, solver, 0.0))
        cases += [(check_searching, *case, one) for one in (*searching, *(QUADRATIC if is_squared(case[0][0]) else ()))]
    for check, (loss, outputs), *rest in cases:
        try:
            check(make, loss, outputs, *rest)
        except AssertionError as error:
            error.add_note(f"{check.__name__} of {loss!r} with {outputs} outputs, and {rest}")
            raise
    check_path(make)
    check_checkpoint(make)


def check_evaluations(make: Make, loss: Loss, outputs: int, intercept: bool) -> None:
    """Check that values, tangents, Hessians and folds agree."""
    f, g = (Objective(loss, data, intercept) for data in _both(make, loss, outputs))
    w, v = 0.5 * np.random.default_rng(1).standard_normal((2, *f.shape))
    here, there = (h.evaluate(h.point(w), also=(h.point(0.5 * w),)) for h in (f, g))
    _close(here.value, there.value)
    _close(here.also[0].value, there.also[0].value)
    _close(here.slope.gradient, there.slope.gradient)
    _close(here.slope.constant, there.slope.constant)
    if loss.convex:
        hessian, H = f.hessian(f.point(w)), g.hessian(g.point(w)).matrix
        _close(hessian.matrix, H)
        _close(hessian.times(v).ravel(), H @ v.ravel())
    _close(*(h.workspace.fold(PredictionProductSums(), (h.point(w), h.point(-w))) for h in (f, g)))


@dataclass(frozen=True)
class PredictionProductSums(Step):
    """Compute the weighted inner products of all pairs of predictions."""

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return None, np.array([weigh(a * b, rows.s).sum() for a in images for b in images])


def check_fixed(make: Make, loss: Loss, outputs: int, intercept: bool, solver: Solver) -> None:
    """Check that runs with predefined step sizes agree with those in memory up to rounding."""
    here, there = _runs(make, loss, outputs, intercept, solver, tol=0.0, max_iter=30)
    _close(here.w, there.w)
    _close(here.value, there.value)
    if here.bound is not None and there.bound is not None:
        _close(here.bound, there.bound)


def check_searching(make: Make, loss: Loss, outputs: int, intercept: bool, solver: Any, tol: float = 1e-6) -> None:
    """Check that both certificates hold and their intervals overlap, for runs whose steps depend on the data."""
    if isinstance(solver, solvers.CorrectivePrimalAveraging | solvers.WorkingSet) and not loss.convex:
        return  # these solvers need a convex function
    here, there = _runs(make, loss, outputs, intercept, solver, tol=tol, max_iter=300)
    if here.bound is None or there.bound is None:
        # Rounding may lead to another stationary point, but not to a worse certificate of stationarity.
        assert tol == 0.0 or here.status == there.status
        assert here.relative_gap <= max(tol, 10 * there.relative_gap)
        return
    _overlap(here, there)
    assert here.status.converged == there.status.converged


def check_path(make: Make) -> None:
    """Check that the bounds of a path over radii agree with those in memory."""
    both = (path(Objective(losses.Logistic(), data), BALL, [0.5, 2.0]) for data in _both(make, losses.Logistic(), 0))
    for here, there in zip(*(found.results for found in both), strict=True):
        _overlap(here, there)


def check_checkpoint(make: Make) -> None:
    """Check that a run resumed from a checkpoint equals the uninterrupted run bit for bit."""
    f = Objective(losses.Logistic(), make(*table(losses.Logistic(), 0)), True)
    solver = solvers.CorrectivePrimalAveraging()
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"tol": 0.0, "callbacks": [Checkpoint(folder, 10)]}
        uninterrupted = minimize(f, BALL, solver, max_iter=30, **settings)
        minimize(f, BALL, solver, max_iter=20, **settings)
        resumed = minimize(f, BALL, state=folder, max_iter=30, **settings)
    np.testing.assert_array_equal(resumed.w, uninterrupted.w)
    assert (resumed.n_iter, resumed.value) == (uninterrupted.n_iter, uninterrupted.value)


def _both(make: Make, loss: Loss, outputs: int) -> tuple[Data, Data]:
    """Return the same rows in the class under test and in memory."""
    rows = table(loss, outputs)
    return make(*rows), as_data(*rows)


def _runs(make: Make, loss: Loss, outputs: int, intercept: bool, solver: Any, **settings: Any) -> list[Result]:
    ball = LpBall(1, radius=1.0) if isinstance(solver, solvers.WorkingSet) else BALL
    return [minimize(Objective(loss, data, intercept), ball, solver, **settings) for data in _both(make, loss, outputs)]


def _overlap(here: Result, there: Result) -> None:
    """Check that the lower bound of each run is at most the value of the other."""
    assert here.bound is not None
    assert there.bound is not None
    slack = ROUNDING * max(abs(here.value), abs(there.value))
    assert max(here.bound, there.bound) <= min(here.value, there.value) + slack


def _close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=0.0, atol=AGREEMENT * max(float(np.abs(b).max()), ROUNDING))
