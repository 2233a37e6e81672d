"""`MatrixCompletion`: ratings in, ratings and recommendations out, over a Schatten ball, with a certificate."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from projfree.checks import Array, at_least, count, positive, shown
from projfree.deadline import deadline
from projfree.estimators.completion.certificate import certified
from projfree.estimators.completion.choice import WEIGHTS, choose, most_sweeps
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.growth import grow, worth_growing
from projfree.estimators.completion.labels import refuse_other_kind
from projfree.estimators.completion.problem import Problem, Settings, Swept
from projfree.estimators.completion.ratings import Observed, weighted_ratings
from projfree.estimators.completion.recommendations import Recommender
from projfree.estimators.completion.saved import SavedCompletion
from projfree.estimators.completion.stopping import BestSweep, Tally
from projfree.estimators.robust import HUBER, residual_scale
from projfree.estimators.solving import warn_if_short
from projfree.estimators.watching import Kept, given_callbacks
from projfree.losses import Huber, Logistic, Loss, Squared
from projfree.objectives.regressions import predictions
from projfree.run import Checkpoint, Result, Status, minimize
from projfree.run.callbacks import announce, closed
from projfree.run.checkpoint import Written
from projfree.run.result import one_of_many
from projfree.solvers import FrankWolfe
from projfree.solvers.alternating import offsets_alone
from projfree.steps import ShortStep

#: With fewer ratings than this none are held out to choose the radius; the penalty follows no radius but its own share.
FEW = 20
#: A penalty that has fallen below this part of its first size says that the ball is wider than the ratings need.
WIDE = 1e-3
#: The share of the strongest penalty where there are too few ratings to choose one.
SHARE = 0.3
#: The radius of an answer without a matrix.
LEAST_RADIUS = 1e-8
#: The part of a time limit that the choice of the radius may take.
CHOOSING = 0.5
#: Standard errors by which a matrix must be better than none: it is the best of many that were tried.
CLEAR = 3.0
#: Sweeps after a choice of the radius, and without one.
LAST, WHOLE = 3, 15
LOSSES = {"squared": Squared, "huber": Huber, "logistic": Logistic}


class MatrixCompletion(Recommender, SavedCompletion, RegressorMixin, BaseEstimator):
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
        Logistic is for ratings of any two values, such as likes. ``"huber"`` takes its scale from the data, as in
        `ConstrainedRegressor`: 1.345 times a robust standard deviation of what offsets alone leave of the ratings.
    offsets : bool or tuple of three bool
        Whether offsets are fitted: for all, for each user, for each item.
    ridge : float
        The penalty of an offset, in ratings.
    implicit : "auto" or float
        The weight w of implicit features: which items a user has rated is completed as well, see Notes. By default
        chosen from 0, 0.5 and 1 on held-out ratings where the radius is, else 0.
    weight_power : float
        The power a of the smoothed row and column frequencies in the norm; 0 is the plain norm.
    rank : int
        Components of the sweeps. A certified answer may have more.
    max_sweeps : int, optional
        The largest number of sweeps after the choice of the radius, by default 3, since the choice leaves little to
        do, or 15 where there was none; ``n_iter_`` says how many were done.
    tol : float, optional
        Go on as `certify_to` does until the relative gap is at most this. By default the gap is computed, not reduced.
    solver : Solver, optional
        The convex solver; `CorrectivePrimalAveraging` by default.
    max_iter : int
        Iterations of the convex solver at most.
    certify : bool or "sharp"
        Whether the gap is computed. By default that takes no more products than the fit has, and the bound is coarser
        where a sharp one would (``coarse_``); "sharp" takes what it needs.
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
    random_state : int, RandomState or None
        Seed of the first factors and of what is held out, drawn once a fit.

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
    coarse_ : bool
        Whether the bound was kept coarse to save time; ``certify="sharp"`` or `certify_to` prove more.
    implicit_ : float
        The weight of implicit features.
    n_iter_ : int
        Sweeps done after the choice of the radius, at most ``max_sweeps``.
    result_ : Result or None
        Of the convex solver, where it ran.

    Notes
    -----
    With a weight w of implicit features the problem is

    .. math:: \min_{M = \begin{pmatrix} X & S \\ T & \cdot \end{pmatrix},\ b}\ f(X, b)
              + \frac wn \bigl(\|B - S\|_F^2 + \|B - T\|_F^2\bigr)

    with f the objective above, B the 0/1 matrix of the ratings that were fitted, and M, whose further rows and columns
    have the weight one, in the ball: it stays convex, and the certificate covers all of it.

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

    implicit_: float
    _tally: Tally
    result_: Result | None
    held_out_: Array | None

    def __init__(
        self,
        p: float = 1.0,
        radius: float | None = None,
        *,
        loss: Any = "squared",
        offsets: Any = True,
        ridge: float = 3.0,
        implicit: Any = "auto",
        weight_power: float = 0.25,
        rank: int = 40,
        max_sweeps: int | None = None,
        tol: float | None = None,
        solver: Any = None,
        max_iter: int = 1000,
        certify: Any = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        time_limit: float | None = None,
        clip: bool = True,
        columns: tuple[str, ...] = ("user", "item", "rating"),
        callbacks: Any = (),
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.p, self.radius, self.loss, self.offsets, self.ridge = p, radius, loss, offsets, ridge
        self.implicit = implicit
        self.weight_power, self.rank, self.max_sweeps, self.tol = weight_power, rank, max_sweeps, tol
        self.solver, self.max_iter, self.certify = solver, max_iter, certify
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.n_iter_no_change, self.time_limit, self.clip = n_iter_no_change, time_limit, clip
        self.columns, self.callbacks, self.checkpoint, self.random_state = columns, callbacks, checkpoint, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.sparse = True
        tags.target_tags.required = False  # ratings may stand in X
        return tags

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
        self._checked()
        with self._watched(self.time_limit):
            self.prepare(X, y, sample_weight)
            return self._fit(None)

    def prepare(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Check settings and ratings, and keep the latter."""
        self._checked()
        ratings = weighted_ratings(X, y, self.columns, sample_weight)
        assert ratings.values is not None
        if ratings.shape is not None:
            self.user_ids_, self.item_ids_ = np.arange(ratings.shape[0]), np.arange(ratings.shape[1])
            rows, cols = ratings.users, ratings.items
        else:
            self.user_ids_, rows = np.unique(ratings.users, return_inverse=True)
            self.item_ids_, cols = np.unique(ratings.items, return_inverse=True)
        self._take(Observed.latest(rows, cols, ratings.values, ratings.weight, len(self.item_ids_)))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add ratings, of known or new users and items, and go on from the last answer with the same penalty."""
        if not hasattr(self, "factors_"):
            return self.fit(X, y, sample_weight)
        old = self._need_ratings("partial_fit", "save it with `ratings=True`")
        if (old.weight is None) != (sample_weight is None):
            raise ValueError("`partial_fit` needs `sample_weight` if, and only if, the first fit had it.")
        new = weighted_ratings(X, y, self.columns, sample_weight)
        assert new.values is not None
        refuse_other_kind("users", self.user_ids_, new.users)
        refuse_other_kind("items", self.item_ids_, new.items)
        users, items = np.union1d(self.user_ids_, new.users), np.union1d(self.item_ids_, new.items)
        model = self.factors_.merged(self.user_ids_, users, self.item_ids_, items)
        rows = np.concatenate([np.searchsorted(users, self.user_ids_)[old.rows], np.searchsorted(users, new.users)])
        cols = np.concatenate([np.searchsorted(items, self.item_ids_)[old.cols], np.searchsorted(items, new.items)])
        weight = None if old.weight is None or new.weight is None else np.concatenate([old.weight, new.weight])
        self.user_ids_, self.item_ids_, implicit = users, items, self.implicit_
        with self._watched(self.time_limit):
            self._take(Observed.latest(rows, cols, np.concatenate([old.values, new.values]), weight, len(items)))
            self.implicit_ = implicit
            return self._fit(model, self.strength_)

    def certify_to(self, tol: float, *, time_limit: float | None = None) -> Self:
        """Go on until the relative gap is at most ``tol``, or a limit is reached.

        Large matrices get more components first, as many as sweeps can bear; then the convex solver goes on.
        """
        self._need_ratings("certify_to", "save it with `ratings=True`")
        problem = self._problem(self._training())
        with self._watched(time_limit):
            if worth_growing(problem):
                announce(given_callbacks(self.callbacks), "more components")
                given = (self.strength_, self.radius_, tol, given_callbacks(self.callbacks))
                self.factors_, self.strength_ = grow(problem, self.factors_, *given)
            announce(given_callbacks(self.callbacks), "convex solver")
            ball = problem.ball(self.radius_)
            result = minimize(
                problem.f,
                ball,
                self._convex_solver,
                tol=tol,
                max_iter=self.max_iter,
                start=self.factors_.inside(problem.p, self.radius_ * (1.0 - 1e-12)).point(problem.f).w,
                callbacks=given_callbacks(self.callbacks),
            )
        assert result.bound is not None
        self.factors_ = Factors.of_point(problem.f, ball, result.w, np.asarray(result.intercept))
        self.value_, self.bound_, self.relative_gap_ = result.value, result.bound, result.relative_gap
        self.result_, self.norm_, self.coarse_ = result, self.factors_.norm(problem.p), False
        one_of_many(result)
        warn_if_short(self, result, tol, expected=result.status is Status.CALLBACK)
        return self

    @property
    def _convex_solver(self) -> Any:
        """The solver that was given; where what was rated counts too, one that needs no images of points."""
        return FrankWolfe(ShortStep()) if self.solver is None and self.implicit_ else self.solver

    @contextmanager
    def _watched(self, seconds: float | None) -> Iterator[None]:
        """One limit for everything that follows, after which the callbacks are closed."""
        with closed(given_callbacks(self.callbacks)), self._limited(seconds):
            yield

    @staticmethod
    def _limited(seconds: float | None) -> AbstractContextManager[None]:
        """One limit for everything that follows."""
        return deadline(math.inf if seconds is None else seconds)

    def _checked(self) -> None:
        if at_least("MatrixCompletion(p=...)", self.p, 1.0) >= 2.0:
            raise ValueError(
                f"`MatrixCompletion(p=...)` must be below 2, got {shown(self.p)}: beyond, the answer says nothing "
                "about entries that were not observed; `minimize` over a SchattenBall solves it."
            )
        if self.radius is not None:
            positive("MatrixCompletion(radius=...)", self.radius)
        positive("MatrixCompletion(ridge=...)", self.ridge)
        if not isinstance(self.implicit, str):
            at_least("MatrixCompletion(implicit=...)", self.implicit, 0.0)
        elif self.implicit != "auto":
            raise ValueError(
                f"`MatrixCompletion(implicit=...)` must be 'auto' or a weight, 0 for none, got {shown(self.implicit)}."
            )
        at_least("MatrixCompletion(weight_power=...)", self.weight_power, 0.0)
        for name in ("rank", "max_iter", "n_iter_no_change", *(() if self.max_sweeps is None else ("max_sweeps",))):
            count(f"MatrixCompletion({name}=...)", getattr(self, name))
        share = positive("MatrixCompletion(validation_fraction=...)", self.validation_fraction)
        if share >= 1.0:
            raise ValueError(f"`MatrixCompletion(validation_fraction=...)` must be below 1, got {shown(share)}.")
        if self.certify not in (True, False, "sharp"):
            raise ValueError(f"`MatrixCompletion(certify=...)` must be a bool or 'sharp', got {shown(self.certify)}.")
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

    def _scaled_loss(self) -> Loss:
        """The loss with the scale that the ratings ask for."""
        if not isinstance(self.loss, str) or self.loss != "huber":
            return self.loss_
        values, weight = self.ratings_.values, self.ratings_.weight
        self.loss_ = Huber(HUBER * residual_scale(values, weight))
        e = self._problem(self.ratings_).f.entries
        rest = e.data.y - predictions(e, offsets_alone(e))
        return Huber(HUBER * residual_scale(rest, e.data.weight))

    @property
    def _kinds(self) -> tuple[bool, bool, bool]:
        if isinstance(self.offsets, bool):
            return (self.offsets,) * 3
        every, users, items = self.offsets
        return bool(every), bool(users), bool(items)

    def _take(self, ratings: Observed) -> None:
        """Keep the ratings, and draw what is random in a fit."""
        self.ratings_, values = ratings, ratings.values
        self.implicit_ = self.weights[0] if len(self.weights) == 1 else 0.0
        self.rating_range_ = (float(values.min()), float(values.max()))
        free = not self.loss_.labels and self._kinds[0]
        self.base_ = float(np.average(values, weights=ratings.weight)) if free else 0.0
        self.loss_ = self._scaled_loss()
        self._tally = Tally()
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n = len(ratings)
        order = np.random.default_rng(self._seed).permutation(n)
        out = min(max(int(self.validation_fraction * n), 1), n - 1)
        self._split = np.sort(order[out:]), np.sort(order[:out])
        self.held_out_ = np.isin(np.arange(n), self._split[1]) if self.early_stopping and n > 1 else None
        self.n_ratings_ = len(self._training())

    def _training(self) -> Observed:
        """The ratings that the model is fitted to: all but those held out to stop early."""
        return self.ratings_ if self.held_out_ is None else self.ratings_.part(~self.held_out_)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of implicit features to choose from."""
        return WEIGHTS if isinstance(self.implicit, str) else (float(self.implicit),)

    def _problem(self, ratings: Observed, shape: tuple[int, int] | None = None) -> Problem:
        given = Settings(
            loss=self.loss_,
            p=self._exponent,
            power=float(self.weight_power),
            ridge=float(self.ridge),
            kinds=self._kinds,
            base=self.base_,
            implicit=self.implicit_,
        )
        shape = (len(self.user_ids_), len(self.item_ids_)) if shape is None else shape
        targets = self._targets(ratings.values)
        return Problem.of(ratings.rows, ratings.cols, targets, ratings.weight, shape, given)

    @property
    def _exponent(self) -> float:
        """The exponent of the norm."""
        return float(self.p)

    def _targets(self, values: Array) -> Array:
        """The ratings as the loss wants them: of two values the higher one becomes 1 and the lower one -1."""
        if not self.loss_.labels:
            return values
        low, high = self.rating_range_
        wrong = values[(values != low) & (values != high)]
        if len(wrong) or low == high:
            got = f"{low:g}" if low == high else f"{low:g}, {wrong[0]:g} and {high:g}"
            raise ValueError(
                f"`loss={shown(self.loss)}` needs ratings of two values, such as 0 and 1, got {got}; use "
                "`loss='squared'` for more."
            )
        return np.where(values == high, 1.0, -1.0)

    def _fit(self, model: Factors | None, strength: float | None = None) -> Self:
        written = self._written() if model is None else None
        state = None
        if written is not None:
            strength, self.implicit_ = written.note.get("strength"), written.note.get("implicit", self.implicit_)
        elif self.radius is None and strength is None:
            strength, self.implicit_, state = self._chosen()
        problem = self._problem(self._training())
        if state is not None:  # of fewer ratings, whose frequencies are others
            state = problem.restated(Factors.of(problem.f, state), self._seed)
        if model is not None:
            state = problem.state(model, self.strength_, self._seed)
        stopping = None if self.held_out_ is None else BestSweep(self._judge(problem), self.n_iter_no_change)
        watching = [self._tally, *given_callbacks(self.callbacks), *([] if stopping is None else [stopping])]
        begun = state is not None if written is None else bool(written.note.get("begun"))
        kept = self._keeper({"strength": strength, "implicit": self.implicit_, "begun": begun})
        most = self.most_sweeps(begun)
        settings: dict[str, Any] = {"callbacks": [*watching, *kept], "seed": self._seed, "written": written}
        settings["max_iter"] = most
        announce(given_callbacks(self.callbacks), "sweeps", most)
        if self.radius is None:
            assert strength is not None
            swept = problem.penalised(self.rank, strength, state, **settings)
        else:
            swept = problem.within(self.rank, float(self.radius), state, **settings)
        return self._finish(problem, swept, stopping)

    def most_sweeps(self, begun: bool) -> int:
        """The largest number of sweeps, from the state that a choice has left or from nothing."""
        return self.max_sweeps if self.max_sweeps is not None else LAST if begun else WHOLE

    def _chosen(self) -> tuple[float, float, Any]:
        """The strength, the weight and the state that held-out ratings like best.

        Where they are few or all the same, a share of the strongest, and implicit features only if asked for.
        """
        if len(self.ratings_) < FEW or np.allclose(self.ratings_.values, self.base_, rtol=1e-14, atol=0.0):
            return SHARE * self._problem(self._training()).strongest(), self.implicit_, None
        problem = self._problem(self.ratings_.part(self._split[0]))
        judges = (self._judged, self._clearly_better)
        given = (self.weights, self.rank, self._seed, *judges, [self._tally, *given_callbacks(self.callbacks)])
        announce(given_callbacks(self.callbacks), "path", most_sweeps(self.weights))
        with self._limited(None if self.time_limit is None else CHOOSING * self.time_limit):
            found = choose(problem, *given)
        # A penalty on fewer ratings is weaker, as the root of their number.
        grown = math.sqrt(len(self._training()) / len(self._split[0]))
        return found.strength * grown, found.implicit, found.state

    def _judged(self, model: Factors) -> float:
        """The score of a model on the ratings held out."""
        return -self._error(model, self._split[1])

    def _judge(self, problem: Problem) -> Any:
        return lambda run: self._judged(self._in_the_ball(problem, Factors.of(problem.f, run.state)))

    def _in_the_ball(self, problem: Problem, model: Factors) -> Factors:
        """The model as it is kept: sweeps may lie outside a ball that is given."""
        return model if self.radius is None else model.inside(problem.p, float(self.radius))

    def _written(self) -> Written | None:
        """The checkpoint to go on from, where there is one."""
        kept = None if self.checkpoint is None else Kept(self.checkpoint)
        return None if kept is None or kept.state is None else Written.load(kept.state)

    def _keeper(self, note: dict[str, Any]) -> list[Kept]:
        """What writes the sweeps to disk, with the strength that was chosen for them and whether there was a choice."""
        if self.checkpoint is None:
            return []
        if isinstance(self.checkpoint, Checkpoint):
            return [Kept(replace(self.checkpoint, note=note))]
        return [Kept(Checkpoint(self.checkpoint, every=1, note=note))]

    def _warn_if_wide(self, norm: float, fallen: bool) -> None:
        if self.radius is not None and fallen and self.radius > LEAST_RADIUS and norm < 0.9 * self.radius:
            warnings.warn(
                f"`radius={self.radius:g}` is larger than these ratings need: the norm of the answer is {norm:.4g}, so "
                "the ball does not hold it back; choose a smaller radius, or leave it out.",
                stacklevel=5,
            )

    def _finish(self, problem: Problem, swept: Swept, stopping: BestSweep | None) -> Self:
        state: Any = swept.state if stopping is None or stopping.state is None else stopping.state
        self.strength_, self.n_iter_ = float(state.strength), swept.state.t
        self._keep(problem, Factors.of(problem.f, state))
        if swept.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(f"interrupted after {self.n_iter_} sweeps")
        # A ball that does not hold the answer back lets the penalty fall without end.
        self._warn_if_wide(self.norm_, self.strength_ < WIDE * state.first)
        if self.certify:
            announce(given_callbacks(self.callbacks), "certificate")
            most = math.inf if self.certify == "sharp" else self._tally.products(problem, len(self.factors_.sigma))
            found = certified(problem, self.factors_, self.radius_, most)
            self.factors_, self.value_, self.bound_ = found.factors, found.value, found.bound
            self.relative_gap_, self.coarse_ = found.relative_gap, found.coarse
        if self.tol is not None and not self.relative_gap_ <= self.tol:
            self.certify_to(self.tol)
        return self

    def _keep(self, problem: Problem, model: Factors) -> None:
        """The attributes of a model that no certificate stands for yet."""
        norm = model.norm(problem.p)
        # The answer of a penalty minimises over the ball of its own norm.
        self.radius_ = float(self.radius) if self.radius is not None else max(norm * (1.0 + 1e-12), LEAST_RADIUS)
        self.factors_ = model.inside(problem.p, self.radius_)
        self.norm_ = self.factors_.norm(problem.p)
        self.result_ = None
        self.value_ = self.bound_ = self.relative_gap_ = float("nan")
        self.coarse_ = False

    def _error(self, model: Factors, part: Array) -> float:
        """The error on some ratings: root mean square, or the mean loss where ratings are labels."""
        error = float(np.average(self._losses(model, part), weights=self.ratings_.part(part).weight))
        return error if self.loss_.labels else math.sqrt(error)

    def _losses(self, model: Factors, part: Array) -> Array:
        """The squared errors of predictions of some ratings, or the losses where ratings are labels."""
        held = self.ratings_.part(part)
        u = model.margin(held.rows, held.cols)
        if self.loss_.labels:
            return self.loss_.value(u, self._targets(held.values))
        squares: Array = (np.clip(u, *self.rating_range_) - held.values) ** 2
        return squares

    def _clearly_better(self, one: Factors, other: Factors) -> bool:
        """Whether the ratings held out like a model better than another one by a few standard errors."""
        part = self._split[1]
        gain, weight = self._losses(other, part) - self._losses(one, part), self.ratings_.part(part).weight
        s = np.full(len(gain), 1.0 / len(gain)) if weight is None else weight / max(float(weight.sum()), 1e-300)
        mean = float(s @ gain)
        return mean > CLEAR * math.sqrt(float(s**2 @ (gain - mean) ** 2))
