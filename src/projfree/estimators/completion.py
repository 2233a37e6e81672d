"""`MatrixCompletion`: ratings in, ratings and recommendations out, over a Schatten ball, with a certificate."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from projfree.checks import Array, at_least, count, plain_array, positive, shown
from projfree.estimators.alternating import Factors, strongest
from projfree.estimators.completion_fit import (
    SweepsInterrupted,
    ball_of,
    fitted_into,
    from_result,
    make_sweeps,
    objective_of,
    relative,
    sweeps,
)
from projfree.estimators.completion_growth import grow, worth_growing
from projfree.estimators.completion_model import CompletionModel, merged
from projfree.estimators.completion_path import choose_strength
from projfree.estimators.ratings import last_of_each, read_ratings
from projfree.losses import Huber, Logistic, Loss, Squared
from projfree.run import Result, minimize
from projfree.run.result import one_of_many

#: With fewer ratings than this none are held out to choose the radius; the penalty is a share of the strongest.
FEW = 20
#: A penalty that has fallen below this part of its first size says that the ball is wider than the ratings need.
WIDE = 1e-3
LOSSES = {"squared": Squared, "huber": Huber, "logistic": Logistic}


class MatrixCompletion(CompletionModel, BaseEstimator):
    r"""Complete a matrix from some of its entries, over a ball of a weighted Schatten norm.

    .. math:: \min_{\|D_r^a X D_c^a\|_{S_p} \le r,\ b}\ \frac1n\sum_i \ell(X_{u_i v_i} + b_0 + b_{u_i} + b_{v_i}, y_i)
              + \frac{\text{ridge}}{n} \|b\|^2

    Alternating sweeps find a good point fast; the convex problem then says how far from optimal it is
    (``relative_gap_``), and with ``tol`` a convex solver goes on from there until the gap is proved to be that small.

    Parameters
    ----------
    p : float, default 1.0
        The exponent of the Schatten norm, from 1 (the nuclear norm) to below 2, where the answer has a closed form and
        says nothing about entries that were not observed.
    radius : float, optional
        The radius of the ball. By default chosen on held-out ratings, along a path of radii.
    loss : {"squared", "huber", "logistic"} or Loss
        Logistic is for ratings of two values, such as likes.
    offsets : bool or tuple of three bool
        Whether offsets are fitted: for all, for each user, for each item.
    ridge : float
        The penalty of an offset, in ratings.
    weight_power : float
        The power a of the smoothed row and column frequencies in the norm; 0 is the plain norm.
    rank : int
        Components of the sweeps. A certified answer may have more.
    sweeps : int
        The largest number of sweeps.
    tol : float, optional
        Go on as `certify_to` does until the relative gap is at most this. By default the gap is computed, not reduced.
    solver : Solver, optional
        The convex solver; `CorrectivePrimalAveraging` by default.
    max_iter : int
        Iterations of the convex solver at most.
    certify : bool
        Whether the gap is computed; on matrices with thousands of rows and columns it costs a few seconds.
    early_stopping : bool
        Hold out ``validation_fraction`` of the ratings, stop when their error has not fallen for
        ``n_iter_no_change`` sweeps, and keep the best.
    validation_fraction, n_iter_no_change : float, int
        See above; the fraction also serves the choice of the radius.
    time_limit : float, optional
        Seconds after which no further sweep, and no further iteration, is begun.
    clip : bool
        Whether predictions are clipped to the range of the ratings seen.
    columns : tuple of str
        Names of the columns of a data frame.
    callbacks : sequence of callables
        Called after every sweep and every convex iteration; one that returns True ends that stage, such as
        `ProgressBar`, which never does.
    checkpoint : path, optional
        A folder that the sweeps are saved to; a fit of the same problem goes on from it.
    random_state : int
        Seed of the first factors and of what is held out.

    Attributes
    ----------
    user_ids_, item_ids_ : ndarray
        The labels, sorted.
    factors_ : Factors
        Factors, offsets and singular values.
    radius_, norm_ : float
        The radius, and the norm of the answer.
    value_, bound_, relative_gap_ : float
        The objective, a proven lower bound on its minimum over the ball, and their relative distance; NaN where not
        certified.
    n_iter_ : int
        Sweeps done.
    result_ : Result or None
        Of the convex solver, where it ran.

    Notes
    -----
    Where a user rates an item twice, the later rating counts. Users and items without ratings, and ones never seen, are
    predicted by the offsets that exist.

    Examples
    --------
    >>> from projfree.estimators.completion import MatrixCompletion
    >>> ratings = [("ann", "up", 5.0), ("ann", "heat", 3.0), ("bob", "up", 4.0), ("cy", "heat", 2.0), ("cy", "up", 4.0)]
    >>> model = MatrixCompletion(radius=1.0, rank=2).fit(ratings)
    >>> model.predict([("bob", "heat"), ("dan", "up")]).round(1)
    array([3.4, 3.8])
    >>> model.relative_gap_ < 0.1
    True
    """

    result_: Result | None

    def __init__(
        self,
        p: float = 1.0,
        radius: float | None = None,
        *,
        loss: Any = "squared",
        offsets: Any = True,
        ridge: float = 3.0,
        weight_power: float = 0.25,
        rank: int = 40,
        sweeps: int = 15,
        tol: float | None = None,
        solver: Any = None,
        max_iter: int = 1000,
        certify: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        time_limit: float | None = None,
        clip: bool = True,
        columns: tuple[str, ...] = ("user", "item", "rating"),
        callbacks: Any = (),
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.p, self.radius, self.loss, self.offsets, self.ridge = p, radius, loss, offsets, ridge
        self.weight_power, self.rank, self.sweeps, self.tol = weight_power, rank, sweeps, tol
        self.solver, self.max_iter, self.certify = solver, max_iter, certify
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.n_iter_no_change, self.time_limit, self.clip = n_iter_no_change, time_limit, clip
        self.columns, self.callbacks, self.checkpoint, self.random_state = columns, callbacks, checkpoint, random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to ratings.

        Parameters
        ----------
        X : sparse matrix, data frame, triples, pairs or tuple of arrays
            The stored entries of a SciPy matrix (zeros too); a frame with the columns named by ``columns``; rows
            ``(user, item, rating)``; pairs ``(user, item)`` with ``y``; or arrays ``(users, items, ratings)``.
        y : array, optional
            Ratings, where ``X`` has none.
        sample_weight : array, optional
            A weight for each rating.
        """
        self.prepare(X, y, sample_weight)
        return self._fit(None)

    def fit_with(self, X: Any, y: Any, sample_weight: Any, strength: float) -> Self:
        """Fit with a given strength of the penalty in place of a radius, as a path has found it."""
        self.prepare(X, y, sample_weight)
        return self._fit(None, positive("fit_with(strength=...)", strength))

    def prepare(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Check settings and ratings, and keep the latter."""
        self._checked()
        ratings = read_ratings(X, y, self.columns)
        assert ratings.values is not None
        if ratings.shape is not None:
            self.user_ids_, self.item_ids_ = np.arange(ratings.shape[0]), np.arange(ratings.shape[1])
            rows, cols = ratings.users, ratings.items
        else:
            self.user_ids_, rows = np.unique(ratings.users, return_inverse=True)
            self.item_ids_, cols = np.unique(ratings.items, return_inverse=True)
        self._take(rows, cols, ratings.values, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add ratings, of known or new users and items, and go on from the last answer with the same penalty."""
        if not hasattr(self, "factors_"):
            return self.fit(X, y, sample_weight)
        if (self._weight is None) != (sample_weight is None):
            raise ValueError("`partial_fit` needs `sample_weight` if, and only if, the first fit had it.")
        new = read_ratings(X, y, self.columns)
        users, items = np.union1d(self.user_ids_, new.users), np.union1d(self.item_ids_, new.items)
        state = merged(self.factors_, self.user_ids_, users, self.item_ids_, items)
        rows = np.concatenate([np.searchsorted(users, self.user_ids_)[self._rows], np.searchsorted(users, new.users)])
        cols = np.concatenate([np.searchsorted(items, self.item_ids_)[self._cols], np.searchsorted(items, new.items)])
        weight = (
            None
            if sample_weight is None
            else np.concatenate([self._weight, plain_array("sample_weight", sample_weight)])
        )
        self.user_ids_, self.item_ids_ = users, items
        self._take(rows, cols, np.concatenate([self._values, new.values]), weight)
        return self._fit(state)

    def certify_to(self, tol: float, *, time_limit: float | None = None) -> Self:
        """Go on until the relative gap is at most ``tol``, or a limit is reached.

        Large matrices get more components first, as many as sweeps can bear; then the convex solver goes on.
        """
        check_is_fitted(self, "factors_")
        problem, data = self._problem(slice(None))
        begun = time.monotonic()
        if worth_growing(problem):
            given = (self.factors_, self.strength_, self.radius_, tol, time_limit, tuple(self.callbacks))
            self.factors_, self.strength_ = grow(problem, data, *given)
        if time_limit is not None:
            time_limit = max(time_limit - (time.monotonic() - begun), 1e-3)
        f, ball = objective_of(problem, data), ball_of(problem, self.radius_)
        result = minimize(
            f,
            ball,
            self.solver,
            tol=tol,
            max_iter=self.max_iter,
            time_limit=time_limit,
            start=fitted_into(self.factors_, problem.p, self.radius_ * (1.0 - 1e-12)).matrix,
            callbacks=tuple(self.callbacks),
        )
        assert result.bound is not None
        self.factors_ = from_result(problem, result.w, np.asarray(result.intercept))
        self.value_, self.bound_, self.relative_gap_ = result.value, result.bound, result.relative_gap
        self.result_, self.norm_ = result, self.factors_.norm(problem.p)
        one_of_many(result)
        return self

    def _checked(self) -> None:
        if at_least("MatrixCompletion(p=...)", self.p, 1.0) >= 2.0:
            raise ValueError(
                f"`MatrixCompletion(p=...)` must be below 2, got {shown(self.p)}: beyond, the answer says nothing "
                "about entries that were not observed; `minimize` over a SchattenBall solves it."
            )
        if self.radius is not None:
            positive("MatrixCompletion(radius=...)", self.radius)
        positive("MatrixCompletion(ridge=...)", self.ridge)
        at_least("MatrixCompletion(weight_power=...)", self.weight_power, 0.0)
        for name in ("rank", "sweeps", "max_iter", "n_iter_no_change"):
            count(f"MatrixCompletion({name}=...)", getattr(self, name))
        share = positive("MatrixCompletion(validation_fraction=...)", self.validation_fraction)
        if share >= 1.0:
            raise ValueError(f"`MatrixCompletion(validation_fraction=...)` must be below 1, got {shown(share)}.")
        if self.time_limit is not None:
            positive("MatrixCompletion(time_limit=...)", self.time_limit)
        self.loss_ = self._make_loss()

    def _make_loss(self) -> Loss:
        if isinstance(self.loss, Loss):
            return self.loss
        if self.loss not in LOSSES:
            raise ValueError(
                f"`MatrixCompletion(loss=...)` must be one of {', '.join(LOSSES)}, got {shown(self.loss)}."
            )
        made: Loss = LOSSES[self.loss]()
        return made

    @property
    def _kinds(self) -> tuple[bool, bool, bool]:
        if isinstance(self.offsets, bool):
            return (self.offsets,) * 3
        every, users, items = self.offsets
        return bool(every), bool(users), bool(items)

    def _take(self, rows: Array, cols: Array, values: Array, weight: Any) -> None:
        """Keep the ratings, of each pair the last."""
        weight = None if weight is None else plain_array("sample_weight", weight).astype(np.float64, copy=False)
        if weight is not None and weight.shape != values.shape:
            raise ValueError(f"`sample_weight` must have one entry for each rating, got shape {weight.shape}.")
        kept = last_of_each(rows, cols, len(self.item_ids_))
        if len(kept) < len(values):
            rows, cols, values = rows[kept], cols[kept], values[kept]
            weight = None if weight is None else weight[kept]
        self._rows, self._cols, self._values, self._weight = rows, cols, values, weight
        self.rating_range_ = (float(values.min()), float(values.max()))
        self.base_ = 0.0 if self.loss_.labels or not self._kinds[0] else float(np.average(values, weights=weight))

    def _problem(self, part: Any) -> Any:
        weight = None if self._weight is None else self._weight[part]
        return make_sweeps(
            self._rows[part],
            self._cols[part],
            self._values[part],
            weight,
            (len(self.user_ids_), len(self.item_ids_)),
            loss=self.loss_,
            p=float(self.p),
            power=float(self.weight_power),
            ridge=float(self.ridge),
            kinds=self._kinds,
            base=self.base_,
        )

    def _held_out(self) -> tuple[Array, Array]:
        n = len(self._values)
        order = np.random.default_rng(self.random_state).permutation(n)
        out = min(max(int(self.validation_fraction * n), 1), n - 1)
        return np.sort(order[out:]), np.sort(order[:out])

    def _chosen(self) -> tuple[float | None, Factors | None]:
        """The strength and the state that held-out ratings like best; None where a radius is given, or too few."""
        if self.radius is not None or len(self._values) < FEW:
            return None, None
        inside, out = self._held_out()
        strength, state = choose_strength(
            self._problem(inside)[0], self.rank, self.random_state, lambda s: -self._error(s, out), self.time_limit
        )
        return strength * float(np.sqrt(len(self._values) / len(inside))), state

    def _fit(self, state: Factors | None, strength: float | None = None) -> Self:
        again = state is not None
        if again:
            strength = self.strength_
        elif strength is None:
            strength, state = self._chosen()
        inside, out = self._held_out() if self.early_stopping and len(self._values) > 1 else (slice(None), None)
        problem, data = self._problem(inside)
        strength = 0.3 * strongest(problem) if strength is None else strength
        state = problem.begin(self.rank, self.random_state) if state is None else state
        saver, state, strength, done = self._saver(problem, data, state, strength)
        try:
            state, self.strength_, self.n_iter_ = sweeps(
                problem,
                state,
                strength,
                count=self.sweeps,
                radius=self.radius,
                score=None if out is None else lambda s: -self._error(s, out),
                patience=self.n_iter_no_change if out is not None else 0,
                callbacks=self.callbacks,
                time_limit=np.inf if self.time_limit is None else self.time_limit,
                each=saver,
                done=done,
                solver=self,
            )
        except SweepsInterrupted as stop:
            self.strength_, self.n_iter_ = stop.strength, stop.iteration
            self._keep(problem, stop.state)
            raise
        # A ball that does not hold the answer back lets the penalty fall without end.
        self._warn_if_wide(state.norm(problem.p), self.strength_ < WIDE * strength)
        return self._finish(problem, data, state)

    def _warn_if_wide(self, norm: float, fallen: bool) -> None:
        if self.radius is not None and fallen and norm < 0.9 * self.radius:
            warnings.warn(
                f"`radius={self.radius:g}` is larger than these ratings need: the norm of the answer is {norm:.4g}, so "
                "the ball does not hold it back; choose a smaller radius, or leave it out.",
                stacklevel=4,
            )

    def _keep(self, problem: Any, state: Factors) -> None:
        """The attributes of a state that no certificate stands for yet."""
        norm = state.norm(problem.p)
        # The answer of a penalty minimises over the ball of its own norm.
        self.radius_ = float(self.radius) if self.radius is not None else max(norm * (1.0 + 1e-12), 1e-8)
        self.factors_ = fitted_into(state, problem.p, self.radius_)
        self.norm_ = self.factors_.norm(problem.p)
        self.result_ = None
        self.value_ = self.bound_ = self.relative_gap_ = float("nan")

    def _finish(self, problem: Any, data: Any, state: Factors) -> Self:
        self._keep(problem, state)
        if self.certify:
            f, ball = objective_of(problem, data), ball_of(problem, self.radius_)
            here = f.evaluate(f.point(self.factors_.matrix, self.factors_.offsets))
            self.value_, self.bound_ = here.value, here.slope.lower(ball)
            self.factors_ = self._with_offsets(np.asarray(here.intercept))
            self.relative_gap_ = relative(f, self.value_, self.bound_)
        if self.tol is not None and not self.relative_gap_ <= self.tol:
            self.certify_to(self.tol, time_limit=self.time_limit)
        return self

    def _with_offsets(self, b: Array) -> Factors:
        m = len(self.user_ids_)
        return replace(self.factors_, shift=float(b[0]), rows=b[1 : 1 + m], cols=b[1 + m :])

    def _error(self, state: Factors, part: Array) -> float:
        """The error on some ratings: root mean square, or the mean loss where ratings are labels."""
        u = self._margin(state, self._rows[part], self._cols[part])
        if self.loss_.labels:
            return float(np.mean(self.loss_.value(u, self.loss_.targets(self._values)[part])))
        return float(np.sqrt(np.mean((np.clip(u, *self.rating_range_) - self._values[part]) ** 2)))
