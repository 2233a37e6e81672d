"""The tests of this folder find their tables as `estimators.problems`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
