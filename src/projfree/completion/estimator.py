"""`MatrixCompletion`: complete a matrix of ratings over a Schatten ball, with a certificate."""

from __future__ import annotations

import math
import os
import sys
import warnings
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from projfree import persist
from projfree.checks import Array, at_least, count, positive, shown, stacklevel
from projfree.completion.als import (
    ALS,
    INITIAL_SHARE,
    ALSState,
    estimate_strength,
    max_strength,
    min_strength,
    transfer,
)
from projfree.completion.bias_terms import MIN_RIDGE
from projfree.completion.certificate import CertifiedModel, certify, reduce_gap
from projfree.completion.features import FeatureTable, align_features
from projfree.completion.model import Factors, OffsetModel
from projfree.completion.problem import CompletionProblem, Settings
from projfree.completion.ratings import LABEL_KINDS, Ratings, RatingTriples, check_label_kind, read_ratings
from projfree.completion.recommend import Recommender
from projfree.completion.selection import (
    WEIGHTS,
    ValidationSet,
    count_path_sweeps,
    robust_range,
    run_sweeps,
    select_penalty,
)
from projfree.deadline import deadline, expired
from projfree.estimators.base import progress, warn_about_gap
from projfree.estimators.robust import HUBER, robust_scale, weighted_median
from projfree.losses import Huber, Logistic, Loss, Squared
from projfree.losses.squared import is_squared
from projfree.numerics.lp_norm import lp_norm
from projfree.run import Checkpoint, Status
from projfree.run.callbacks import announce, as_callbacks, closing, print_iteration
from projfree.run.checkpoint import SavedRun
from projfree.run.result import raise_if_interrupted

LOSSES = {"squared": Squared, "huber": Huber, "logistic": Logistic}
#: Share of the ratings in the validation set that chooses the radius; with fewer ratings there is none.
VALIDATION_SHARE, MIN_RATINGS = 0.1, 20
#: Ratio of the penalty to its first value below which the radius is larger than needed.
MIN_STRENGTH_RATIO = 1e-3
#: Default maximum of the final sweeps, after a choice of the penalty and without one.
SWEEPS_AFTER_SEARCH, MAX_SWEEPS = 3, 15
#: Range of ratings below which implicit features, zeros and ones, would dominate, and are not tried.
MIN_SPREAD = 0.05
#: Largest difference of ratings from their base, inverse of the smallest, and largest weight of side information
#: relative to squared differences, so that squares do not overflow in single precision.
MAX_RANGE = 1e15


