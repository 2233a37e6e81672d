from __future__ import annotations

import hashlib

import numpy as np
import pytest

from projfree.datasets import load_adult
from projfree.datasets.adult import COLUMNS, NUMERIC
from projfree.datasets.sources import load_packaged

# Of the original files, uncompressed.
DATA = "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
TEST = "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"


@pytest.fixture(scope="module")
def raw():
    """The fields of the original files, a column for each."""
    arrays = load_packaged("adult.npz")
    return {
        name: arrays[name] if name in NUMERIC else arrays["levels " + name].astype(object)[arrays[name]]
        for name in COLUMNS
    }


@pytest.fixture(scope="module")
def onehot():
    return load_adult()


def test_the_original_files_can_be_rebuilt_to_the_byte(raw, onehot):
    labels = np.where(onehot.y > 0, ">50K", "<=50K")
    lines = [", ".join(map(str, fields)) for fields in zip(*raw.values(), labels, strict=True)]
    train, test = lines[: onehot.n_train], lines[onehot.n_train :]
    for text, due in (
        ("".join(f"{line}\n" for line in train) + "\n", DATA),
        ("|1x3 Cross validator\n" + "".join(f"{line}.\n" for line in test) + "\n", TEST),
    ):
        assert hashlib.sha256(text.encode()).hexdigest() == due


def test_onehot_shape(onehot):
    assert onehot.X.shape == (48_842, 108)
    assert onehot.X.dtype == np.float64
    assert onehot.X.flags.c_contiguous
    assert len(set(onehot.feature_names)) == 108
    assert onehot.n_train == 32_561


def test_labels(onehot):
    assert set(onehot.y) == {-1.0, 1.0}
    assert np.mean(onehot.y > 0) == pytest.approx(0.2393, abs=5e-5)


def test_each_row_has_one_level_of_each_categorical_column(onehot):
    dummies = onehot.X[:, len(NUMERIC) :]
    assert set(np.unique(dummies)) == {0.0, 1.0}
    assert (dummies.sum(axis=1) == 8).all()
    assert (dummies.sum(axis=0) > 0).all()


def test_the_levels_with_one_class_only(onehot):
    # They are why logistic regression on this data has no finite unconstrained optimum.
    names = np.array(onehot.feature_names)
    single = [n for n, x in zip(names[6:], onehot.X.T[6:], strict=True) if len(set(onehot.y[x == 1])) == 1]
    assert single == ["workclass=Never-worked", "native-country=Holand-Netherlands"]
