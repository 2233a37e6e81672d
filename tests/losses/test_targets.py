"""What targets become, and every sentence that bad ones and bad settings get."""

import re

import numpy as np
import pytest

from projfree.losses import (
    BiWeight,
    Gamma,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
)

regression = pytest.mark.parametrize("loss", [Squared(), Huber(), BiWeight(), Quantile(), Poisson()], ids=repr)
binary = pytest.mark.parametrize("loss", [Logistic(), SquaredSigmoid(), SquaredHinge()], ids=repr)


def beginning(sentence):
    return "^" + re.escape(sentence)


@regression
def test_regression_targets(loss):
    for y in ([1, 2], [True, False], np.array([1, 2], np.uint8), np.array([1, 2], np.float16), [1.5, 2]):
        out = loss.targets(y)
        assert out.dtype == np.float64
        np.testing.assert_array_equal(out, np.asarray(y, float))
    y = np.ones((3, 2), np.float32)
    assert loss.targets(y) is y
    assert loss.outputs(y) == (2,)
    assert loss.outputs(np.ones(3)) == ()


@regression
@pytest.mark.parametrize(
    ("y", "error", "sentence"),
    [
        ([1.0, np.nan], ValueError, "`y` must be finite, got nan at index 1; drop or impute such entries first."),
        (
            [[1.0, -np.inf]],
            ValueError,
            "`y` must be finite, got -inf at index (0, 1); drop or impute such entries first.",
        ),
        (np.array([1.0, None]), TypeError, "`y` must hold real numbers, got dtype object; convert it first, e.g. with"),
        (np.array([1j]), TypeError, "`y` must hold real numbers, got dtype complex128"),
    ],
)
def test_regression_targets_refused(loss, y, error, sentence):
    with pytest.raises(error, match=beginning(sentence)):
        loss.targets(y)


COUNTS = "a Poisson loss takes counts, or other numbers that are not negative"
AMOUNTS = "a Gamma loss takes positive amounts"
MOVE, RESCALE = "drop or move such rows, or use another loss", "rescale them"


@pytest.mark.parametrize(
    ("loss", "y", "wrong", "rule"),
    [
        (Poisson(), [0.0, 2.0, -1.0], "0 and 1e+30, got -1.0 at index 2", f"{COUNTS}; {MOVE}"),
        (Poisson(), [[0.0, -1e-300]], "0 and 1e+30, got -1e-300 at index (0, 1)", f"{COUNTS}; {MOVE}"),
        (Poisson(), [2e30], "0 and 1e+30, got 2e+30 at index 0", f"{COUNTS}; {RESCALE}"),
        (Gamma(), [1.0, 0.0], "1e-15 and 1e+15, got 0.0 at index 1", f"{AMOUNTS}; {MOVE}"),
        (Gamma(), [-3, 1], "1e-15 and 1e+15, got -3.0 at index 0", f"{AMOUNTS}; {MOVE}"),
        (Gamma(), [1e-16], "1e-15 and 1e+15, got 1e-16 at index 0", f"{AMOUNTS}; {RESCALE}"),
        (Gamma(), [1.0, 1e16], "1e-15 and 1e+15, got 1e+16 at index 1", f"{AMOUNTS}; {RESCALE}"),
    ],
)
def test_targets_of_deviances_refused(loss, y, wrong, rule):
    with pytest.raises(ValueError, match=beginning(f"`y` must lie between {wrong}: {rule}.")):
        loss.targets(y)


def test_targets_of_deviances():
    for loss, ends in ((Poisson(), np.array([0.0, 1e30])), (Gamma(), np.array([1e-15, 1e15]))):
        assert loss.targets(ends) is ends
        with pytest.raises(ValueError, match="`y` must be finite, got nan at index 0"):
            loss.targets([np.nan])
        with pytest.raises(TypeError, match="got dtype object"):
            loss.targets(np.array([1.0, None]))
    np.testing.assert_array_equal(Gamma().targets([1, 2]), [1.0, 2.0])
    np.testing.assert_array_equal(Poisson().targets([True, False]), [1.0, 0.0])


@binary
def test_labels(loss):
    for y in ([1, -1], np.array([1, -1], np.int8), np.array([1.0, -1.0])):
        out = loss.targets(y)
        assert out.dtype == np.float64
        np.testing.assert_array_equal(out, [1, -1])
    y = np.float32([[1, -1, 1]])
    assert loss.targets(y) is y
    assert loss.outputs(y) == (3,)


