"""Save state and models in a folder of JSON and npz: atomic, checksummed, versioned, without pickle.

A saved folder holds one file, ``projfree.npz``: the member ``tree.json`` is the tree with arrays replaced by
references, the other members are the arrays, and the comment at the end is the SHA-256 of all bytes before it. `save`
writes it under a temporary name, flushes it to the disk and moves it into place, which is one atomic step of the file
system. A process killed at any moment, or a power cut, leaves the old or the new content, never half of one.

`load` reads files that anybody may have written: it executes nothing, reads plain files only, checks the sizes that an
archive declares before anything is allocated, and reports all damage as one ValueError.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from projfree.checks import Array, shown

__all__ = ["VERSION", "Tree", "atomic_write", "check", "exists", "load", "save"]

#: The version of the format, raised whenever the content of saved models or checkpoints changes; projfree 0.1 wrote 1.
VERSION = 2
#: What can be saved: None, bool, int, float, str, NumPy scalars and arrays, and dict, list and tuple of these.
Tree = Any

_FILE, _TREE, _CHECKSUM = "projfree.npz", "tree.json", hashlib.sha256
#: The file that a folder of projfree 0.1 has.
_POINTER_0_1 = "projfree.json"
#: Kinds of arrays that `save` writes: numbers, text and dates, no objects and no records.
_KINDS = "biufcSUmM"
# JSON objects with one of these keys stand for what JSON lacks. Keys of the user's that start with "$" are
# written with a second one, so that the two cannot be confused.
_FLOAT, _TUPLE, _ARRAY, _SCALAR = "$float", "$tuple", "$array", "$scalar"


def save(path: str | os.PathLike[str], tree: Tree, *, kind: str) -> None:
    """Write ``tree`` to the folder ``path``, replacing atomically what `save` wrote there before.

    Parameters
    ----------
    path : path-like
        A new or empty folder, or one written by `save` with the same ``kind``. Anything else is refused, so that
        no file of somebody else is overwritten. Parent folders are created as needed.
    tree : nested dict, list and tuple
        Of None, bool, int, float (NaN and infinities too), str, NumPy scalars and NumPy arrays without objects.
    kind : str
        What the tree is, such as ``"checkpoint"``; `load` must ask for the same.

    Notes
    -----
    One writer at a time: of two, one may fail with an OSError. Readers see the old or the new content.

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
    text = json.dumps(content, allow_nan=False)
    check(folder, kind=kind)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / _FILE) as temporary:
            with zipfile.ZipFile(temporary, "x") as archive:
                archive.comment = bytes(_CHECKSUM().digest_size)
                archive.writestr(_TREE, text)
                for name, array in arrays.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        npy.write_array(member, array, allow_pickle=False)
            with temporary.open("r+b") as file:
                checksum, _ = _checksums(file)
                file.seek(-len(checksum), os.SEEK_END)
                file.write(checksum)
        _flush(folder.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()  # only if it is empty
        left = "what was saved there is intact" if exists(folder) else "nothing was saved there"
        raise OSError(error.errno, f"`save` could not write to {str(folder)!r} ({error.strerror}); {left}.") from error


def load(path: str | os.PathLike[str], *, kind: str) -> Any:
    """Read back the tree that `save` wrote to the folder ``path``.

    Raises
    ------
    FileNotFoundError
        If there is no finished save at ``path``.
    ValueError
        If the folder is damaged, of another kind, or of another version of the format.
    """
    folder = Path(path)
    with _open_archive(folder, kind, checked=True) as (archive, tree):
        try:
            return _decode(tree, {member.filename: _read_array(archive, member) for member in archive.infolist()[1:]})
        except MemoryError:
            raise
        except Exception as error:
            raise _damaged(folder, error) from error


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether a finished save lies at ``path``; a kill during the very first `save` leaves none."""
    return (Path(path) / _FILE).is_file()


def check(path: str | os.PathLike[str], *, kind: str) -> None:
    """Raise the ValueError that `save` would raise because of what is at ``path``; nothing is changed."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`save` needs a folder, but {str(folder)!r} is a file; choose another path.")
    try:
        with _open_archive(folder, kind):
            return
    except FileNotFoundError:
        entries = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    if others := [name for name in entries if not name.startswith(f".{_FILE}.")]:
        raise ValueError(
            f"`save` writes only to new or empty folders and its own, but {str(folder)!r} holds {others[0]!r}; "
            "choose another path."
        )


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path; flush what was written there and move it to ``path`` if the block succeeds.

    What was at ``path`` stays until then. Temporary files of processes that were killed are removed.
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
    """Write a file, or the entries of a folder, to the disk: after a power cut a file without its entry is lost."""
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


