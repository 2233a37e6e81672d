"""The look-up order, and files that come from their homes, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from dataclasses import replace

import pytest

from projfree.datasets import load_movielens, lookup
from projfree.datasets.download import HOMES, check, fetch

REAL = HOMES["movielens-1m"]


def archive(name="ml-1m/ratings.dat", text="1::2::3::4\n"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(name, text)
    return buffer.getvalue()


ARCHIVE = archive()
HOME = replace(REAL, archive_sha256=hashlib.sha256(ARCHIVE).hexdigest())


@pytest.fixture
def served(monkeypatch, offline):
    """What the home of the data answers with."""
    import pooch

    def answers(content):
        def retrieve(url, known_hash, fname, path, downloader):
            path.mkdir(parents=True, exist_ok=True)
            (path / fname).write_bytes(content)
            return str(path / fname)

        monkeypatch.setattr(pooch, "retrieve", retrieve)
        return offline

    return answers


def test_the_folder_of_the_variable_comes_before_the_cache(tmp_path, monkeypatch, offline):
    monkeypatch.setenv("PROJFREE_DATA", str(tmp_path))
    for root in (tmp_path, offline):
        (root / "ml-1m").mkdir()
        (root / "ml-1m" / "ratings.dat").write_text("")
    assert lookup.present(REAL) == tmp_path / "ml-1m" / "ratings.dat"
    (tmp_path / "ml-1m" / "ratings.dat").unlink()
    assert lookup.present(REAL) == offline / "ml-1m" / "ratings.dat"


def test_a_download_is_kept_under_the_name_that_the_loader_looks_for(served, monkeypatch):
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    cache = served(ARCHIVE)
    path = fetch(HOME)
    assert path == cache / "ml-1m" / "ratings.dat.zip"
    assert lookup.present(HOME) == path
    with lookup.open_text(path) as text:
        assert text.read() == "1::2::3::4\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"<html>not here</html>", "it is no zip archive"),
        (archive("ml-1m/users.dat"), "it holds no ratings.dat"),
        (archive(text="1::2::5::4\n"), "the sha256 of the archive is [0-9a-f]{64}, not "),
    ],
    # An archive holds the time of its making, and names of tests must not change.
    ids=["no archive", "another file", "other ratings"],
)
def test_what_is_not_the_data_is_not_kept(served, content, why):
    cache = served(content)
    with pytest.raises(ValueError, match=f"is not the data: {why}"):
        fetch(HOME)
    assert list((cache / "ml-1m").iterdir()) == []


def test_a_known_checksum_is_checked(tmp_path):
    content = archive("ml-100k/u.data", "1\t2\t3\t4\n")
    place = tmp_path / "u.data.zip"
    place.write_bytes(content)
    good = replace(HOMES["movielens-100k"], sha256=hashlib.sha256(b"1\t2\t3\t4\n").hexdigest())
    check(place, good)
    check(place, replace(good, archive_sha256="of another archive with the same file"))
    check(place, replace(good, sha256="not looked at", archive_sha256=hashlib.sha256(content).hexdigest()))
    with pytest.raises(ValueError, match=r"the sha256 of u.data is"):
        check(place, HOMES["movielens-100k"])


def test_offline_the_sentence_names_the_home_and_the_variable(monkeypatch):
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    with pytest.raises(
        FileNotFoundError, match=r"the download from https://files.grouplens.org.* failed .*set PROJFREE"
    ):
        load_movielens("100k")


def test_no_download_where_none_is_wanted(monkeypatch):
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"needs u\.data") as caught:
        load_movielens("100k", download=False)
    assert "download" not in str(caught.value)


TEXT = "1\t2\t3\t4\n"
KNOWN = replace(HOMES["movielens-100k"], sha256=hashlib.sha256(TEXT.encode()).hexdigest())


@pytest.mark.parametrize("suffix", ["", ".gz", ".zip"])
def test_a_known_checksum_is_checked_on_every_load_from_the_cache(offline, monkeypatch, suffix):
    monkeypatch.delenv("PROJFREE_DATA", raising=False)
    (offline / "ml-100k").mkdir()
    place = offline / "ml-100k" / ("u.data" + suffix)

    def pack(text):
        return {"": text.encode(), ".gz": gzip.compress(text.encode()), ".zip": archive("ml-100k/u.data", text)}[suffix]

    place.write_bytes(pack(TEXT))
    assert lookup.present(KNOWN) == place
    place.write_bytes(pack(TEXT.replace("3", "5")))
    assert lookup.present(KNOWN) is None
    place.write_bytes(pack(TEXT)[:-5])
    assert lookup.present(KNOWN) is None
