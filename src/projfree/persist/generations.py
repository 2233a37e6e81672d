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
from projfree.persist.tree import Tree, decode

#: The version of the folder format; raised whenever older code could not read what newer code writes.
VERSION = 1

POINTER, TREE, ARRAYS = "projfree.json", "tree.json", "arrays.npz"
_GENERATION = re.compile(r"generation-[0-9a-f]{16}")
_TEMPORARY = re.compile(r"projfree\.json\.[0-9a-f]{16}")


def damaged(folder: Path, why: str) -> ValueError:
    """The sentence for a folder that cannot be read."""
    return ValueError(f"{str(folder)!r} is damaged: {why}; restore it from a copy, or remove it and save again.")


def read_pointer(folder: Path, kind: str) -> dict[str, Any] | None:
    """The checked content of the pointer file, or None where there is none."""
    try:
        pointer = json.loads((folder / POINTER).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError) as error:
        raise damaged(folder, f"{POINTER} is not JSON") from error
    if not isinstance(pointer, dict) or pointer.get("format") != "projfree" or type(pointer.get("version")) is not int:
        raise damaged(folder, f"{POINTER} is not one that projfree wrote")
    if pointer["version"] > VERSION:
        raise ValueError(
            f"{str(folder)!r} has format version {pointer['version']}, and this projfree reads up to {VERSION}; "
            "upgrade projfree."
        )
    if pointer.get("kind") != kind:
        raise ValueError(f"{str(folder)!r} holds a {shown(pointer.get('kind'))}, not a {kind!r}; check the path.")
    return pointer


def read_tree(folder: Path, pointer: dict[str, Any]) -> Tree:
    """The tree of the generation that ``pointer`` names."""
    name, checksums = pointer.get("generation"), pointer.get("sha256")
    # The name is checked before it becomes a path: a pointer must not lead out of its folder.
    if not isinstance(name, str) or not _GENERATION.fullmatch(name) or not isinstance(checksums, dict):
        raise damaged(folder, f"{POINTER} names no generation")
    for file in (TREE, ARRAYS):
        if sha256(folder / name / file) != checksums.get(file):
            raise damaged(folder, f"{name}/{file} does not match its checksum")
    with np.load(folder / name / ARRAYS, allow_pickle=False) as arrays:
        return decode(json.loads((folder / name / TREE).read_bytes()), arrays)


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
    checksums = {name: sha256(generation / name) for name in (TREE, ARRAYS)}
    temporary = folder / generation.name.replace("generation-", POINTER + ".")
    with flushed(temporary) as file:
        file.write(json.dumps(pointer | {"sha256": checksums}, indent=1).encode())
    # The generation must be on the disk before the pointer names it, and the pointer before the old one goes.
    flush_folder(folder)
    os.replace(temporary, folder / POINTER)
    flush_folder(folder)


def _is_leftover(name: str) -> bool:
    return bool(_GENERATION.fullmatch(name) or _TEMPORARY.fullmatch(name))


def _sweep(folder: Path) -> None:
    """Remove our own leftovers, file by file: what somebody else put there stays."""
    try:
        current = json.loads((folder / POINTER).read_bytes())["generation"]
    except FileNotFoundError:
        current = None
    for entry in [*folder.iterdir()]:
        if entry.name != current and _is_leftover(entry.name):
            _remove(entry)


def _remove(entry: Path) -> None:
    with contextlib.suppress(OSError):
        if not entry.is_dir():
            entry.unlink()
            return
        for name in (TREE, ARRAYS):
            (entry / name).unlink(missing_ok=True)
        entry.rmdir()
