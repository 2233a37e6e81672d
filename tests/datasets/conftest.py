"""No test of the loaders reaches the network or the user's cache."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """The folder of downloads; the server cannot be reached."""
    import pooch

    def refuse(self, url, output_file, pooch, check_only=False):
        raise ConnectionError(f"{url} is out of reach")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", refuse)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache")
    return tmp_path / "cache"
