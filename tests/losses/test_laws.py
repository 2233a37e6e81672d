"""Every law over every loss, with settings away from their defaults beside them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree.losses import LOSSES, BiWeight, Huber, Quantile, Softmax
from projfree.testing import losses as laws

OTHERS = [Huber(0.3), Huber(25.0), BiWeight(0.3), BiWeight(7.0), Quantile(0.9, 0.01), Quantile(0.2, 5.0), Softmax(3)]
INSTANCES = [*(cls() for cls in LOSSES), *OTHERS]

every_loss = pytest.mark.parametrize("loss", INSTANCES, ids=repr)
both_types = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
quick = settings(max_examples=20, deadline=None)


@every_loss
@quick
@given(data=st.data())
def test_moderate_predictions(loss, data):
    sample = data.draw(laws.samples(loss))
    for law in laws.LAWS + laws.UNIVERSAL_LAWS:
        law(loss, *sample)


@every_loss
@both_types
@quick
@given(data=st.data())
def test_extreme_predictions(loss, dtype, data):
    sample = data.draw(laws.samples(loss, dtype, extreme=True))
    for law in laws.UNIVERSAL_LAWS:
        law(loss, *sample)


@every_loss
@both_types
@quick
@given(data=st.data())
def test_two_predictions(loss, dtype, data):
    pair = data.draw(laws.pairs(loss, dtype))
    for law in laws.PAIR_LAWS:
        law(loss, *pair)


@every_loss
def test_smoothness_is_attained(loss):
    laws.smoothness_is_attained(loss)
