"""Saved models are read as files that anybody may have written: types, shapes and finiteness are checked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from projfree import ConstrainedRegressor, MatrixCompletion, load, persist
from projfree.estimators import save
from projfree.estimators.encoding import table_encoder
from projfree.estimators.saving import KIND as COMPLETION


@pytest.fixture
def forged(tmp_path):
    """A saved regression with one thing changed."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((30, 3)), columns=list("abc"))
    model = ConstrainedRegressor(radius=0.5).fit(frame, rng.standard_normal(30))

    def change(edit):
        save(model, tmp_path / "model")
        tree = persist.load(tmp_path / "model", kind="model")
        edit(tree)
        persist.save(tmp_path / "model", tree, kind="model")
        return tmp_path / "model"

    return change


def fitted(**values):
    return lambda tree: tree["fitted"].update(values)


def of_result(**values):
    return lambda tree: tree["fitted"]["result_"].update(values)


def trace_of(tree):
    return tree["fitted"]["result_"]["trace"]


DAMAGE = {
    "NaN": (fitted(coef_=np.array([1.0, np.nan, 0.0])), "coef_ has entries that are no finite numbers"),
    "short": (fitted(coef_=np.ones(2)), r"coef_ has the shape \(2,\) for 3 features"),
    "intercept": (fitted(intercept_=np.ones(5)), "intercept_ has the shape"),
    "a method": (fitted(predict=3.0), "'predict' is no fitted attribute"),
    "features": (fitted(n_features_in_="3"), "n_features_in_ is no number of features"),
    "names": (fitted(feature_names_in_=np.array(["a", "b"])), "feature_names_in_ has not 3 names"),
    "no result": (lambda tree: tree["fitted"].pop("result_"), "result_ is no Result"),
    "another point": (of_result(w=np.array([9.0, 9.0, 9.0])), "result_.w lies outside the ball"),
    "other arrays": (of_result(w=np.zeros(3)), "its certificate is about another point than result_"),
    "bound": (of_result(bound=1e9), "result_.bound is above the value"),
    "status": (lambda tree: tree["fitted"]["result_"]["status"].update(name="GOOD"), "it holds no model"),
    "parameter": (lambda tree: tree["parameters"].update(run="rm"), "ConstrainedRegressor has no parameter 'run'"),
    "encoder": (lambda tree: tree.update(encoder={"columns": ["a"]}), "it holds no model"),
    "ball": (lambda tree: tree["fitted"]["ball_"].update(p=-1.0), "it holds no model"),
}


@pytest.mark.parametrize(("edit", "why"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_one_sentence(forged, edit, why):
    with pytest.raises(ValueError, match=rf"model' is damaged: .*{why}.*; restore it from a copy, or save again\.$"):
        load(forged(edit))


def test_an_encoder_comes_back_with_its_model(tmp_path):
    frame = pd.DataFrame({"n": [1.0, np.nan, 3.0, 4.0] * 5, "t": ["u", "v", None, "u"] * 5})
    encoder = table_encoder(["n"], {"t": None}, impute=True)
    model = make_pipeline(encoder, ConstrainedRegressor()).fit(frame, np.arange(20.0))
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    new = pd.DataFrame({"t": ["v", "never seen"], "other": [1, 2], "n": [np.nan, 2.0]})
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    tree = persist.load(tmp_path / "m", kind="model")
    tree["encoder"]["text"] = [["t", ["u", "w"]]]
    persist.save(tmp_path / "m", tree, kind="model")
    with pytest.raises(ValueError, match="its encoder belongs to another model"):
        load(tmp_path / "m")


@pytest.fixture
def completion(tmp_path):
    rng = np.random.default_rng(0)
    ratings = [(int(u), int(i), float(r)) for u, i, r in zip(*rng.integers(1, 6, (3, 60)), strict=True)]
    MatrixCompletion(radius=1.0, rank=2).fit(ratings).save(tmp_path / "c")

    def change(edit):
        tree = persist.load(tmp_path / "c", kind=COMPLETION)
        edit(tree)
        persist.save(tmp_path / "c", tree, kind=COMPLETION)
        return tmp_path / "c"

    return change


def test_load_reads_completions_too(completion):
    assert isinstance(load(completion(lambda tree: None)), MatrixCompletion)


BROKEN = {
    "NaN": lambda tree: tree["fitted"]["factors_"]["lefts"].__setitem__((0, 0), np.nan),
    "short": lambda tree: tree["fitted"]["factors_"].update(lefts=np.ones((1, 2))),
    "out of range": lambda tree: tree["fitted"]["ratings_"]["indices"].__setitem__(0, 10_000),
    "text": lambda tree: tree["fitted"].update(radius_="wide"),
    "parameter": lambda tree: tree["parameters"].update(evil=1),
    "columns": lambda tree: tree["parameters"].update(columns="abc"),
    "empty": lambda tree: tree.clear(),
}


@pytest.mark.parametrize("edit", BROKEN.values(), ids=BROKEN)
def test_a_damaged_completion_is_one_sentence(completion, edit):
    with pytest.raises(ValueError, match=r"c' is damaged: .*; restore it from a copy, or save again\.$"):
        load(completion(edit))