class MatrixCompletion(Recommender, RegressorMixin, BaseEstimator):
    r"""Complete a matrix from some of its entries, over a ball of a weighted Schatten norm.

    .. math:: \min_{\|D_r X D_c\|_{S_p} \le r,\ b}\ \frac1n\sum_i \ell(X_{u_i v_i} + b_0 + b_{u_i} + b_{v_i}, y_i)
              + \frac{\text{ridge}}{n} \|b\|^2

    Alternating least squares (ALS) finds a good solution fast, and the convex problem gives a certificate of how far
    from optimal it is (``relative_gap_``). `certify_to` continues until the gap is small. The diagonal weights D are
    smoothed numbers of ratings to the power 1/4.

    Parameters
    ----------
    p : float, default 1.0
        The exponent of the Schatten norm, from 1 (the nuclear norm) to below 2, where the solution has a closed form
        that is zero at unobserved entries.
    radius : float, optional
        The radius of the ball. By default the fit has a penalty in place of a radius, chosen on a validation set of a
        tenth of the ratings; ``radius_`` is then the norm of the solution, which is also optimal over the ball of this
        radius.
    loss : {"squared", "huber", "logistic"} or Loss
        ``"logistic"`` is for ratings with two values, such as likes. The scale of ``"huber"`` is estimated, as in
        `ConstrainedRegressor`: 1.345 times a robust standard deviation of the residuals of a fit of offsets alone. With
        losses other than squares the base is the median of the ratings, and validation ratings are clipped at five
        robust standard deviations.
    offsets : bool or tuple of three bool
        Whether to fit offsets: a common one, one per user, and one per item.
    ridge : float
        The ridge penalty of an offset, in units of ratings.
    implicit : "auto" or float
        The weight w of implicit features: the indicator of which items a user has rated is completed as well, see
        Notes. By default it is chosen from 0 and 1 together with the penalty, and is 0 if the radius is given.
    user_features, item_features : array, sparse matrix, frame or tuple, optional
        Features of users and items, a row for each id: a data frame with the ids in its index or in the column that has
        their name in the ratings, ``(ids, table)``, or a table whose rows belong to the ids 0, 1, and so on. They are
        completed along with the ratings, see Notes. Each user (item) in the ratings must have a row; users with
        features only are predicted from these. NaN is replaced by the mean of its column. They are parameters because
        scikit-learn would split arguments of `fit` along with the ratings.
    rank : int
        Rank of the factors in ALS. The solution of `certify_to` may have a larger rank.
    max_sweeps : int, optional
        Maximum number of sweeps after the choice of the penalty, by default 3, or 15 if there was none; ``n_iter_`` is
        the actual number.
    certify : bool or "sharp"
        Whether to compute the certificate. By default it uses a cheap bound if there are more than 3,000 users and
        items each; ``"sharp"`` always computes the tight one.
    time_limit : float, optional
        Seconds after which no further sweep is started. The final offsets and the certificate are not included.
    columns : tuple of str
        Names or numbers of the columns of a data frame: users, items, ratings.
    callbacks : sequence of callables
        Called after each sweep and each convex iteration. If one returns True, the fit ends with the best model so far;
        during the choice of the penalty, the final sweeps follow. A `Checkpoint` saves the final sweeps, and another
        fit of the same problem resumes from it.
    verbose : int
        0 is silent, 1 shows a progress bar, 2 prints a line for each sweep.
    random_state : int, RandomState or None
        Seed of the initial factors and of the validation set.

    Attributes
    ----------
    user_ids_, item_ids_ : ndarray
        The sorted ids.
    factors_ : Factors
        Factors, offsets and singular values.
    offset_model_ : OffsetModel
        Optimal offsets with a zero matrix, and the number of ratings of each user and item.
    radius_, norm_ : float
        The radius, and the norm of the solution.
    value_, bound_, relative_gap_ : float
        The objective, a certified lower bound on its minimum over the ball, and the relative gap; NaN without
        certificate.
    settings_ : Settings
        The parameters of the fitted problem: loss, exponent, ridge, offsets and ``implicit``. Later changes by
        `set_params` affect the next fit only.
    n_iter_ : int
        Number of sweeps after the choice of the penalty.

    Notes
    -----
    With a weight w of implicit features the problem is

    .. math:: \min_{M = \begin{pmatrix} X & S \\ T & \cdot \end{pmatrix},\ b}\ f(X, b)
              + \frac wn \bigl(\|B - S\|_F^2 + \|B - T\|_F^2\bigr)

    with f the objective above, B the 0/1 matrix of the fitted ratings, and the extended matrix M in the ball, where the
    further rows and columns have the weight one. The problem is convex, and the certificate covers all of it. Features
    of users are further columns of S, and those of items further rows of T, each entry with the weight of a rating.
    Dense features are centred, and all are scaled to unit root mean square.

    If a user rates an item twice, the later rating counts. Pairs in which the user or the item has no ratings, or is
    unknown, are predicted by ``offset_model_``, the offsets fitted without a matrix, because the offsets fitted with a
    matrix do not contain what the matrix has absorbed. The prediction of a ridge regression of offsets and factors on
    the features is added.

    Examples
    --------
    >>> from projfree import MatrixCompletion
    >>> ratings = [("ann", "up", 5.0), ("ann", "heat", 3.0), ("bob", "up", 4.0), ("cy", "heat", 2.0), ("cy", "up", 4.0)]
    >>> model = MatrixCompletion(radius=1.0, rank=2).fit(ratings)
    >>> model.predict([("bob", "heat"), ("dan", "up")]).round(1)
    array([3.4, 4. ])
    >>> model.relative_gap_ < 0.1
    True
    """

    #: Classes of fitted attributes, which `load` may create.
    _saved_types = (Factors, FeatureTable, OffsetModel, Settings, Ratings)

    def __init__(
        self,
        p: float = 1.0,
        radius: float | None = None,
        *,
        loss: Any = "squared",
        offsets: Any = True,
        ridge: float = 3.0,
        implicit: Any = "auto",
        user_features: Any = None,
        item_features: Any = None,
        rank: int = 40,
        max_sweeps: int | None = None,
        certify: Any = True,
        time_limit: float | None = None,
        columns: tuple[str | int, ...] = ("user", "item", "rating"),
        callbacks: Any = (),
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.p, self.radius, self.loss, self.offsets, self.ridge = p, radius, loss, offsets, ridge
        self.implicit, self.user_features, self.item_features = implicit, user_features, item_features
        self.rank, self.max_sweeps, self.certify, self.time_limit = rank, max_sweeps, certify, time_limit
        self.columns, self.callbacks, self.verbose, self.random_state = columns, callbacks, verbose, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False  # X may contain the ratings
        return tags

    # ------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to ratings.

        Parameters
        ----------
        X : sparse matrix, dense matrix, data frame, triples, pairs or tuple of arrays
            The stored entries of a SciPy matrix, including zeros; a dense matrix with NaN for missing ratings; a data
            frame with the columns ``columns``; rows ``(user, item, rating)``; pairs ``(user, item)`` with ``y``; or
            arrays ``(users, items, ratings)``.
            Ratings, if ``X`` has none.
        sample_weight : array, optional
            A weight for each rating; only their ratios matter. The loss is a weighted mean; the terms of implicit
            features, of features and of the ridge are divided by the number of ratings.
        """
        with self._run_context() as callbacks:
            new = self._setup(read_ratings(X, y, self.columns, sample_weight))
            new._fit(callbacks, into=self)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add ratings of known or new users and items, and continue from the last solution.

        The penalty increases with the square root of the number of ratings, as in `fit`. The problem keeps the
        parameters of the fit (``settings_``).
        """
        if not hasattr(self, "factors_"):
            return self.fit(X, y, sample_weight)
        old, given = self.ratings_, read_ratings(X, y, self.columns, sample_weight)
        if (old.weight is None) != (given.weight is None):
            raise ValueError("`partial_fit` needs `sample_weight` if, and only if, the first fit had it.")
        self._check_params()
        check_label_kind("users", self.user_ids_, given.users)
        check_label_kind("items", self.item_ids_, given.items)
        new = copy(self)
        new._set_ids(np.union1d(self.user_ids_, given.users), np.union1d(self.item_ids_, given.items), self)
        rows, cols = np.searchsorted(new.user_ids_, self.user_ids_), np.searchsorted(new.item_ids_, self.item_ids_)
        new._set_ratings(given, (rows[old.rows], cols[old.indices], old.values, old.weight))
        with self._run_context() as callbacks:
            f = new._problem(new.ratings_)
            new.offset_model_ = OffsetModel.of(f)
            strength = self.strength_ * math.sqrt(len(new.ratings_) / len(old))
            new._fit(callbacks, self, transfer(f, self.factors_, strength, rows, cols), strength)
        return self

    @contextmanager
    def _run_context(self, seconds: float | None = None) -> Any:
        """Provide the callbacks within the time limit, and close them afterwards."""
        shown = [SweepLog()] if self.verbose == 2 else progress(self.verbose)
        callbacks = [*(() if self.callbacks is None else as_callbacks(self.callbacks)), *shown]
        with closing(callbacks), deadline(self.time_limit if seconds is None else seconds):
            yield callbacks

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    # ------------------------------------------------------------ the problem

    def _setup(self, given: RatingTriples) -> Self:
        """Return a copy with checked parameters and these ratings, without a model."""
        loss, new = self._check_params(), copy(self)
        new.__dict__.pop("factors_", None)
        if given.shape is None:
            new._set_ids(np.unique(given.users), np.unique(given.items))
        else:
            new._set_ids(*map(np.arange, given.shape))
        new._set_ratings(given)
        every, users, items = (self.offsets,) * 3 if isinstance(self.offsets, bool) else self.offsets
        new._set_problem(Settings(loss, float(self.p), float(self.ridge), (bool(every), bool(users), bool(items))))
        return new

    def _set_ids(self, users: Array, items: Array, fitted: Any = None) -> None:
        """Set the ids, including those with features only, and the features in the same order."""
        for side, (of, ids) in enumerate((("user", users), ("item", items))):
            name = f"{of}_features"
            given, table = getattr(self, name), getattr(fitted, f"{name}_", None)
            if given is not None:
                ids, table = align_features(name, f"{of}s", given, self.columns[side], ids, table)
            elif table is not None and table.shape[0] < len(ids):
                raise ValueError(f"`{name}` must have a row for each of the new {of}s; set it to one that has them.")
            setattr(self, f"{name}_", table)
            setattr(self, f"{of}_ids_", ids)

    def _set_ratings(self, given: RatingTriples, old: tuple[Any, ...] | None = None) -> None:
        """Set the matrix of ratings with nonzero weight, appended to ``old`` ratings."""
        if given.weight is not None and not given.weight.all():
            given = given.subset(given.weight > 0.0)
        rows = np.searchsorted(self.user_ids_, given.users).astype(np.int32)
        cols = np.searchsorted(self.item_ids_, given.items).astype(np.int32)
        parts: tuple[Any, ...] = rows, cols, given.values, given.weight
        if old is not None:
            parts = tuple(None if b is None else np.concatenate([a, b]) for a, b in zip(old, parts, strict=True))
        rows, cols, values, weight = parts
        self.ratings_ = Ratings.of(rows, cols, values, weight, (len(self.user_ids_), len(self.item_ids_)))
        values, self._seed = self.ratings_.values, self._draw_seed()
        self.rating_range_ = float(values.min()), float(values.max())
        self.rating_deviation_ = float(values.std()) or 1.0

    def _set_problem(self, settings: Settings) -> None:
        """Determine the base, the scale of the loss, and the candidate weights of implicit features."""
        ratings, loss, chosen = self.ratings_, settings.loss, isinstance(self.implicit, str)
        values, weight = ratings.values, ratings.weight
        centre = np.average(values, weights=weight) if is_squared(loss) else weighted_median(values, weight)
        base = float(centre) if settings.kinds[0] and not loss.labels else 0.0
        size = usual = float(np.abs(values - base).max())
        if not is_squared(loss) and not loss.labels:
            usual = float(np.abs(np.clip(values, *robust_range(values, weight)) - base).max())
        features = self.user_features_ is not None or self.item_features_ is not None
        beside = max(float(features), 0.0 if chosen else float(self.implicit)) * (not loss.labels)
        least = max(1.0 / MAX_RANGE, math.sqrt(beside / MAX_RANGE))
        if size > MAX_RANGE or 1e-14 * abs(base) < usual < least:
            raise ValueError(
                f"`ratings` must differ by between {least:g} and {MAX_RANGE:g}, got {usual:.3g}; multiply them by a "
                "number."
            )
        self._weights = (
            (WEIGHTS if loss.labels or usual >= MIN_SPREAD else (0.0,)) if chosen else (float(self.implicit),)
        )
        self.settings_ = replace(settings, base=base, implicit=0.0 if chosen else self._weights[0])
        if self.loss == "huber":
            self.settings_ = replace(self.settings_, loss=Huber(HUBER * robust_scale(values, weight)))
            entries = self._problem(ratings).entries
            left = values - entries.offsets(entries.offsets_only)
            self.settings_ = replace(self.settings_, loss=Huber(HUBER * robust_scale(left, weight)))
        self.offset_model_ = OffsetModel.of(self._problem(ratings))

    def _problem(self, ratings: Ratings) -> CompletionProblem:
        """Build the problem of some ratings, with the features of users and items."""
        user, item = (None if table is None else table.entries for table in (self.user_features_, self.item_features_))
        return CompletionProblem(self._encode_ratings(ratings), self.settings_, (user, item))

    # ------------------------------------------------------------ the solution

    def _fit(
        self, callbacks: list[Any], into: MatrixCompletion, model: Factors | None = None, strength: float | None = None
    ) -> None:
        """Fit the ratings: from a model, with a given penalty, from a checkpoint, or from random factors.

        The fitted attributes of ``into`` are set at the end, so that a fit that fails leaves it unchanged.
        """
        others = [callback for callback in callbacks if not isinstance(callback, Checkpoint)]
        saving = [callback for callback in callbacks if isinstance(callback, Checkpoint) and model is None]
        checkpoint = SavedRun.load(saving[0].path) if saving and persist.exists(saving[0].path) else None
        note: dict[str, Any] = {"strength": strength, "implicit": self.settings_.implicit, "begun": model is not None}
        if checkpoint is not None:
            note |= checkpoint.note
        elif self.radius is None and strength is None:
            strength, implicit, model = self._select_penalty(others)
            note = {"strength": strength, "implicit": implicit, "begun": model is not None}
        strength = note["strength"]
        self.settings_ = replace(self.settings_, implicit=float(note["implicit"]))
        f = self._problem(self.ratings_)
        solver = ALS(self.rank, None if self.radius is not None else strength)
        state = None
        if model is not None:
            state = solver.resume(f, transfer(f, model, strength), self._seed, strength)
        most = self.max_sweeps or (SWEEPS_AFTER_SEARCH if note["begun"] else MAX_SWEEPS)
        announce(others, "sweeps", most)
        state, status = run_sweeps(
            f,
            solver,
            state,
            radius=1.0 if self.radius is None else float(self.radius),
            seed=self._seed,
            callbacks=[*others, *(replace(callback, note=note) for callback in saving)],
            max_iter=most,
            checkpoint=checkpoint,
        )
        self.n_iter_, self.strength_ = state.t, float(state.strength)
        if math.isnan(self.strength_):  # the time limit was reached before the first sweep
            self.strength_ = max_strength(f)
        fitted = Factors.of_point(f, state.x, state.sigma).with_exact_sigma(f)
        if not state.t:
            with deadline(None, ignore_outer=True):
                fitted = fitted.with_offsets(np.asarray(f.open().evaluate(fitted.point(f), tangent=False).intercept))
        norm = fitted.norm(f.p)
        # The solution of a penalised problem also minimises over the ball of its own norm.
        self.radius_ = max(norm * (1.0 + 1e-12), f.min_radius) if self.radius is None else float(self.radius)
        self._set_certified_model(CertifiedModel(fitted.scaled_into_ball(f.p, self.radius_)))
        into.__dict__.update({name: value for name, value in vars(self).items() if name.endswith("_")})
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt(f"interrupted after {self.n_iter_} sweeps")
        # If the constraint is not active, the adapted penalty decreases without end.
        fallen = self.strength_ <= max(MIN_STRENGTH_RATIO * state.first, min_strength(f, state.first))
        if self.radius is not None and fallen and self.radius > f.min_radius and norm < 0.9 * self.radius:
            warnings.warn(
                f"`radius={self.radius:g}` is larger than these ratings need: the norm of the answer is {norm:.4g}, so "
                "the ball does not hold it back; choose a smaller radius, or leave it out.",
                stacklevel=stacklevel(),
            )
        if self.certify:
            announce(others, "certificate")
            del fitted, state  # to free memory: they are as large as the model
            f.entries.regressions.clear()
            with deadline(None, ignore_outer=True):
                into._set_certified_model(certify(f, self.factors_, self.radius_, sharp=self.certify == "sharp"))

    def _set_certified_model(self, model: CertifiedModel) -> None:
        """Set the attributes of a model and its certificate at once, so that Ctrl-C cannot come between them."""
        attributes = {f"{name}_": value for name, value in model._asdict().items()}
        self.__dict__.update(attributes | {"norm_": model.factors.norm(self.settings_.p)})

    def _select_penalty(self, callbacks: list[Any]) -> tuple[float, float, Factors | None]:
        """Choose the strength, the weight of implicit features and the model on a validation set.

        With too few ratings, or equal ones, the strength is a fixed share of the largest one, and implicit features are
        used only if ``implicit`` is given.
        """
        ratings, n = self.ratings_, len(self.ratings_)
        if n < MIN_RATINGS or np.allclose(ratings.values, self.settings_.base, rtol=1e-14, atol=0.0):
            return INITIAL_SHARE * max_strength(self._problem(ratings)), self.settings_.implicit, None
        out = np.zeros(n, dtype=bool)
        out[np.random.default_rng(self._seed).permutation(n)[: max(int(VALIDATION_SHARE * n), 1)]] = True
        fitted = ratings.subset(~out)
        held = ValidationSet.of(self._encode_ratings(ratings.subset(out)), self._encode_ratings(fitted), self.loss_)
        announce(callbacks, "path", count_path_sweeps(self._weights))
        with deadline(None if self.time_limit is None else 0.5 * self.time_limit):  # leave half for the final fit
            best = select_penalty(self._problem(fitted), self._weights, self.rank, self._seed, held, callbacks)
        # The strength is proportional to the square root of the number of ratings.
        return best.strength * math.sqrt(n / len(fitted)), best.implicit, best.model

    def certify_to(self, tol: float, *, time_limit: float | None = None, max_iter: int = 1000) -> Self:
        """Continue until the relative gap is at most ``tol``, or a limit is reached.

        Accelerated projected gradient steps start from the model. They never increase the value or decrease the bound.
        If the tolerance is not reached, a `ConvergenceWarning` is issued.
        """
        check_is_fitted(self, "factors_")
        tol, max_iter = at_least("certify_to(tol=...)", tol, 0.0), count("certify_to(max_iter=...)", max_iter)
        if time_limit is not None:
            positive("certify_to(time_limit=...)", time_limit)
        f = self._problem(self.ratings_)
        with self._run_context(math.inf if time_limit is None else time_limit) as callbacks:
            if not math.isfinite(self.value_):
                with deadline(None, ignore_outer=True):
                    self._set_certified_model(certify(f, self.factors_, self.radius_, sharp=False))
            current = CertifiedModel(self.factors_, self.value_, self.bound_, self.relative_gap_)
            if current.relative_gap <= tol:
                return self
            if expired():
                warn_about_gap(self, Status.TIME_LIMIT, 0, current.relative_gap, tol)
                return self
            announce(callbacks, "convex solver")
            improved, result = reduce_gap(f, current, self.radius_, tol, callbacks, max_iter)
            if improved.factors is not current.factors:
                self.strength_ = estimate_strength(f, improved.factors)  # for `fold_in` and `partial_fit`
            self._set_certified_model(improved)
            raise_if_interrupted(result)
            if not (result.status.converged or result.status is Status.CALLBACK or self.relative_gap_ <= tol):
                warn_about_gap(self, result.status, result.n_iter, self.relative_gap_, tol)
        return self

    # ------------------------------------------------------------ parameters

    def _check_params(self) -> Loss:
        """Check the parameters, and return the loss, whose scale is not yet known."""
        name = "MatrixCompletion({}=...)".format
        if at_least(name("p"), self.p, 1.0) >= 2.0:
            raise ValueError(
                f"`{name('p')}` must be below 2, got {shown(self.p)}: beyond, the answer says nothing about entries "
                "that were not observed; `minimize` over a SchattenBall solves it."
            )
        at_least(name("ridge"), self.ridge, MIN_RIDGE)
        for size in ("radius", "time_limit", "implicit"):
            if (value := getattr(self, size)) is not None and not (size == "implicit" and value in ("auto", 0)):
                positive(name(size), value)
        for number in ("rank", "max_sweeps"):
            if (value := getattr(self, number)) is not None or number == "rank":
                count(name(number), value)
        loss = LOSSES[self.loss]() if isinstance(self.loss, str) and self.loss in LOSSES else self.loss
        three = "three: for all, for each user, for each item"
        rules = {
            "certify": (self.certify in (True, False, "sharp"), "a bool or 'sharp'"),
            "offsets": (isinstance(self.offsets, bool) or _is_triple(self.offsets, bool), f"a bool or {three}"),
            "columns": (_is_triple(self.columns, str, int), "the names of three columns, of users, items and ratings"),
            "loss": (isinstance(loss, Loss), f"one of {', '.join(LOSSES)}, or a Loss"),
        }
        for setting, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"`{name(setting)}` must be {rule}, got {shown(getattr(self, setting))}.")
        progress(self.verbose)
        check_random_state(self.random_state)
        checked: Loss = loss
        return checked

    # ------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model and its ratings to a folder, without pickle; `projfree.load` reads it."""
        from projfree.estimators.saving import save

        check_is_fitted(self, "factors_")
        save(self, path)

    def _check_fitted(self) -> None:
        """Check the types, shapes and consistency of the fitted attributes of a loaded model."""
        from projfree.estimators.saving import check_finite, require

        self._check_params()
        given, f, alone, ratings = self.settings_, self.factors_, self.offset_model_, self.ratings_
        numbers = check_finite("settings_", np.array([given.p, given.ridge, given.base, given.implicit]))
        require(1.0 <= given.p < 2.0 and numbers[1] > 0.0 and numbers[3] >= 0.0, "settings_ are out of range")
        require(isinstance(given.loss, Loss) and len(given.kinds) == 3, "settings_ are no settings")
        for name in ("radius_", "norm_", "strength_", "n_iter_", "rating_deviation_"):
            check_finite(name, getattr(self, name), ())
        check_finite("rating_range_", np.array([*self.rating_range_, f.shift, f.base, alone.shift]), (5,))
        sides = (
            (self.user_ids_, self.user_features_, f.rights, self.item_ids_, (f.rows, alone.rows, alone.row_counts)),
            (self.item_ids_, self.item_features_, f.lefts, self.user_ids_, (f.cols, alone.cols, alone.col_counts)),
        )
        for labels, table, beyond, others, parts in sides:
            require(labels.ndim == 1 and labels.dtype.kind in LABEL_KINDS, "labels are no labels")
            width, lines = 0 if table is None else table.shape[1], len(others) * (1 + (given.implicit > 0.0))
            check_finite("the factors", beyond, (lines + width, len(f.sigma)))
            require(table is None or _is_compressed(table, len(labels)), "its features are damaged")
            for part in parts:
                check_finite("the offsets", part, labels.shape)
        check_finite("the singular values", f.sigma)
        require(ratings.n_items == len(self.item_ids_) and _is_compressed(ratings, len(self.user_ids_)), "bad ratings_")


