"""The tests of this folder find their helpers as `golden.*`, and get readable assertions from them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.register_assert_rewrite("golden")
