"""Save state and models in a folder as JSON and npz: atomic, with checksums and a version, without pickle.

A saved folder contains one file, ``projfree.npz``: its member ``tree`` is the tree as JSON, with references in place of
arrays, and the other members are the arrays; the archive has a checksum of each. `save` writes the file under a
temporary name, flushes it to the disk and renames it, which is atomic. If the process is killed or power fails, the
folder has either the old or the new content.

`load` accepts files of unknown origin: it executes nothing, reads regular files only, checks the sizes that an archive
declares before it allocates memory, and reports all damage as a ValueError.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from projfree.checks import Array, shown

__all__ = ["VERSION", "Tree", "UnknownClassError", "atomic_write", "check", "exists", "load", "pack", "save", "unpack"]

#: Version of the format, incremented whenever the content of saved models or checkpoints changes.
VERSION = 2
#: Objects that can be saved: None, bool, int, float, str, NumPy scalars and arrays, and dict, list and tuple of these.
Tree = Any

_FILE = "projfree.npz"
#: Kinds of dtypes that `save` writes: numbers, text and dates, but no objects or records.
_KINDS = "biufcSUmM"


def save(path: str | os.PathLike[str], tree: Tree, *, kind: str) -> None:
    """Write ``tree`` to the folder ``path``, and atomically replace an earlier save.

    Parameters
    ----------
    path : path-like
        A new or empty folder, or one written by `save` with the same ``kind``. Other folders raise an error, so that no
        other files are overwritten. Parent folders are created as needed.
    tree : nested dict, list and tuple
        Of None, bool, int, float (including NaN and infinity), str, NumPy scalars and NumPy arrays without objects.
    kind : str
        Kind of the content, such as ``"checkpoint"``; `load` must be called with the same kind.

    Notes
    -----
    Only one process may write at a time: of two, one may raise an OSError. Readers see the old or the new content.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(folder, {"w": np.arange(3.0), "t": 7}, kind="checkpoint")
    ...     load(folder, kind="checkpoint")
    {'w': array([0., 1., 2.]), 't': 7}
    """
    folder, arrays = Path(path), dict[str, Array]()
    content = {"format": "projfree", "version": VERSION, "kind": kind, "tree": _encode(tree, arrays, "tree")}
    members: dict[str, Any] = {"tree": np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)} | arrays
    check(folder, kind=kind)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / _FILE) as temporary, temporary.open("xb") as file:
            np.savez(file, **members)
        _flush(folder.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()  # only if it is empty
        left = "what was saved there is intact" if exists(folder) else "nothing was saved there"
        raise OSError(error.errno, f"`save` could not write to {str(folder)!r} ({error.strerror}); {left}.") from error


def load(path: str | os.PathLike[str], *, kind: str) -> Any:
    """Read the tree that `save` wrote to the folder ``path``.

    Raises
    ------
    FileNotFoundError
        If there is no completed save at ``path``.
    ValueError
        If the folder is damaged, of another kind, or of another version of the format.
    """
    return _read(Path(path), kind)


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a completed save at ``path``; interrupting the very first `save` leaves none."""
    return (Path(path) / _FILE).is_file()


def check(path: str | os.PathLike[str], *, kind: str) -> None:
    """Raise the ValueError that `save` would raise for this path, without writing anything."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`save` needs a folder, but {str(folder)!r} is a file; choose another path.")
    try:
        _read(folder, kind, with_arrays=False)
    except FileNotFoundError:
        entries = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        if others := [name for name in entries if not name.startswith(f".{_FILE}.")]:
            raise ValueError(
                f"`save` writes only to new or empty folders and its own, but {str(folder)!r} holds {others[0]!r}; "
                "choose another path."
            ) from None


def pack(value: Any, types: Mapping[str, type], convert: Callable[[Any], Any] = lambda value: value) -> Tree:
    """Convert a tree with dataclasses to one with dictionaries of ``class`` and the fields.

    Dataclasses not in ``types`` have no fields in the result. ``convert`` is applied to each value first, to handle
    other classes.
    """
    value = convert(value)
    if isinstance(value, list | tuple):
        return type(value)(pack(each, types, convert) for each in value)
    if isinstance(value, dict):
        return {name: pack(each, types, convert) for name, each in value.items()}
    if not is_dataclass(value):
        return value
    kind: Any = type(value)
    known = fields(kind) if types.get(kind.__name__) == kind else ()
    names = [each.name for each in known if not each.metadata.get("transient")]
    return {"class": kind.__name__} | {name: pack(getattr(value, name), types, convert) for name in names}


def unpack(tree: Tree, makers: Mapping[str, Callable[..., Any]]) -> Any:
    """Invert `pack`; ``makers`` maps each class name to the function that is called with the fields."""
    if isinstance(tree, list | tuple):
        return type(tree)(unpack(each, makers) for each in tree)
    if not isinstance(tree, dict):
        return tree
    if tree["class"] not in makers:
        raise UnknownClassError(f"{tree['class']!s:.80} is not a class of projfree")
    return makers[tree["class"]](**{name: unpack(each, makers) for name, each in tree.items() if name != "class"})


class UnknownClassError(ValueError):
    """A file contains a class name that `unpack` does not accept."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path; if the block succeeds, flush the file and rename it to ``path``.

    Until then the file at ``path`` does not change. Temporary files of killed processes are removed.
    """
    for leftover in path.parent.glob(f".{path.name}.*.partial"):
        leftover.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk: after a power failure, a file without entry is lost."""
    if path.is_dir() and os.name != "posix":
        return  # other systems cannot open a folder
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems do not flush folders
            raise
    finally:
        os.close(descriptor)


