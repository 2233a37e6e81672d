"""A process that compiles says so when it begins, once."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import logging
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
from projfree.numerics.compilation import compiled, compile_seconds

@compiled()
def double(x):
    return 2.0 * x

@compiled()
def triple(x):
    return 3.0 * x

assert double(2.0) + triple(2.0) == 10.0
assert compile_seconds() > 0.0
"""


def test_the_first_compilation_is_announced(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    told = [line for line in done.stderr.splitlines() if "compiling" in line]
    assert told == [
        "INFO projfree.numerics.compilation compiling, once: this takes some seconds, and the next process finds the "
        "code on disk"
    ]