@contextmanager
def _open_archive(folder: Path, kind: str, checked: bool = False) -> Iterator[tuple[zipfile.ZipFile, Any]]:
    """Open a saved file and yield the archive and its tree; ``checked``, which takes a read, its checksum too."""
    path = folder / _FILE
    if (folder / _POINTER_0_1).is_file() and not exists(folder):
        raise ValueError(
            f"{str(folder)!r} was written by projfree 0.1, and this version cannot read it; use the projfree that "
            "wrote it, or fit again and save to another path."
        )
    with contextlib.ExitStack() as stack:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe or a device could block or never end
                raise _DamageError(f"{path.name} is not a plain file")
            file = stack.enter_context(path.open("rb"))
            if checked and len(set(_checksums(file))) != 1:
                raise _DamageError("it does not match its checksum")
            archive = stack.enter_context(zipfile.ZipFile(file))
            _check_sizes(archive, os.fstat(file.fileno()).st_size)
            content = json.loads(archive.read(_TREE))
            if not isinstance(content, dict) or content.get("format") != "projfree":
                raise _DamageError("it is not one that projfree wrote")
            version, its_kind, tree = (content[name] for name in ("version", "kind", "tree"))
        except (FileNotFoundError, NotADirectoryError):
            message = f"`load` found no finished save in {str(folder)!r}; check the path, or save first."
            raise FileNotFoundError(message) from None
        except (PermissionError, MemoryError):
            raise
        except Exception as error:
            raise _damaged(folder, error) from error
        if version != VERSION:
            raise ValueError(
                f"{str(folder)!r} has format version {shown(version)}, and this projfree reads version {VERSION}; read "
                "it with the projfree that wrote it."
            )
        if its_kind != kind:
            raise ValueError(f"{str(folder)!r} holds a {shown(its_kind)}, not a {kind!r}; check the path.")
        yield archive, tree


class _DamageError(Exception):
    """What is wrong with a saved file."""


def _damaged(folder: Path, error: Exception) -> ValueError:
    """The error about a damaged file: archives, headers and JSON can be wrong in a dozen ways."""
    why = str(error) if isinstance(error, _DamageError) else f"it cannot be read ({type(error).__name__})"
    return ValueError(f"{str(folder)!r} is damaged: {why}; restore it from a copy, or remove it and save again.")


def _checksums(file: IO[bytes]) -> tuple[bytes, bytes]:
    """The checksum of all bytes of a file before its last ones, which are its checksum, and these."""
    checksum, size = _CHECKSUM(), os.fstat(file.fileno()).st_size
    file.seek(0)
    left = size - checksum.digest_size
    while left > 0:
        block = file.read(min(left, 1 << 20))
        checksum.update(block)
        left -= len(block)
    return checksum.digest(), file.read()


def _check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """Raise unless the members are stored as they are, once each, and fit into the file."""
    members = archive.infolist()
    if not members or members[0].filename != _TREE or len({member.filename for member in members}) != len(members):
        raise _DamageError("its members are not those of a save")
    if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in members):
        raise _DamageError("it is compressed")
    if sum(member.file_size for member in members) > size:  # members that share bytes could add up to any size
        raise _DamageError("its members are larger than the file")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """Read an array of plain numbers or text whose declared size is that of the member."""
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
    """Return ``value`` as plain JSON and put its arrays into ``arrays``."""
    # Exact types: a subclass (an enum, a masked array, np.matrix) would come back as something else.
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {_FLOAT: repr(value)}
    if kind in (list, tuple):
        items = [_encode(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
        return items if kind is list else {_TUPLE: items}
    if kind is dict:
        return {_encode_key(key, where): _encode(item, arrays, f"{where}[{key!r}]") for key, item in value.items()}
    if not (isinstance(value, np.generic) or kind in (np.ndarray, np.memmap)):
        raise TypeError(
            f"`save` cannot write {where} = {shown(value)} of type {kind.__name__}; convert it to numbers, strings, "
            "lists, dicts or NumPy arrays first."
        )
    if value.dtype.hasobject:
        raise TypeError(f"`save` writes no Python objects, but {where} has dtype {value.dtype}; convert it first.")
    name = f"a{len(arrays)}"
    arrays[name] = np.asarray(value)
    return {_SCALAR if isinstance(value, np.generic) else _ARRAY: f"{name}.npy"}


def _encode_key(key: object, where: str) -> str:
    if type(key) is not str:
        raise TypeError(f"`save` needs strings as keys, got {shown(key)} in {where}; convert it with `str` first.")
    return "$" + key if key.startswith("$") else key


def _decode(plain: Any, arrays: Mapping[str, Array]) -> Tree:
    """Undo `_encode`."""
    if isinstance(plain, list):
        return [_decode(value, arrays) for value in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        ((key, value),) = plain.items()
        if key == _FLOAT:
            return float(value)
        if key == _TUPLE:
            return tuple(_decode(value, arrays))
        if key in (_ARRAY, _SCALAR):
            array = arrays[value]
            return array if key == _ARRAY else array.reshape(())[()]
    return {key.removeprefix("$"): _decode(value, arrays) for key, value in plain.items()}
