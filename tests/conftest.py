"""What every test shares: Hypothesis profiles and the folder of real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: a shared machine is slow at times, and that is not what the laws are about.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, database=None, max_examples=50, **_COMMON)
settings.register_profile("explore", max_examples=1000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, for tests that want the original files."""
    folder = os.environ.get("PROJFREE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("PROJFREE_DATA does not name a folder with the original data files")
    return Path(folder)
