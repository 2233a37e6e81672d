"""A tiny run of real tasks, shared by the tests of store, runner and report."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tiny_run import FACTS, TINY_EXPERIMENTS

from reproduction.runner import run
from reproduction.store import Store


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A folder with the results of the tiny experiments."""
    folder = tmp_path_factory.mktemp("tiny")
    failures = run(TINY_EXPERIMENTS, "quick", Store(folder, FACTS))
    assert failures == []
    return folder
