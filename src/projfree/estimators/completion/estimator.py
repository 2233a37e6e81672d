"""`MatrixCompletion`: ratings in, ratings and recommendations out, over a Schatten ball, with a certificate."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from projfree.estimators.completion.held_out import KnownPairs
from projfree.estimators.completion.labels import refuse_other_kind
from projfree.estimators.completion.observed import Observed
from projfree.estimators.completion.ratings import weighted_ratings
from projfree.estimators.completion.recommendations import Recommender
from projfree.estimators.completion.saved import SavedCompletion
from projfree.estimators.completion.settings import check_settings, refuse_changes, stated
from projfree.estimators.completion.stages import Stages
from projfree.estimators.completion.stopping import watched


class MatrixCompletion(Recommender, Stages, SavedCompletion, RegressorMixin, BaseEstimator):
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
        With losses other than squares the base is the median of the ratings, and ratings that are held out count as at
        most five robust deviations away from it.
    offsets : bool or tuple of three bool
        Whether offsets are fitted: for all, for each user, for each item.
    ridge : float
        The penalty of an offset, in ratings.
    implicit : "auto" or float
        The weight w of implicit features: which items a user has rated is completed as well, see Notes. By default
        chosen from 0, 0.5 and 1 on held-out ratings where the radius is, else 0; the squares of zeros and ones are
        compared with those of ratings, so that these should not differ by much less than one.
    weight_power : float
        The power a of the smoothed row and column frequencies in the norm; 0 is the plain norm.
    user_features, item_features : array, sparse matrix, frame, mapping or tuple, optional
        Numbers about users and items, a row for each id: a frame with the ids in the column of the ratings' name or as
        its index, ``{id: row}``, ``(ids, table)``, or a table alone, whose rows are those of the ids 0, 1, and so on.
        They are completed along with the ratings, see Notes. Whoever is in the ratings must have a row; others may, and
        are predicted from it. NaN is a number that is missing, also where it is stored in a sparse matrix, whose other
        entries are zeros. These are settings and not arguments of `fit` because scikit-learn would split the latter
        along with the ratings wherever they have as many rows.
    features_weight : float
        The weight of a feature, in ratings.
    rank : int
        Components of the sweeps. A certified answer may have more.
    max_sweeps : int, optional
        The largest number of sweeps after the choice of the radius, by default 3, since the choice leaves little to
        do, or 15 where there was none; ``n_iter_`` says how many were done.
    tol : float, optional
        Go on as `certify_to` does until the relative gap is at most this. By default the gap is computed, not reduced.
    solver : Solver, optional
        The convex solver, by default accelerated projected gradients.
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
        Seconds after which no further sweep, and no further iteration, is begun. What ends a fit comes on top: the best
        offsets, a certificate for what time is left, and the check at the exit of a convex solver that was begun.
    clip : bool
        Whether predictions are clipped to the range of the ratings seen.
    columns : tuple of str
        Names of the columns of a data frame; numbers where its columns have no others.
    callbacks : sequence of callables
        Called after every sweep and every convex iteration, such as `ProgressBar`. One that returns True ends the fit
        with the best model so far: during the choice of the radius ("path") the best penalty so far is taken, and the
        last sweeps, in which it is asked again, follow; during the sweeps the certificate follows, and ``tol`` is given
        up; in the convex solver nothing follows.
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
    offset_model_ : OffsetModel
        The best offsets without a matrix, and the number of ratings of each user and item.
    radius_, norm_ : float
        The radius, and the norm of the answer.
    value_, bound_, relative_gap_ : float
        The objective, a proven lower bound on its minimum over the ball, and their relative distance; NaN where not
        certified.
    coarse_ : bool
        Whether the bound was kept coarse to save time, so that ``certify="sharp"`` and `certify_to` prove more, or the
        smaller side is too long for a sharp one: more than 8,192 for p = 1, else more than 5,000.
    implicit_ : float
        The weight of implicit features.
    settings_ : SweepSettings
        Loss, exponent, power, ridge and offsets of the fit: what was changed by `set_params` since counts in the next.
    n_iter_ : int
        Sweeps done after the choice of the radius, at most ``max_sweeps``.
    n_sweeps_ : int
        All sweeps: those of the choice too, and of the fits that `partial_fit` went on from. By default the certificate
        takes no more products than they did.
    result_ : Result or None
        Of the convex solver, where it ran.

    Notes
    -----
    With a weight w of implicit features the problem is

    .. math:: \min_{M = \begin{pmatrix} X & S \\ T & \cdot \end{pmatrix},\ b}\ f(X, b)
              + \frac wn \bigl(\|B - S\|_F^2 + \|B - T\|_F^2\bigr)

    with f the objective above, B the 0/1 matrix of the ratings that were fitted, and M, whose further rows and columns
    have the weight one, in the ball: it stays convex, and the certificate covers all of it.

    Features of users are further columns of S, those of items further rows of T, with the weight ``features_weight``:
    dense columns are centred, and all are divided by their size. Missing ones have the weight zero. Users and items
    without ratings have no part in B.

    Where a user rates an item twice, the later rating counts. Pairs in which a user or an item has no ratings, or was
    never seen, are predicted by the best offsets without a matrix (``offset_model_``), since those beside a matrix lack
    what this has taken up; what features say is added: a ridge regression of offsets and factors on them.

    Examples
    --------
    >>> from projfree.estimators.completion import MatrixCompletion
    >>> ratings = [("ann", "up", 5.0), ("ann", "heat", 3.0), ("bob", "up", 4.0), ("cy", "heat", 2.0), ("cy", "up", 4.0)]
    >>> model = MatrixCompletion(radius=1.0, rank=2).fit(ratings)
    >>> model.predict([("bob", "heat"), ("dan", "up")]).round(1)
    array([3.4, 3.9])
    >>> model.relative_gap_ < 0.1
    True
    """

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
        user_features: Any = None,
        item_features: Any = None,
        features_weight: float = 1.0,
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
        columns: tuple[str | int, ...] = ("user", "item", "rating"),
        callbacks: Any = (),
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.p, self.radius, self.loss, self.offsets, self.ridge = p, radius, loss, offsets, ridge
        self.implicit, self.user_features, self.item_features = implicit, user_features, item_features
        self.features_weight = features_weight
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
            A weight for each rating, of which only the ratios count: the loss is a weighted mean, and the squares of
            implicit features, those of features and the ridge of offsets are over the number of ratings.
        """
        fresh = self._unfitted()
        fresh._checked()
        with watched(self.callbacks, self.time_limit):
            fresh._read(X, y, sample_weight)
            fresh.stated_ = stated(self)
            return self._take_fit(fresh)

    def prepare(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Check settings and ratings, and keep the latter."""
        self._checked()
        self._read(X, y, sample_weight)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> None:
        ratings = weighted_ratings(X, y, self.columns, sample_weight)
        assert ratings.values is not None
        self.settings_ = self._asked_settings()
        self.user_ids_, self.item_ids_ = self._ids(ratings)
        rows, cols = np.searchsorted(self.user_ids_, ratings.users), np.searchsorted(self.item_ids_, ratings.items)
        latest = Observed.latest(rows, cols, ratings.values, ratings.weight, len(self.item_ids_))
        self._take(latest, matrix=ratings.shape is not None)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add ratings, of known or new users and items, and go on from the last answer with the same penalty.

        The problem stays that of the fit: ``p``, ``loss``, ``offsets``, ``ridge``, ``implicit``, ``weight_power``,
        ``features_weight`` and the columns of features must be as they were; other settings that have been changed
        take effect. Pairs that were held out to stop early stay so, and of the new ones a part is.
        Where this raises or is interrupted, the model stays what it was, unless sweeps with the new ratings are done.
        """
        if not hasattr(self, "factors_"):
            return self.fit(X, y, sample_weight)
        old = self._need_ratings("partial_fit", "save it with `ratings=True`")
        asked = self._unfitted()
        asked.p = vars(self).get("p_", self.p)  # a search has chosen one
        check_settings(asked)
        refuse_changes(self)
        if (old.weight is None) != (sample_weight is None):
            raise ValueError("`partial_fit` needs `sample_weight` if, and only if, the first fit had it.")
        new = weighted_ratings(X, y, self.columns, sample_weight)
        assert new.values is not None
        refuse_other_kind("users", self.user_ids_, new.users)
        refuse_other_kind("items", self.item_ids_, new.items)
        fresh = self._unfitted()
        users, items = fresh._ids(new, self._known_ids)
        places = (self.user_ids_, users, self.item_ids_, items)
        begun = self.factors_.merged(*places, implicit=self.implicit_ > 0.0)
        rows = np.concatenate([np.searchsorted(users, self.user_ids_)[old.rows], np.searchsorted(users, new.users)])
        cols = np.concatenate([np.searchsorted(items, self.item_ids_)[old.cols], np.searchsorted(items, new.items)])
        weight = None if old.weight is None or new.weight is None else np.concatenate([old.weight, new.weight])
        before = KnownPairs(rows[: len(old)], cols[: len(old)], self.held_out_)
        fresh.user_ids_, fresh.item_ids_ = users, items
        with watched(self.callbacks, self.time_limit):
            latest = Observed.latest(rows, cols, np.concatenate([old.values, new.values]), weight, len(items))
            fresh._take(latest, before)
            fresh.implicit_ = self.implicit_
            return self._take_fit(fresh, begun)
