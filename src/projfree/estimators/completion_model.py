"""What a fitted completion does: predict, recommend, fold in, score, save and load."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from projfree import persist
from projfree.algebra import Pattern
from projfree.checks import Array, count, shown
from projfree.estimators.alternating import Alternating, Factors
from projfree.estimators.ratings import places, read_ratings
from projfree.estimators.saved_model import DamageError, checked_parameters, finite, need
from projfree.losses.base import Loss
from projfree.losses.squared import is_squared

KIND, CHECKPOINT = "projfree matrix completion", "projfree matrix completion checkpoint"
NUMBERS = ("base_", "radius_", "norm_", "strength_", "value_", "bound_", "relative_gap_", "n_iter_")
ARRAYS = ("user_ids_", "item_ids_", "_rows", "_cols", "_values", "_weight")


class CompletionModel:
    """The part of `MatrixCompletion` that needs no solver."""

    get_params: Callable[..., dict[str, Any]]  # scikit-learn's
    result_: Any
    factors_: Factors
    user_ids_: Array
    item_ids_: Array
    rating_range_: tuple[float, float]
    loss_: Loss
    clip: bool
    columns: Any
    ridge: float
    checkpoint: Any
    _rows: Array
    _cols: Array
    _values: Array
    _weight: Array | None
    _problem: Callable[..., Any]
    _checked: Callable[[], None]

    def _margin(self, state: Factors, rows: Array, cols: Array) -> Array:
        """The prediction at places, -1 standing for what was never seen."""
        seen, known = rows >= 0, cols >= 0
        u = state.base + state.shift + np.where(seen, state.rows[rows], 0.0) + np.where(known, state.cols[cols], 0.0)
        both = seen & known
        u[both] += state.matrix.of_pairs(rows[both], cols[both])
        return np.asarray(u)

    def decision_function(self, X: Any) -> Array:
        """The model at pairs, before clipping; for the logistic loss the log-odds."""
        check_is_fitted(self, "factors_")
        pairs = read_ratings(X, None, self.columns, values=False)
        return self._margin(self.factors_, places(self.user_ids_, pairs.users), places(self.item_ids_, pairs.items))

    def predict(self, X: Any) -> Array:
        """Ratings of pairs ``(user, item)``; for the logistic loss the more likely of the two labels.

        A user or item that was never seen has no offset and no factors: its prediction falls back to what is known.
        """
        u = self.decision_function(X)
        if self.loss_.labels:
            low, high = self.rating_range_
            return np.where(u >= 0.0, high, low)
        return np.clip(u, *self.rating_range_) if self.clip else u

    def score(self, X: Any, y: Any = None) -> float:
        """The coefficient of determination of predicted ratings; for the logistic loss the accuracy."""
        from sklearn.metrics import accuracy_score, r2_score

        given = read_ratings(X, y, self.columns)
        predicted = self.predict((given.users, given.items))
        return float((accuracy_score if self.loss_.labels else r2_score)(given.values, predicted))

    def rmse(self, X: Any, y: Any = None) -> float:
        """The root mean squared error of predicted ratings."""
        given = read_ratings(X, y, self.columns)
        return float(np.sqrt(np.mean((self.predict((given.users, given.items)) - given.values) ** 2)))

    def recommend(self, user: Any, n: int = 10, exclude_seen: bool = True) -> tuple[Array, Array]:
        """The ``n`` items with the highest predictions for a user, and the predictions, before clipping."""
        check_is_fitted(self, "factors_")
        count("recommend(n=...)", n)
        place = int(places(self.user_ids_, np.asarray([user]))[0])
        if place < 0:
            raise ValueError(
                f"`recommend(user=...)` must be a user of the fit, got {shown(user)}; for a new one use `transform` "
                "or `partial_fit` with some ratings."
            )
        cols = np.arange(len(self.item_ids_))
        u = self._margin(self.factors_, np.full(len(cols), place), cols)
        if exclude_seen:
            u[self._cols[self._rows == place]] = -np.inf
        best = np.argsort(-u, kind="stable")[:n]
        best = best[np.isfinite(u[best])]
        return self.item_ids_[best], u[best]

    def transform(self, X: Any, y: Any = None) -> tuple[Array, Array]:
        """Fold in ratings of new users without refitting: labels, and a row ``(offset, coordinates)`` for each.

        The prediction for item j is the base and shift of the fit, the offset, the item's offset, and the inner product
        of the coordinates with the item's factors. Items never seen are ignored.
        """
        check_is_fitted(self, "factors_")
        given, f = read_ratings(X, y, self.columns), self.factors_
        users, rows = np.unique(given.users, return_inverse=True)
        cols = places(self.item_ids_, given.items)
        known = cols >= 0
        assert given.values is not None
        pattern, order, place = Pattern.of(rows[known], cols[known], (len(users), len(self.item_ids_)))
        values = given.values[known][order]
        if place is not None:
            last = np.flatnonzero(np.append(np.diff(place) > 0, True))
            values = values[last]
        problem, _ = self._problem(slice(None))
        start = replace(f, left=np.zeros((len(users), f.left.shape[1])), rows=np.zeros(len(users)))
        weights = np.full(len(users), float(np.median(problem.row_weights)))
        new = replace(problem, pattern=pattern, y=self.loss_.targets(values), weight=np.zeros(0), row_weights=weights)
        for _ in range(1 if is_squared(self.loss_) else 30):
            start = new.rows_only(start, self.strength_)
        return users, np.column_stack([start.rows, start.left])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder, atomically and without pickle."""
        check_is_fitted(self, "factors_")
        params = {name: _kept(name, value) for name, value in self.get_params(deep=False).items()}
        tree = {
            "params": params,
            "factors": _packed(self.factors_),
            "numbers": {name: getattr(self, name) for name in NUMBERS},
            "arrays": {name: getattr(self, name) for name in ARRAYS},
            "rating_range": list(self.rating_range_),
        }
        persist.save(path, tree, kind=KIND)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; settings that are functions, solvers or paths are as by default."""
        tree = persist.load(path, kind=KIND)
        try:
            return cls._from(tree)
        except Exception as error:  # settings are checked where they are made, each in its own way
            why = str(error) if isinstance(error, DamageError) else f"it holds no model ({type(error).__name__})"
            raise ValueError(f"{str(path)!r} is damaged: {why}; restore it from a copy, or save again.") from error

    @classmethod
    def _from(cls, tree: Any) -> Self:
        params = checked_parameters(cls, tree["params"])
        need(_three(params["columns"], str), "its columns have no names")
        params["columns"] = tuple(params["columns"])
        if isinstance(params["offsets"], list):
            need(_three(params["offsets"], bool), "its offsets are unknown")
            params["offsets"] = tuple(params["offsets"])
        model = cls(**params)
        model._checked()
        for name in NUMBERS:
            setattr(model, name, float(tree["numbers"][name]) if name != "n_iter_" else int(tree["numbers"][name]))
        for name in ARRAYS:
            setattr(model, name, tree["arrays"][name])
        low, high = (float(finite("rating_range_", value, ())) for value in tree["rating_range"])
        model.rating_range_, model.factors_ = (low, high), Factors(**tree["factors"])
        check_factors(model.factors_, len(model.user_ids_), len(model.item_ids_))
        model._check_ratings()
        model.result_ = None
        return model

    def _check_ratings(self) -> None:
        shape = (len(finite("the ratings", self._values)),)
        for at, ids in ((self._rows, self.user_ids_), (self._cols, self.item_ids_)):
            need(
                isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iuUSb", "its labels are no labels"
            )
            need(at.shape == shape and at.dtype.kind in "iu", "its ratings have no places")
            need(not len(at) or (at.min() >= 0 and at.max() < len(ids)), "its ratings are out of range")
        if self._weight is not None:
            finite("the weights", self._weight, shape)

    def _saver(self, problem: Alternating, data: Any, state: Factors, strength: float) -> Any:
        """What saves a sweep, and where to begin: at the checkpoint, if it is of this problem."""
        if self.checkpoint is None:
            return None, state, strength, 0
        settings = {k: str(v) for k, v in self.get_params(deep=False).items() if k not in VOLATILE}
        key = hashlib.sha256(f"{settings} {data.fingerprint()}".encode()).hexdigest()[:16]
        done = 0
        if persist.exists(self.checkpoint):
            tree = persist.load(self.checkpoint, kind=CHECKPOINT)
            if tree.get("key") != key:
                raise ValueError(
                    f"the checkpoint at {os.fspath(self.checkpoint)} is of other ratings or settings; remove the "
                    "folder, or name another one."
                )
            state, strength, done = _kept_state(tree, self)

        def keep(state: Factors, strength: float, done: int) -> None:
            tree = {"key": key, "factors": _packed(state), "strength": strength, "done": done}
            persist.save(self.checkpoint, tree, kind=CHECKPOINT)

        return keep, state, strength, done

    strength_: float


#: Settings that do not change what a sweep does.
VOLATILE = (
    "callbacks",
    "checkpoint",
    "sweeps",
    "time_limit",
    "tol",
    "solver",
    "max_iter",
    "certify",
    "clip",
    "columns",
)


def _packed(state: Factors) -> dict[str, Any]:
    return {f.name: getattr(state, f.name) for f in fields(state)}


def check_factors(state: Factors, users: int, items: int) -> None:
    """Raise where factors from a file are not those of so many users and items."""
    rank = finite("the factors", state.left).shape[-1]
    finite("the factors of users", state.left, (users, rank))
    finite("the factors of items", state.right, (items, rank))
    finite("the offsets of users", state.rows, (users,))
    finite("the offsets of items", state.cols, (items,))
    finite("the singular values", state.sigma)
    for value in (state.shift, state.base):
        finite("the base", value, ())


def _kept_state(tree: Any, model: Any) -> tuple[Factors, float, int]:
    """Where a checkpoint stands, or a sentence on what is wrong with it."""
    try:
        state = Factors(**tree["factors"])
        check_factors(state, len(model.user_ids_), len(model.item_ids_))
        return state, float(finite("the strength", tree["strength"], ())), int(tree["done"])
    except (DamageError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"the checkpoint at {os.fspath(model.checkpoint)} is damaged ({error}); remove the folder to begin anew."
        ) from error


def _three(values: Any, kind: type) -> bool:
    return isinstance(values, list) and len(values) == 3 and all(isinstance(value, kind) for value in values)


def _kept(name: str, value: Any) -> Any:
    if name in ("callbacks", "solver", "checkpoint"):
        return () if name == "callbacks" else None
    if isinstance(value, Loss):
        raise TypeError("`save` needs a loss given by name; fit with `loss='squared'`, 'huber' or 'logistic'.")
    return list(value) if isinstance(value, tuple) else value


def merged(state: Factors, users: Array, all_users: Array, items: Array, all_items: Array) -> Factors:
    """The state with rows of zeros for users and items that are new."""
    rows, cols = np.searchsorted(all_users, users), np.searchsorted(all_items, items)
    left, right = np.zeros((len(all_users), state.left.shape[1])), np.zeros((len(all_items), state.right.shape[1]))
    left[rows], right[cols] = state.left, state.right
    row_offsets, col_offsets = np.zeros(len(all_users)), np.zeros(len(all_items))
    row_offsets[rows], col_offsets[cols] = state.rows, state.cols
    return replace(state, left=left, right=right, rows=row_offsets, cols=col_offsets)
