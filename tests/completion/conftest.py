"""The tests of this folder find their problems as `completion.problems`; sizes choose how a spectrum is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from projfree.numerics import spectra

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(params=["whole", "gram", "subspace"])
def tier(request, monkeypatch):
    """How the spectrum is found: densely, from the Gram matrix, by subspaces; large sizes choose the latter two."""
    if request.param != "whole":
        monkeypatch.setattr(spectra, "DENSE_ENTRIES", 0)
    if request.param == "subspace":
        monkeypatch.setattr(spectra, "EVERY_SIDE", 0)
        monkeypatch.setattr(spectra, "BOUND_SIDE", 0)
        monkeypatch.setattr(spectra, "FIRST_BLOCK", 4)
    return request.param
