"""One way to write state and models to disk: a folder of JSON and npz, atomic, versioned, without pickle.

A saved folder looks like this::

    path/projfree.json             the pointer: format, version, kind, the generation that counts and its checksums
    path/generation-4f1c.../       tree.json (the tree, arrays replaced by references) and arrays.npz

`save` writes a new generation beside the old one, flushes it to the disk, and then replaces the pointer, which is
one atomic step of the file system. A process killed at any moment leaves the old or the new content, never half of
one; whatever it leaves beside them is ignored by `load` and removed by the next `save`.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from projfree.persist import generations
from projfree.persist.encoding import Tree, encode
from projfree.persist.generations import POINTER, VERSION, damaged, read_pointer

__all__ = ["VERSION", "Tree", "check", "exists", "kind_of", "load", "save"]

#: How often `load` looks again when a writer replaces the content under its eyes.
_RETRIES = 10


def save(path: str | os.PathLike[str], tree: Tree, *, kind: str) -> None:
    """Write ``tree`` to the folder ``path``, replacing atomically what `save` wrote there before.

    Parameters
    ----------
    path : path-like
        A new or empty folder, or one written by `save` with the same ``kind``. Anything else is refused, so that
        no file of somebody else is ever overwritten or removed. Parent folders are made as needed.
    tree : nested dict, list and tuple
        Of None, bool, int, float (NaN and infinities too), str, NumPy scalars and NumPy arrays without objects.
    kind : str
        What the tree is, such as ``"checkpoint"``; `load` must ask for the same.

    Notes
    -----
    One writer at a time: a second one waits for the first where the system has ``fcntl``. Readers never wait.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(folder, {"w": np.arange(3.0), "t": 7}, kind="checkpoint")
    ...     load(folder, kind="checkpoint")
    {'w': array([0., 1., 2.]), 't': 7}
    """
    folder = Path(path)
    # The tree is checked and turned into text before anything on the disk is touched.
    plain, arrays = encode(tree)
    text = json.dumps(plain, allow_nan=False).encode()
    try:
        generations.refuse_foreign(folder, kind)
        generations.write(folder, text, arrays, kind)
    except OSError as error:
        left = "what was saved there is intact" if exists(folder) else "nothing was saved there"
        raise OSError(error.errno, f"`save` could not write to {str(folder)!r} ({error.strerror}); {left}.") from error


def load(path: str | os.PathLike[str], *, kind: str) -> Any:
    """Read back the tree that `save` wrote to the folder ``path``.

    Raises
    ------
    FileNotFoundError
        Where there is no finished save at ``path``.
    ValueError
        Where the folder is damaged, of another kind, or of another version of the format.
    """
    folder = Path(path)
    for _ in range(_RETRIES):
        pointer = read_pointer(folder, kind)
        if pointer is None:
            raise FileNotFoundError(f"`load` found no finished save in {str(folder)!r}; check the path, or save first.")
        # A writer may have replaced the generation since the pointer was read: then, and only then, look again.
        with contextlib.suppress(FileNotFoundError):
            return generations.read_tree(folder, pointer)
        if pointer == read_pointer(folder, kind):
            break
    raise damaged(folder, "a file that its pointer names is missing")


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether a finished save lies at ``path``; a kill during the very first `save` leaves none."""
    return (Path(path) / POINTER).is_file()


def check(path: str | os.PathLike[str], *, kind: str) -> None:
    """Raise the ValueError that `save` would raise because of what stands at ``path``; nothing is changed."""
    generations.refuse_foreign(Path(path), kind)


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """The kind of the finished save at ``path``, None where there is none."""
    pointer = read_pointer(Path(path), None)
    return None if pointer is None else str(pointer.get("kind"))
