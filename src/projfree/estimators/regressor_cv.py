"""`ConstrainedRegressorCV`: regression over a ball whose radius is chosen by cross-validation."""

from __future__ import annotations

from typing import Any

from projfree.estimators.cv import SearchMixin
from projfree.estimators.regressor import ConstrainedRegressor
from projfree.estimators.sklearn_callbacks import with_callbacks


class ConstrainedRegressorCV(SearchMixin, ConstrainedRegressor):
    """ConstrainedRegressor with radius and exponent chosen by cross-validation along warm-started paths.

    Parameters
    ----------
    loss, quantile, norm, q, fit_intercept, solver, tol, max_iter, time_limit, standardize
        As in `ConstrainedRegressor`.
    p : float or sequence of float
        The exponent of the norm, or several to choose from.
    radii : int or array
        The radii to try, or how many. A number asks for a geometric grid around the norm of the coefficients of a
        ridge penalty on all rows, from that norm divided by 30 to 30 times it, for each p; where the best radius is at
        an end, the grid goes on there, at most three times and each time by a factor of 30. Radii that are given are
        all that is tried; where the best one is at an end, a warning says so.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default.
    scoring : str or callable, optional
        What is maximised; by default the coefficient of determination. Sample weights reach it where it takes some.
    rule : {"best", "one_standard_error"}
        The radius with the best mean score, or the smallest one within a standard error of it (for the best p).
    random_state, positive, feature_groups, free, task
        As in `ConstrainedRegressor`.
    n_jobs : int, optional
        Processes of joblib over exponents and folds.
    verbose : int
        0 is silent; 1 shows a progress bar over exponents and folds on a terminal, and one for the final fit; 2 writes
        a line for each iteration of the final fit.
    callbacks : callable or sequence of callables
        As in `ConstrainedRegressor`, for the runs of the final fit: one, or one for each radius up to the largest.

    Attributes
    ----------
    radius_, p_ : float
        The choice.
    radii_ : ndarray of shape (n_p, n_radii)
        What was tried.
    scores_ : ndarray of shape (n_p, n_radii, n_folds)
    cv_results_ : dict
        As in scikit-learn's ``GridSearchCV``, an entry for each p and radius; ``mean_fit_time`` is that of a path
        divided by its radii.
    best_index_, best_params_ : int and dict
        The place of the choice in ``cv_results_``.
    extended_ : tuple of int
        How many radii were added below and above an automatic grid; a log record says so too.
    best_score_ : float
        The mean score of the choice.
    path_ : RadiusPath
        Coefficients, multipliers, values and gaps over all radii for the chosen p, from all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where ``X`` has names.

    All other attributes are those of `ConstrainedRegressor` for the chosen radius, fitted on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import ConstrainedRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 10))
    >>> y = X[:, 0] - X[:, 1] + rng.standard_normal(100)
    >>> model = ConstrainedRegressorCV(p=[1, 2], radii=8).fit(X, y)
    >>> model.p_, model.scores_.shape, model.path_.coefs.shape
    (1.0, (2, 8, 5), (8, 10))
    """

    _kind = ConstrainedRegressor
    _searches = True

    def __init__(
        self,
        loss: Any = "squared",
        *,
        norm: Any = "lp",
        p: Any = 2.0,
        q: float | None = None,
        radii: Any = 20,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        standardize: Any = False,
        random_state: Any = None,
        positive: bool = False,
        feature_groups: Any = None,
        free: Any = None,
        task: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = (),
        quantile: float = 0.5,
    ) -> None:
        self.loss = loss
        self.norm = norm
        self.p = p
        self.q = q
        self.radii = radii
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.standardize = standardize
        self.random_state = random_state
        self.positive = positive
        self.feature_groups = feature_groups
        self.free = free
        self.task = task
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.quantile = quantile

    warm_start = False

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None, **params: Any
    ) -> ConstrainedRegressorCV:
        """Choose radius and exponent, and fit all rows with them.

        Parameters
        ----------
        X : array, SciPy sparse or data frame of shape (n, d), Dask collection, path or Data
        y : array of shape (n,) or (n, k), or with Parquet the name of a column
        sample_weight : array of shape (n,), optional
        client : distributed.Client, optional
            As in `ConstrainedRegressor.fit`.
        **params
            ``groups`` for the splitter; with metadata routing anything that splitter and scorer ask for.
        """
        self._search(X, y, sample_weight, params, client)
        return self
