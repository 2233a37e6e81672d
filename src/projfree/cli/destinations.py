"""Where a command may write: nothing is overwritten unasked, no input is an output, no file is left half-written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from projfree import persist


def refuse_inputs(out: Path, inputs: Sequence[Path]) -> None:
    """Raise where the output is one of the inputs, holds one of them, or lies in one of them."""
    place = Path(os.path.realpath(out))
    for given in inputs:
        source = Path(os.path.realpath(given))
        shared = out.exists() and given.exists() and os.path.samefile(out, given)  # links to one file
        if shared or place.is_relative_to(source) or source.is_relative_to(place):
            raise ValueError(
                f"--out {str(out)!r} would overwrite what is read from {str(given)!r}; choose another path."
            )


def new_file_at(out: Path, inputs: Sequence[Path], force: bool) -> None:
    """Raise unless a file may be written at ``out``: something new, or with --force a plain file."""
    refuse_inputs(out, inputs)
    if os.path.lexists(out) and not force:
        raise _exists(out)
    if os.path.lexists(out) and (out.is_symlink() or not out.is_file()):
        raise ValueError(
            f"--out {str(out)!r} is not a plain file, and --force replaces nothing else; choose another path."
        )
    refuse_closed(out)


def new_model_at(out: Path, inputs: Sequence[Path], force: bool, kind: str) -> None:
    """Raise unless a model may be saved at ``out``: something new or empty, or with --force a model of the kind."""
    refuse_inputs(out, inputs)
    if not force and os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise _exists(out)
    persist.check(out, kind=kind)
    refuse_closed(out)


def _exists(out: Path) -> ValueError:
    return ValueError(f"--out {str(out)!r} exists; choose another path, or replace it with --force.")


def refuse_closed(out: Path) -> None:
    """Raise where the folder that the output would lie in cannot be written to."""
    parent = out.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise NotADirectoryError(
            f"--out {str(out)!r} lies below {str(parent)!r}, which is a file; choose another path."
        )
    if not os.access(parent, os.W_OK):
        raise PermissionError(f"--out {str(out)!r} cannot be written: the folder {str(parent)!r} is read-only.")


class NotWrittenError(OSError):
    """An output that could not be written; the sentence names it."""


def _not_written(out: Path, error: OSError) -> NotWrittenError:
    why = getattr(error.__cause__, "strerror", None) or error.strerror or error  # `save` says more than the system
    return NotWrittenError(error.errno, f"{str(out)!r} could not be written ({why}); no part of it was left behind.")


def save_model(model: Any, out: Path, inputs: Sequence[Path], force: bool) -> None:
    """Save a model at a place that may hold one still: another process may have been faster."""
    from projfree.estimators import save
    from projfree.estimators.saving import KIND

    new_model_at(out, inputs, force, KIND)
    try:
        save(model, out)
    except OSError as error:
        raise _not_written(out, error) from error


@contextmanager
def written(out: Path, force: bool) -> Iterator[IO[str]]:
    """A text file that appears at ``out`` when the block has ended well, and of which nothing is left otherwise.

    What another process has put there in the meantime stays, unless ``force`` is True.
    """
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("x", newline="", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # the disk may be full only now
        _published(partial, out, force)
    except OSError as error:
        raise _not_written(out, error) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def _published(partial: Path, out: Path, force: bool) -> None:
    """Give the file its name; a link, unlike a replacement, fails where that is taken."""
    if not force:
        try:
            os.link(partial, out)
        except FileExistsError:
            raise _exists(out) from None
        except OSError:  # a file system without links
            if os.path.lexists(out):
                raise _exists(out) from None
        else:
            return
    os.replace(partial, out)


def safe_cell(value: object) -> object:
    """A cell of a CSV file that no spreadsheet takes for a formula: such text gets an apostrophe in front.

    Examples
    --------
    >>> safe_cell("=HYPERLINK(1)"), safe_cell("-1.5"), safe_cell("up")
    ("'=HYPERLINK(1)", '-1.5', 'up')
    """
    if not isinstance(value, str) or len(value) < 2 or value[0] not in "=+-@\t\r":
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value