@binary
@pytest.mark.parametrize(
    ("y", "error", "wrong"),
    [
        ([1, 1, 0], ValueError, "0.0 at index 2"),
        ([True, True, False], ValueError, "0.0 at index 2"),
        ([1, 2], ValueError, "2.0 at index 1"),
        ([np.nan], ValueError, "nan at index 0"),
        ([[1, 1], [-1, 0.5]], ValueError, "0.5 at index (1, 1)"),
        (["no", "yes"], TypeError, "dtype <U3"),
        (np.array([1, -1], object), TypeError, "dtype object"),
        ([1j], TypeError, "dtype complex128"),
    ],
)
def test_labels_refused(loss, y, error, wrong):
    with pytest.raises(error, match=beginning(f"`y` must hold the labels -1 and +1, got {wrong}; encode")):
        loss.targets(y)


def test_class_indices():
    for y in ([0, 2, 1], [0.0, 2.0, 1.0], np.array([0, 2, 1], np.uint8)):
        out = Softmax().targets(y)
        assert out.dtype == np.intp
        np.testing.assert_array_equal(out, [0, 2, 1])
        assert Softmax().outputs(out) == (3,)
        assert Softmax(classes=5).outputs(out) == (5,)
    np.testing.assert_array_equal(Softmax().targets([True, False]), [1, 0])
    np.testing.assert_array_equal(Softmax(classes=2).targets([0, 0]), [0, 0])
    y = np.array([0, 1])
    assert Softmax().targets(y) is y


INDICES = "`y` must hold class indices 0, ..., {} - 1, got {} at index {}; encode"


@pytest.mark.parametrize(
    ("classes", "y", "sentence"),
    [
        (None, [0, -1], INDICES.format("k", -1, 1)),
        (None, [0, 0.5], INDICES.format("k", 0.5, 1)),
        (None, [np.nan, 1], INDICES.format("k", "nan", 0)),
        (None, [0, np.inf], INDICES.format("k", "inf", 1)),
        (None, [0, 2**40], INDICES.format("k", 2**40, 1)),
        (3, [0, 3], INDICES.format(3, 3, 1)),
        (None, [0, 0], "`y` must hold at least two classes, got the index 0 only; give `Softmax(classes=...)`"),
        (None, [[0, 1], [1, 0]], "`y` must be one class index a sample, got an array of shape (2, 2)"),
    ],
)
def test_class_indices_refused(classes, y, sentence):
    with pytest.raises(ValueError, match=beginning(sentence)):
        Softmax(classes).targets(y)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: Huber(0), ValueError, "`Huber(delta=...)` must be positive and finite, got 0."),
        (lambda: Huber(np.inf), ValueError, "`Huber(delta=...)` must be positive and finite, got inf."),
        (lambda: Huber("1"), TypeError, "`Huber(delta=...)` must be a real number, got '1' of type str."),
        (lambda: BiWeight(-1.0), ValueError, "`BiWeight(scale=...)` must be positive and finite, got -1.0."),
        (lambda: BiWeight(np.nan), ValueError, "`BiWeight(scale=...)` must be positive and finite, got nan."),
        (lambda: BiWeight(1e-200), ValueError, "`BiWeight(scale=...)` must lie between 1e-150 and 1e150, got 1e-200"),
        (lambda: Quantile(0.0), ValueError, "`Quantile(quantile=...)` must be positive and finite, got 0.0."),
        (lambda: Quantile(1.0), ValueError, "`Quantile(quantile=...)` must lie between 0 and 1, got 1.0."),
        (lambda: Quantile(0.5, 0.0), ValueError, "`Quantile(delta=...)` must be positive and finite, got 0.0."),
        (lambda: Quantile("1"), TypeError, "`Quantile(quantile=...)` must be a real number, got '1' of type str."),
        (lambda: Softmax(1), ValueError, "`Softmax(classes=...)` must be a whole number of at least 2, got 1."),
        (lambda: Softmax(2.5), ValueError, "`Softmax(classes=...)` must be a whole number of at least 2, got 2.5."),
        (lambda: Softmax(True), ValueError, "`Softmax(classes=...)` must be a whole number of at least 2, got True."),
    ],
)
def test_settings_refused(make, error, sentence):
    with pytest.raises(error, match=beginning(sentence)):
        make()
