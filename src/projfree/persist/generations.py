"""The layout of a saved folder, and the order of steps that makes replacing its content atomic."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.persist.disk import flush_folder, flushed, locked, sha256
from projfree.persist.encoding import Tree, decode
from projfree.persist.reading import DamagedError, opened, read_arrays, read_limited

#: The version of the folder format; raised whenever older code could not read what newer code writes.
VERSION = 1

POINTER, TREE, ARRAYS = "projfree.json", "tree.json", "arrays.npz"
_GENERATION = re.compile(r"generation-[0-9a-f]{16}")
_TEMPORARY = re.compile(r"projfree\.json\.[0-9a-f]{16}")
#: No pointer that `save` writes has more bytes.
POINTER_BYTES = 1 << 16


def damaged(folder: Path, why: str) -> ValueError:
    """The sentence for a folder that cannot be read."""
    return ValueError(f"{str(folder)!r} is damaged: {why}; restore it from a copy, or remove it and save again.")


def read_pointer(folder: Path, kind: str | None) -> dict[str, Any] | None:
    """The checked content of the pointer file of a kind, or of any; None where there is none."""
    try:
        if not folder.is_dir():
            return None
        pointer = json.loads(read_limited(folder / POINTER, POINTER_BYTES))
    except FileNotFoundError:
        return None
    except DamagedError as error:
        raise damaged(folder, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise damaged(folder, f"{POINTER} is not JSON") from error
    if not isinstance(pointer, dict) or pointer.get("format") != "projfree" or type(pointer.get("version")) is not int:
        raise damaged(folder, f"{POINTER} is not one that projfree wrote")
    if pointer["version"] != VERSION:
        raise ValueError(
            f"{str(folder)!r} has format version {pointer['version']}, and this projfree reads version {VERSION}; "
            "read it with the projfree that wrote it."
        )
    if kind is not None and pointer.get("kind") != kind:
        raise ValueError(f"{str(folder)!r} holds a {shown(pointer.get('kind'))}, not a {kind!r}; check the path.")
    return pointer


def read_tree(folder: Path, pointer: dict[str, Any]) -> Tree:
    """The tree of the generation that ``pointer`` names."""
    name, checksums = pointer.get("generation"), pointer.get("sha256")
    # The name is checked before it becomes a path: a pointer must not lead out of its folder.
    if not isinstance(name, str) or not _GENERATION.fullmatch(name) or not isinstance(checksums, dict):
        raise damaged(folder, f"{POINTER} names no generation")
    try:
        with opened(folder / name / TREE) as tree, opened(folder / name / ARRAYS) as arrays:
            for file, content in ((TREE, tree), (ARRAYS, arrays)):
                if sha256(content) != checksums.get(file):
                    raise DamagedError(f"{name}/{file} does not match its checksum")
            tree.seek(0)
            return decode(json.loads(tree.read()), read_arrays(arrays))
    except (OSError, MemoryError):
        raise
    except DamagedError as error:
        raise damaged(folder, str(error)) from error
    except Exception as error:  # archives, headers and JSON can be wrong in a dozen ways
        raise damaged(folder, f"{name} cannot be read ({type(error).__name__})") from error


def refuse_foreign(folder: Path, kind: str) -> None:
    """Raise a sentence unless ``folder`` is new, empty, or holds only what `write` leaves."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`save` needs a folder, but {str(folder)!r} is a file; choose another path.")
    if not folder.is_dir() or read_pointer(folder, kind) is not None:
        return
    strangers = sorted(entry.name for entry in folder.iterdir() if not _is_leftover(entry.name))
    if strangers:
        raise ValueError(
            f"`save` writes only to new or empty folders and its own, but {str(folder)!r} holds {strangers[0]!r}; "
            "choose another path."
        )


def write(folder: Path, text: bytes, arrays: dict[str, Array], kind: str) -> None:
    """Write a new generation, make it the one that counts, and remove the others."""
    made = not folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder):
            try:
                _replace(folder, _generation(folder, text, arrays), kind)
            finally:
                # After a failure this removes the new generation, after a success the old one: the pointer decides.
                _sweep(folder)
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()  # only if empty
        raise
    if made:
        flush_folder(folder.parent)


def _generation(folder: Path, text: bytes, arrays: dict[str, Array]) -> Path:
    generation = folder / f"generation-{secrets.token_hex(8)}"
    generation.mkdir()
    with flushed(generation / TREE) as file:
        file.write(text)
    with flushed(generation / ARRAYS) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # the stub takes any keyword for its allow_pickle
    flush_folder(generation)
    return generation


def _replace(folder: Path, generation: Path, kind: str) -> None:
    pointer = {"format": "projfree", "version": VERSION, "kind": kind, "generation": generation.name}
    checksums = {name: _checksum(generation / name) for name in (TREE, ARRAYS)}
    temporary = folder / generation.name.replace("generation-", POINTER + ".")
    with flushed(temporary) as file:
        file.write(json.dumps(pointer | {"sha256": checksums}, indent=1).encode())
    # The generation must be on the disk before the pointer names it, and the pointer before the old one goes.
    flush_folder(folder)
    os.replace(temporary, folder / POINTER)
    flush_folder(folder)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return sha256(file)


def _is_leftover(name: str) -> bool:
    return bool(_GENERATION.fullmatch(name) or _TEMPORARY.fullmatch(name))


def _sweep(folder: Path, current: str | None = None) -> None:
    """Remove our own leftovers, file by file: what somebody else put there stays."""
    with contextlib.suppress(FileNotFoundError):
        current = json.loads(read_limited(folder / POINTER, POINTER_BYTES))["generation"]
    for entry in [*folder.iterdir()]:
        if entry.name != current and _is_leftover(entry.name):
            _remove(entry)


def _remove(entry: Path) -> None:
    with contextlib.suppress(OSError):
        if entry.is_symlink() or not entry.is_dir():  # of a link the link alone, never what it points to
            entry.unlink()
            return
        for name in (TREE, ARRAYS):
            (entry / name).unlink(missing_ok=True)
        entry.rmdir()


def unfinished(folder: Path) -> bool:
    """Whether a first save was begun in ``folder`` and not finished: it holds our leftovers and nothing else."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    names = [entry.name for entry in folder.iterdir()]
    return bool(names) and all(_is_leftover(name) for name in names)


def remove(folder: Path, kind: str) -> None:
    """Remove what `write` has left in ``folder``, and the folder if nothing else is in it."""
    if folder.is_symlink() or not (unfinished(folder) or read_pointer(folder, kind) is not None):
        return
    with locked(folder):
        (folder / POINTER).unlink(missing_ok=True)
        _sweep(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()  # only if empty
