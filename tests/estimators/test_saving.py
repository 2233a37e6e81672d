"""Models on disk."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from projfree import (
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Huber,
    Loss,
    LpBall,
    PrimalAveraging,
    Weighted,
    persist,
)
from projfree.estimators import load, save


def fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X @ [1.0, 2.0, 0.0, -1.0] + 0.1 * rng.standard_normal(60)
    labels = np.array(["no", "perhaps", "yes"], dtype=object)[np.digitize(y, [-1, 1])]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(task=np.repeat([3, 5], 30))
    ball = Weighted(LpBall(1.5, 2.0), np.arange(1.0, 5.0))
    return [
        (ConstrainedRegressor().fit(X, y), X, y),
        (ConstrainedRegressor(Huber(0.3), norm=ball, solver=PrimalAveraging(), tol=1e-2).fit(X, y), X, y),
        (ConstrainedRegressor("biweight").fit(X, y), X, y),
        (ConstrainedRegressor(free=[1]).fit(X, y), X, y),
        (ConstrainedRegressor(norm="group", task="task").fit(frame, y), frame, y),
        (ConstrainedClassifier(class_weight={"no": 2.0, "yes": 1.0, "perhaps": 1.0}).fit(X, labels), X, labels),
        (ConstrainedRegressorCV(p=[1, 2], radii=3, cv=KFold(3)).fit(frame[["a", "b"]], y), frame[["a", "b"]], y),
        (ConstrainedClassifierCV(radii=[0.5, 1.0], cv=3, scoring="neg_log_loss").fit(X, y > 0), X, y > 0),
    ]


@pytest.mark.parametrize("case", range(8))
def test_a_loaded_model_is_the_saved_one(tmp_path, case):
    model, X, y = fitted()[case]
    model.save(tmp_path / "model")
    other = load(tmp_path / "model")
    assert type(other) is type(model)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert other.verify(X, y).ok == model.verify(X, y).ok
    for name, value in vars(model).items():
        if name in ("result_", "path_", "cv"):
            continue
        if name in ("norm", "ball_"):  # sets with arrays are compared by what they show
            assert repr(getattr(other, name)) == repr(value)
            continue
        np.testing.assert_equal(getattr(other, name), value)
    assert repr(other.result_) == repr(model.result_)
    np.testing.assert_array_equal(other.result_.trace["gap"], model.result_.trace["gap"])
    if hasattr(model, "path_"):
        np.testing.assert_array_equal(other.path_.coefs, model.path_.coefs)
    if model.solver == "auto" and not isinstance(getattr(model, "cv", None), KFold):  # and it can be fitted again
        np.testing.assert_allclose(other.fit(X, y).coef_, model.coef_, atol=1e-3)
    pickle.dumps(other)


def test_no_pickle_on_disk(tmp_path):
    save(fitted()[0][0], tmp_path / "model")
    files = sorted(p.suffix for p in (tmp_path / "model").rglob("*") if p.is_file())
    assert files == [".npz"]


def test_damaged_newer_and_foreign_files(tmp_path):
    model = fitted()[0][0]
    with pytest.raises(FileNotFoundError, match=r"^`load` found no finished save in"):
        load(tmp_path / "nothing")
    save(model, tmp_path / "damaged")
    arrays = next((tmp_path / "damaged").rglob("*.npz"))
    arrays.write_bytes(arrays.read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"is damaged"):
        load(tmp_path / "damaged")
    tree = {"class": "ConstrainedRegressor", "parameters": {}, "fitted": {}}
    persist.save(tmp_path / "other", {"class": "os.system"}, kind="model")
    with pytest.raises(ValueError, match=r"is damaged: it holds no model"):
        load(tmp_path / "other")
    strange = {"loss": {"class": "Popen"}}
    persist.save(tmp_path / "strange", tree | {"parameters": strange}, kind="model")
    with pytest.raises(
        ValueError, match=r"is of another version: Popen is not a class of projfree; upgrade projfree\.$"
    ):
        load(tmp_path / "strange")
    persist.save(tmp_path / "checkpoint", {}, kind="checkpoint")
    with pytest.raises(ValueError, match=r"holds a 'checkpoint', not a 'model'"):
        load(tmp_path / "checkpoint")


def test_what_cannot_be_saved(tmp_path):
    class Own(Huber):
        pass

    assert issubclass(Own, Loss)
    rng = np.random.default_rng(0)
    model = ConstrainedRegressor(Own(1.0)).fit(rng.standard_normal((9, 2)), rng.standard_normal(9))
    with pytest.raises(TypeError, match=r"^`save` cannot write `loss` = "):
        save(model, tmp_path / "own")
    assert not (tmp_path / "own").exists()
    with pytest.raises(TypeError, match=r"^`save` takes a fitted model"):
        save(ConstrainedRegressor(), tmp_path / "unfitted")