class SweepLog:
    """Callback that prints a line for each sweep and each convex iteration to the standard error stream."""

    stage = ""

    def begin(self, stage: str, most: int | None) -> None:
        """Set the name of the stage of the fit."""
        self.stage = stage

    def __call__(self, run: Any) -> None:
        """Print the line of an iteration."""
        if not isinstance(run.state, ALSState):
            print_iteration(run)
            return
        norm, strength = lp_norm(run.state.sigma, run.f.p), run.state.strength
        sys.stderr.write(f"{self.stage:<6} sweep {run.iteration:3d}  penalty {strength:<10.4g}  norm {norm:.6g}\n")


def _is_triple(values: Any, *kinds: type) -> bool:
    """Return whether ``values`` is a tuple or list of three values of these types."""
    return isinstance(values, tuple | list) and len(values) == 3 and all(isinstance(value, kinds) for value in values)


def _is_compressed(table: FeatureTable | Ratings, lines: int) -> bool:
    """Return whether the arrays form a valid CSR matrix of finite values."""
    indptr, indices, values = table.indptr, table.indices, table.values
    valid = indptr.dtype.kind == indices.dtype.kind == "i" and indptr.shape == (lines + 1,)
    ordered = valid and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all()) and indptr[-1] == len(indices)
    inside = ordered and (not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < table.shape[1]))
    return inside and values.shape == indices.shape and bool(np.isfinite(values).all())
