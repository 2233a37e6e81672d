"""No test of the loaders reaches the network or the user's cache."""

from __future__ import annotations

import pytest

from projfree.datasets import download, lookup


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path_factory):
    def refuse(home, progress=None):
        raise ConnectionError(f"{home.url} is out of reach")

    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(lookup, "fetch", refuse)
    for module in (lookup, download):
        monkeypatch.setattr(module, "cache_folder", lambda: folder)
    return folder
