"""The tests of this folder, and others, find examples of sets as `sets.examples`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
