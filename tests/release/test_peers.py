"""How the benchmark of peers looks for their settings, and what it says of those that are missing."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "benchmarks"), *sys.path])
    return importlib.import_module("peers")


def problem(error: Any) -> SimpleNamespace:
    """One whose answers are settings, and whose error is a function of them."""
    return SimpleNamespace(error=lambda w: error(float(w[0])))


def given(_: object, setting: float) -> np.ndarray:
    return np.array([setting])


@pytest.mark.parametrize("level", [1e-2, 1e-4, 3e-5])
@pytest.mark.parametrize("scale", [0.4, 1.0, 7.0])
def test_the_loosest_setting_that_is_good_enough(peers: ModuleType, level: float, scale: float) -> None:
    methods = importlib.import_module("peer_methods")
    found = peers.Search(problem(lambda s: scale * s), methods.by_tolerance("a", given), 60.0).loosest(level)
    assert level / 2.0 <= scale * found <= level * (1 + 1e-12)
    found = peers.Search(problem(lambda s: scale / s), methods.by_iterations("b", given), 60.0).loosest(level)
    assert level / 1.15 <= scale / found <= level * (1 + 1e-12)
