"""What the estimators take, give and say."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from projfree import (
    AcceleratedProjectedGradient,
    BiWeight,
    ConstrainedClassifier,
    ConstrainedRegressor,
    FrankWolfe,
    Huber,
    LpBall,
    Minibatch,
    PrimalAveraging,
    Weighted,
    as_data,
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6)) * [1, 2, 1, 1, 5, 1] + [0, 0, 1, 0, 10, 0]
    return X, X @ [1.0, 0.5, 0.0, -1.0, 0.2, 0.0] + 3 + 0.3 * rng.standard_normal(120), rng.uniform(0.1, 2, size=120)


FORMS = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcdef")),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcdef")),
    "list": lambda X: X.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("standardize", [False, True])
def test_every_form_of_a_table_gives_the_same_model(table, form, standardize):
    X, y, s = table
    given = FORMS[form](X)
    plain = ConstrainedRegressor(p=1.5, standardize=standardize, tol=1e-9).fit(X, y, s)
    model = ConstrainedRegressor(p=1.5, standardize=standardize, tol=1e-9).fit(given, y, s)
    rtol = 1e-4 if form == "float32" else 1e-6
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=rtol, atol=1e-7)
    np.testing.assert_allclose(model.predict(given), plain.predict(X), rtol=1e-5, atol=1e-4)
    assert model.verify(given, y, s).ok
    if form in ("pandas", "polars"):
        assert list(model.feature_names_in_) == list("abcdef")
        assert list(model.coef_frame().index) == [*"abcdef", "intercept"]


def test_standardize_is_a_scaler_in_front(table):
    X, y, _ = table
    ours = ConstrainedRegressor(radius=0.7, standardize=True, tol=1e-10).fit(X, y)
    scaler = StandardScaler().fit(X)
    other = ConstrainedRegressor(radius=0.7, tol=1e-10).fit(scaler.transform(X), y)
    np.testing.assert_allclose(ours.coef_ * scaler.scale_, other.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.predict(X), other.predict(scaler.transform(X)), atol=1e-6)
    assert np.linalg.norm(ours.coef_ * scaler.scale_) <= 0.7 * (1 + 1e-9)


def test_sets_losses_and_solvers_as_objects(table):
    X, y, _ = table
    ball = Weighted(LpBall(1.5, 2.0), np.arange(1.0, 7.0))
    model = ConstrainedRegressor(Huber(0.5), norm=ball, solver=PrimalAveraging(), tol=1e-3).fit(X, y)
    assert ball.contains(model.coef_)
    assert (model.ball_, model.loss_, model.radius_) == (ball, Huber(0.5), 2.0)
    assert model.result_.solver == PrimalAveraging()
    assert ConstrainedRegressor(BiWeight(2.0)).fit(X, y).result_.bound is None
    sampled = ConstrainedRegressor(
        solver=PrimalAveraging(sampling=Minibatch(30)), max_iter=200, tol=1e-12, random_state=3
    )
    with pytest.warns(ConvergenceWarning):
        first, again = sampled.fit(X, y).coef_, clone(sampled).fit(X, y).coef_
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("norm", ["lp", "group", "schatten"])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_several_outputs(table, norm, p):
    X, y, s = table
    Y = np.column_stack([y, -2 * y + 1, X[:, 2]])
    solver = AcceleratedProjectedGradient()
    model = ConstrainedRegressor(norm=norm, p=p, radius=1.5, tol=1e-5, solver=solver).fit(X, Y, s)
    assert (model.coef_.shape, model.intercept_.shape, model.predict(X).shape) == ((3, 6), (3,), (120, 3))
    assert model.ball_.norm(model.coef_.T) == pytest.approx(1.5, rel=1e-3)
    assert model.verify(X, Y, s).ok


def test_aliases_of_norms(table):
    X, y, _ = table
    Y = np.column_stack([y, -2 * y + 1, X[:, 2]])
    aliases = {"l1": {"p": 1}, "l2": {"p": 2}, "nuclear": {"norm": "schatten", "p": 1}, "schatten": {"norm": "nuclear"}}
    for name, same in aliases.items():
        one, other = (ConstrainedRegressor(radius=1.5, **given).fit(X, Y) for given in ({"norm": name}, same))
        assert one.ball_ == other.ball_
        np.testing.assert_array_equal(one.coef_, other.coef_)
    assert list(ConstrainedRegressor().fit(X, y).coef_frame().columns) == ["coefficient"]


def test_the_multiplier_is_the_slope_of_the_value(table):
    """d f(w(r)) / d r = -mu."""
    X, y, _ = table
    low, mid, high = (ConstrainedRegressor(p=1.5, radius=r, tol=1e-11).fit(X, y) for r in (0.999, 1.0, 1.001))
    slope = (high.result_.value - low.result_.value) / 0.002
    assert mid.multiplier_ == pytest.approx(-slope, rel=1e-4)
    assert ConstrainedRegressor(radius=100.0, tol=1e-9).fit(X, y).multiplier_ < 1e-3


@pytest.mark.parametrize("loss", ["huber", "biweight", "quantile"])
def test_the_plan_is_of_the_loss_that_is_fitted(table, loss):
    X, y, _ = table
    made, model = ConstrainedRegressor(loss).explain(X, y), ConstrainedRegressor(loss).fit(X, y)
    assert made.problem.startswith(type(model.loss_).__name__)
    assert made.solver == model.result_.solver


def test_robust_scales_are_those_of_clean_residuals():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.7 * rng.standard_normal(2000)
    y[:200] += 100
    for name, constant in (("huber", 1.345), ("biweight", 3.787)):
        model = ConstrainedRegressor(name, radius=5.0).fit(X, y)
        scale = getattr(model.loss_, "delta", None) or model.loss_.scale
        # A tenth of gross outliers turns the median of |r| into its 5/9 quantile, 13 % above.
        assert scale / constant == pytest.approx(0.7 * 1.134, rel=0.05)
    np.testing.assert_allclose(model.coef_, [1, -1, 0.5], atol=0.06)


def test_sparse_coefficients_of_the_l1_ball():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 200))
    y = X[:, 3] - 2 * X[:, 7]
    model = ConstrainedRegressor(p=1, radius=2.0, solver=AcceleratedProjectedGradient()).fit(X, y)
    assert np.count_nonzero(model.coef_) < 60
    chosen = SelectFromModel(model, threshold=0.1).set_output(transform="pandas").fit_transform(X, y)
    assert list(chosen.columns) == ["x3", "x7"]


def test_tasks_with_their_own_rows():
    """One matrix for all tasks equals separate fits where the ball does not bind, and pools where it does."""
    rng = np.random.default_rng(3)
    task, X = np.repeat(["b", "a", "c"], [30, 50, 40]), rng.standard_normal((120, 4))
    y = X @ [1.0, 0.0, -1.0, 2.0] + np.where(task == "a", 5.0, 0.0) + 0.1 * rng.standard_normal(120)
    frame = pd.DataFrame(X, columns=list("wxyz")).assign(school=task)
    wide = ConstrainedRegressor(norm="schatten", p=1, radius=100.0, task="school", tol=1e-10).fit(frame, y)
    assert list(wide.tasks_) == ["a", "b", "c"]
    for k, name in enumerate("abc"):
        F = np.column_stack([X[task == name], np.ones((task == name).sum())])
        expected = np.linalg.lstsq(F, y[task == name], rcond=None)[0]
        np.testing.assert_allclose([*wide.coef_[k], wide.intercept_[k]], expected, atol=1e-4)
        np.testing.assert_allclose(wide.predict(frame[task == name]), F @ expected, atol=1e-3)
    tight = ConstrainedRegressor(norm="schatten", p=1, radius=1.0, task="school").fit(frame, y)
    assert np.linalg.svd(tight.coef_, compute_uv=False)[1:].max() < 0.2
    numbered = np.column_stack([X, np.unique(task, return_inverse=True)[1]])
    same = ConstrainedRegressor(norm="schatten", p=1, radius=1.0, task=4).fit(numbered, y)
    np.testing.assert_allclose(same.coef_, tight.coef_, atol=1e-8)
    assert tight.verify(frame, y).ok
    with pytest.raises(ValueError, match=r"^`X` has the task 'd', which was not there"):
        tight.predict(frame.assign(school="d"))
    with pytest.raises(ValueError, match=r"^`X` has the task 1, which was not there"):
        tight.predict(frame.assign(school=1))
    robust = ConstrainedRegressor("huber", norm="group", radius=3.0, task="school", tol=1e-4).fit(frame, y)
    assert robust.intercept_.shape == (3,)
    assert robust.intercept_[0] - robust.intercept_[1] == pytest.approx(5.0, abs=0.7)


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [-3, 7], [0, 1, 2], ["a", "b", "c", "d"]])
@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared_sigmoid"])
def test_labels_and_probabilities(table, labels, loss):
    X, y, _ = table
    target = np.array(labels)[np.digitize(y, np.quantile(y, np.linspace(0, 1, len(labels) + 1)[1:-1]))]
    model = ConstrainedClassifier(loss, radius=3.0, standardize=True).fit(X, target)
    np.testing.assert_array_equal(model.classes_, sorted(labels))
    P, k = model.predict_proba(X), len(labels)
    assert P.shape == (120, k)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P)
    assert model.decision_function(X).shape == ((120,) if k == 2 else (120, k))
    assert model.coef_.shape == ((1, 6) if k == 2 and loss != "softmax" else (k, 6))
    assert model.score(X, target) > 0.6
    assert model.verify(X, target).ok


def test_class_weights_are_sample_weights(table):
    X, y, s = table
    target = y > 2.5
    by_class = ConstrainedClassifier(class_weight={True: 3.0, False: 0.5}).fit(X, target, s)
    by_row = ConstrainedClassifier().fit(X, target, s * np.where(target, 3.0, 0.5))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-12)
    assert np.mean(ConstrainedClassifier(class_weight="balanced").fit(X, target).predict(X)) > 0.3


def test_warm_start(table):
    X, y, _ = table
    model = ConstrainedRegressor(solver=FrankWolfe(), p=1.5, radius=1.0, warm_start=True, tol=1e-5).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    model.set_params(radius=0.5).fit(X, y)  # the last answer lies outside and is pulled in
    assert LpBall(1.5, 0.5).contains(model.coef_)


def test_a_loss_that_is_as_small_as_can_be_does_not_warn():
    """The bi-weight loss is not convex, but nowhere negative: zero is its minimum, whatever rounding does to slopes."""
    X = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    weight = np.array([10.0] + 15 * [1.0])
    model = ConstrainedRegressor("biweight", radius=3.0).fit(X, np.repeat([1, 2, 1, 2], 4), weight)
    assert model.result_.status.name in ("PRECISION", "STATIONARY")  # with a radius of 2 the value is zero exactly
    assert model.result_.value <= 1e-20


def test_short_runs_warn_with_the_gap(table):
    X, y, _ = table
    model = ConstrainedRegressor(radius=1.0, solver=FrankWolfe(), p=1.5, max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"the certified relative gap is .*, above tol=1e-09; raise `max_iter`"):
        model.fit(X, y)
    assert model.n_iter_ == 2
    assert np.isfinite(model.predict(X)).all()
    with pytest.warns(ConvergenceWarning, match=r"raise `time_limit`"):
        model.set_params(max_iter=10**6, time_limit=1e-9, tol=1e-15).fit(X, y)


def test_pickles_are_small_and_complete():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((20_000, 5))
    y = X[:, 0] + rng.standard_normal(20_000)
    model = ConstrainedRegressor(p=1.5).fit(X, y)
    text = pickle.dumps(model)
    assert len(text) < 20_000
    np.testing.assert_array_equal(pickle.loads(text).predict(X), model.predict(X))
    assert pickle.loads(text).verify(X, y).ok


def test_nested_use(table):
    X, y, s = table
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), ConstrainedRegressor())
    search = GridSearchCV(
        pipeline, {"constrainedregressor__radius": [0.1, 1.0], "constrainedregressor__p": [1, 2]}, cv=3
    )
    search.fit(frame, y, constrainedregressor__sample_weight=s)
    assert search.best_params_["constrainedregressor__radius"] == 1.0
    assert list(search.best_estimator_[-1].feature_names_in_) == list("abcdef")
    assert TransformedTargetRegressor(ConstrainedRegressor(), transformer=StandardScaler()).fit(X, y).score(X, y) > 0.5


SENTENCES = [
    (
        {"loss": "hinge"},
        r"^`loss` must be one of 'squared', 'poisson', 'gamma', 'huber', 'biweight', 'quantile' or a Loss, "
        r"got 'hinge'\.$",
    ),
    (
        {"norm": "l3"},
        r"^`norm` must be one of 'lp', 'group', 'schatten', 'l1', 'l2', 'nuclear' or a Constr.*, got 'l3'",
    ),
    ({"norm": "l1", "p": 2}, r"^`norm='l1'` has the exponent 1, got `p=2`; leave `p` out"),
    ({"radius": np.inf}, r"^`radius` must be positive and finite, got inf\. Leave it out"),
    ({"solver": FrankWolfe}, r"^`solver` must be a Solver, got .*FrankWolfe.*; use e\.g\. `FrankWolfe\(\)`"),
    ({"norm": "group"}, r"^`norm='group'` with one output needs `feature_groups`, a label for each feature\.$"),
    ({"norm": "schatten"}, r"^`norm='schatten'` needs coefficients that are a matrix"),
    ({"feature_groups": [0] * 6}, r"^`feature_groups` needs `norm='group'`, got 'lp'\.$"),
    ({"radius": -1.0}, r"^`radius` must be positive and finite, got -1\.0\."),
    ({"radius": "best"}, r"^`radius` must be a real number, got 'best'"),
    ({"p": 0.5}, r"^`LpBall\(p=\.\.\.\)` must be at least 1, got 0\.5\.$"),
    ({"solver": "sgd"}, r"^`solver` must be a Solver, got 'sgd'; use e\.g\."),
    ({"free": range(6)}, r"^`free` must leave at least one column for the ball"),
    ({"free": ["z"]}, r"^`free` must name columns of `X`, .* got 'z'\.$"),
    ({"free": [9]}, r"^`free` must name columns of `X`, .* below 6, got 9"),
    ({"task": "school"}, r"^`task` must name columns of `X`, .*'school'"),
    ({"fit_intercept": "False"}, r"^`fit_intercept` must be True or False, got 'False'\.$"),
    ({"positive": "no"}, r"^`positive` must be True or False, got 'no'\.$"),
    ({"standardize": None}, r"^`standardize` must be True or False, got None\.$"),
    ({"callbacks": 3}, r"^`callbacks` must be a function of the run, or a sequence of such functions, got 3; leave"),
    ({"max_iter": 0}, r"^`max_iter` must be a whole number of at least 1, got 0\.$"),
]


@pytest.mark.parametrize(("parameters", "sentence"), SENTENCES, ids=lambda x: str(x)[:30])
def test_sentences(table, parameters, sentence):
    X, y, _ = table
    with pytest.raises((ValueError, TypeError), match=sentence):
        ConstrainedRegressor(**parameters).fit(X, y)


@pytest.mark.parametrize("groups", [[0, 0, 1, 1, 2, 2], [[0, 1], [2, 3], [4, 5]]])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_groups_without_free_columns(table, groups, loss):
    X, y, _ = table
    model = ConstrainedRegressor(loss, norm="group", feature_groups=groups, free=[0], radius=0.5, tol=1e-5).fit(X, y)
    inside = [np.abs(model.coef_[1]), np.linalg.norm(model.coef_[2:4]), np.linalg.norm(model.coef_[4:])]
    assert sum(inside) == pytest.approx(0.5, rel=1e-6)
    assert model.coef_[0] == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("model", [ConstrainedRegressor(tol=1e-10), ConstrainedClassifier(tol=1e-8)], ids=repr)
def test_units_of_columns_do_not_matter_to_tasks_that_are_standardized(table, model, intercept):
    X, y, _ = table
    y = y if isinstance(model, ConstrainedRegressor) else y > 2
    units, task = np.array([1.0, 10.0, 0.01, 1.0, 3.0, 7.0]), np.arange(len(X)) % 3
    model.set_params(task=6, standardize=True, fit_intercept=intercept, p=1.5, radius=1.0)
    own, other = np.column_stack([X, task]), np.column_stack([X * units, task])
    one, two = clone(model).fit(own, y), clone(model).fit(other, y)
    np.testing.assert_allclose(two.coef_ * units, one.coef_, atol=1e-3)
    scores = (lambda m, Z: m.decision_function(Z)) if isinstance(model, ConstrainedClassifier) else type(one).predict
    np.testing.assert_allclose(scores(two, other), scores(one, own), atol=1e-3)
    assert np.std(scores(one, own)) > 0.1


@pytest.mark.parametrize("constant", [0.0, 0.1, 2.3, 7.0, 1e5])
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_the_score_of_constant_targets(table, loss, constant):
    """As of scikit-learn's `r2_score`: one where all of them are predicted, else zero; without a warning."""
    X, y, s = table
    same = np.full(len(y), constant)
    varied = ConstrainedRegressor(loss, radius=0.5).fit(X, np.exp(0.1 * y))
    if constant or loss == "poisson":
        assert varied.score(X, same) == varied.score(X, same, s) == varied.score(as_data(X, same)) == 0.0
    if constant:
        exact = ConstrainedRegressor(loss, radius=0.5).fit(X, same)
        assert exact.score(X, same) == exact.score(X, same, s) == exact.score(as_data(X, same)) == 1.0