class _DamageError(Exception):
    """The reason why a saved file cannot be read."""


def _read(folder: Path, kind: str, with_arrays: bool = True) -> Any:
    """Validate format, version and kind of a saved file and return its tree; None without ``with_arrays``."""
    path = folder / _FILE
    try:
        if path.exists() and not path.is_file():  # reading a pipe or a device could block or never end
            raise _DamageError(f"{path.name} is not a plain file")
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {member.filename: member for member in archive.infolist()}
            # Overlapping members could otherwise have any total size.
            if sum(member.file_size for member in archive.infolist()) > os.fstat(file.fileno()).st_size:
                raise _DamageError("its members are larger than the file")
            content = json.loads(_read_array(archive, members.pop("tree.npy")).tobytes())
            if not isinstance(content, dict) or content.get("format") != "projfree":
                raise _DamageError("it is not one that projfree wrote")
            if content["version"] == VERSION and content["kind"] == kind:
                arrays = {name: _read_array(archive, member) for name, member in members.items()} if with_arrays else {}
                return _decode(content["tree"], arrays) if with_arrays else None
    except (FileNotFoundError, NotADirectoryError):
        message = f"`load` found no finished save in {str(folder)!r}; check the path, or save first."
        raise FileNotFoundError(message) from None
    except (PermissionError, MemoryError):
        raise
    except Exception as error:  # archives, headers and JSON raise many types of errors
        why = str(error) if isinstance(error, _DamageError) else f"it cannot be read ({type(error).__name__})"
        raise ValueError(
            f"{str(folder)!r} is damaged: {why}; restore it from a copy, or remove it and save again."
        ) from error
    if content["version"] != VERSION:
        raise ValueError(
            f"{str(folder)!r} has format version {shown(content['version'])}, and this projfree reads version "
            f"{VERSION}; read it with the projfree that wrote it."
        )
    raise ValueError(f"{str(folder)!r} holds a {shown(content['kind'])}, not a {kind!r}; check the path.")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """Read an array of numbers or text whose declared size equals that of the member."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise _DamageError("it is compressed")
    with archive.open(member) as file:
        major, _ = npy.read_magic(file)
        shape, _, dtype = (npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0)(file)
        if dtype.kind not in _KINDS:
            raise _DamageError(f"{member.filename} has dtype {dtype}")
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
            raise _DamageError(f"{member.filename} declares another size than it has")
        file.seek(0)
        return np.asarray(npy.read_array(file, allow_pickle=False))


def _encode(value: Tree, arrays: dict[str, Array], where: str) -> Any:
    """Convert ``value`` to JSON, in which lists are tagged with their type; its arrays are added to ``arrays``."""
    # Exact types only: a subclass (an enum, a masked array, np.matrix) would be loaded as another type.
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, tuple):
        return [kind.__name__, [_encode(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]]
    if kind is dict:
        if strange := [key for key in value if type(key) is not str]:
            raise TypeError(
                f"`save` needs strings as keys, got {shown(strange[0])} in {where}; convert it with `str` first."
            )
        return {key: _encode(item, arrays, f"{where}[{key!r}]") for key, item in value.items()}
    if not (isinstance(value, np.generic) or kind in (np.ndarray, np.memmap)):
        raise TypeError(
            f"`save` cannot write {where} = {shown(value)} of type {kind.__name__}; convert it to numbers, strings, "
            "lists, dicts or NumPy arrays first."
        )
    if value.dtype.hasobject:
        raise TypeError(f"`save` writes no Python objects, but {where} has dtype {value.dtype}; convert it first.")
    name = f"a{len(arrays)}"
    arrays[name] = np.asarray(value)
    return ["scalar" if isinstance(value, np.generic) else "array", f"{name}.npy"]


def _decode(plain: Any, arrays: Mapping[str, Array]) -> Tree:
    """Invert `_encode`."""
    match plain:
        case dict():
            return {key: _decode(value, arrays) for key, value in plain.items()}
        case ["list", items]:
            return [_decode(value, arrays) for value in items]
        case ["tuple", items]:
            return tuple(_decode(value, arrays) for value in items)
        case ["array", name]:
            return arrays[name]
        case ["scalar", name]:
            return arrays[name].reshape(())[()]
        case list():
            raise _DamageError("its tree has a list of an unknown kind")
    return plain
