"""The tests of this folder find their helpers as `data.*`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.register_assert_rewrite("data.passes")
