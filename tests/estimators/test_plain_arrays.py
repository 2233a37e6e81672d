"""Arrays that need no conversion pass a fit as they pass scikit-learn's validation: the same rows, or its sentence."""

import numpy as np
import pytest
from sklearn.utils.validation import validate_data

from projfree import ConstrainedClassifier, ConstrainedRegressor
from projfree.estimators import answers

X = np.random.default_rng(0).standard_normal((12, 3))
Y = np.sign(X[:, 0])


def altered(array, value):
    out = array.copy()
    out.flat[5] = value
    return out


GIVEN = {
    "doubles": (X, Y),
    "singles": (X.astype(np.float32), Y),
    "halves": (X.astype(np.float16), Y),
    "whole features": (np.arange(36).reshape(12, 3), Y),
    "whole targets": (X, Y.astype(np.int64)),
    "short targets": (X, Y.astype(np.int32)),
    "columns first": (np.asfortranarray(X), Y),
    "every other row": (np.repeat(X, 2, axis=0)[::2], np.repeat(Y, 2)[::2]),
    "large": (1e200 * X, Y),
    "a sum that overflows": (np.full((12, 3), 1e308), Y),
    "other byte order": (X.astype(">f8"), Y),
    "lists": (X.tolist(), Y.tolist()),
    "nan": (altered(X, np.nan), Y),
    "infinity": (altered(X, np.inf), Y),
    "nan target": (X, altered(Y, np.nan)),
    "infinite target": (X, altered(Y, -np.inf)),
    "one dimension": (X[:, 0], Y),
    "a column of targets": (X, Y[:, None]),
    "other length": (X, Y[:-1]),
    "no rows": (X[:0], Y[:0]),
    "no columns": (X[:, :0], Y),
    "complex": (X + 1j, Y),
    "objects": (X.astype(object), Y.astype(object)),
}


def outcome(call):
    try:
        X, y = call()
    except Exception as error:
        return type(error), str(error)
    return X.tolist(), X.dtype, y.tolist(), y.dtype


@pytest.mark.parametrize("model", [ConstrainedRegressor(), ConstrainedClassifier()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.filterwarnings("ignore:A column-vector y:sklearn.exceptions.DataConversionWarning")
def test_what_passes_is_what_scikit_learn_lets_pass(model, name):
    rules = {"multi_output": True, "y_numeric": True} if isinstance(model, ConstrainedRegressor) else {}
    types = [np.float64, np.float32]
    model.feature_names_in_ = np.array(["of", "another", "fit"])
    ours = outcome(lambda: model._validated(*GIVEN[name], **rules))
    left = {key: value for key, value in vars(model).items() if key.endswith("_in_")}
    model.feature_names_in_ = np.array(["of", "another", "fit"])
    theirs = outcome(lambda: validate_data(model, *GIVEN[name], accept_sparse="csr", dtype=types, **rules))
    assert ours == theirs
    assert left == {key: value for key, value in vars(model).items() if key.endswith("_in_")}


def test_usual_arrays_are_not_inspected_again(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("scikit-learn was asked")

    monkeypatch.setattr(answers, "validate_data", refuse)
    for rows in (X, X.astype(np.float32), np.asfortranarray(X)):
        assert ConstrainedRegressor(radius=1.0).fit(rows, Y).n_features_in_ == 3
    with pytest.raises(AssertionError, match="was asked"):
        ConstrainedRegressor(radius=1.0).fit(altered(X, np.nan), Y)


def test_a_fit_looks_at_its_table_once(monkeypatch):
    from projfree.data.dense import DenseData

    scans = []
    scan = DenseData.measure
    monkeypatch.setattr(DenseData, "measure", lambda self: scans.append(self) or scan(self))
    ConstrainedRegressor(radius=1.0).fit(X, Y)
    assert len(scans) == 1
