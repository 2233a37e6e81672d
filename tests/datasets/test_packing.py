"""The packaged files are what the packing tool makes of the originals."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from projfree.datasets.sources import load_packaged

TOOL = Path(__file__).parents[2] / "tools" / "pack_datasets.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("pack_datasets", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        assert np.array_equal(a[name], b[name]), name


def test_adult(tool, real_data):
    same(tool.pack_adult(real_data / "adult"), load_packaged("adult.npz"))


def test_year(tool, real_data):
    pytest.importorskip("pyarrow")
    same(tool.pack_year(real_data / "year_prediction_msd_sample"), load_packaged("year_sample.npz"))


def test_a_changed_original_is_refused(tool, tmp_path):
    (tmp_path / "adult.data").write_text("39, State-gov\n")
    with pytest.raises(ValueError, match=r"adult.data in .* is not the original: its sha256 differs"):
        tool.pack_adult(tmp_path)
