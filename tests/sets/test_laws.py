"""Every law over every set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sets.examples import cases, examples

from projfree.sets import SETS, ConstraintSet
from projfree.testing import sets as laws

every_set = pytest.mark.parametrize("cls", SETS, ids=lambda cls: cls.__name__)


@every_set
@given(data=st.data())
def test_oracle(cls, data):
    case = data.draw(cases(cls))
    for law in laws.ORACLE_LAWS:
        law(*case)


@every_set
@given(data=st.data())
def test_geometry(cls, data):
    case = data.draw(cases(cls, count=2, extreme=False))
    for law in laws.GEOMETRY_LAWS:
        law(*case)


@every_set
@given(data=st.data())
def test_projection(cls, data):
    C, w = data.draw(cases(cls))
    if C.structure(w.shape).projection != "none":
        laws.projection_is_the_nearest_point(C, w)


@every_set
def test_examples(cls):
    """Every class shows itself in examples that take some shape, and reads like its constructor."""
    assert examples(cls)
    for C in examples(cls):
        assert isinstance(C, ConstraintSet)
        assert laws.supported_shapes(C)
        assert repr(C).startswith(cls.__name__ + "(")
        for shape in laws.supported_shapes(C):
            for law in laws.GEOMETRY_LAWS:
                law(C, C.lmo(np.ones(shape)), C.centre(shape))
