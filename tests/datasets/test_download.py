"""The look-up order, and downloads, which are kept only with the right checksum."""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from dataclasses import replace

import pytest

from projfree.datasets import load_movielens
from projfree.datasets.sources import SOURCES, download, find_file, find_local, open_text


def archive(name="ml-1m/ratings.dat", text="1::2::3::4\n"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(name, text)
    return buffer.getvalue()


ARCHIVE = archive()
SOURCE = replace(SOURCES["movielens-1m"], sha256=hashlib.sha256(ARCHIVE).hexdigest())


@pytest.fixture
def serve(monkeypatch):
    """Let the server answer with some bytes."""
    import pooch

    def answer(content):
        def send(self, url, output_file, pooch, check_only=False):
            with open(output_file, "wb") as file:
                file.write(content)

        monkeypatch.setattr(pooch.HTTPDownloader, "__call__", send)

    return answer


def test_the_folder_of_the_variable_comes_before_the_cache(tmp_path, monkeypatch, serve, cache):
    serve(ARCHIVE)
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    (tmp_path / "ml-1m").mkdir()
    (tmp_path / "ml-1m" / "ratings.dat").write_text("")
    assert find_local(SOURCE) == find_file("f()", SOURCE) == tmp_path / "ml-1m" / "ratings.dat"
    (tmp_path / "ml-1m" / "ratings.dat").unlink()
    assert find_file("f()", SOURCE) == cache / "ml-1m" / "ratings.dat.zip"


def test_a_download_is_kept_and_its_checksum_is_checked_each_time(serve, cache):
    serve(ARCHIVE)
    path = download(SOURCE)
    with open_text(path) as text:
        assert text.read() == "1::2::3::4\n"
    serve(b"nothing else is asked for")
    assert download(SOURCE) == path
    path.write_bytes(archive(text="1::2::5::4\n"))
    serve(ARCHIVE)
    assert download(SOURCE).read_bytes() == ARCHIVE


@pytest.mark.parametrize("content", [b"<html>not here</html>", archive(text="1::2::5::4\n")], ids=["page", "other"])
def test_another_file_is_not_kept(serve, cache, content):
    serve(content)
    with pytest.raises(ValueError, match=r"ml-1m\.zip .* checksum"):
        download(SOURCE)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_without_the_file_the_sentence_names_what_to_do(monkeypatch):
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"u\.data .*ConnectionError.* grouplens.org/.* PROJFREE_DATA"):
        load_movielens("100k")
    with pytest.raises(FileNotFoundError, match=r"u\.data") as caught:
        load_movielens("100k", download=False)
    assert "download" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=r"pip install 'projfree\[data\]'"):
        load_movielens("100k")
