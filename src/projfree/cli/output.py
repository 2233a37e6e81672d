"""What commands print and write: results, errors in one sentence, files that appear whole or not at all."""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import typer

from projfree import persist

#: The exit codes, as documented in the help.
DONE, SHORT, BAD_INPUT, FAULT, INTERRUPTED = 0, 1, 2, 3, 130


# ---------------------------------------------------------------- text


def prepare_streams() -> None:
    """Let output to a closed stream (``>&-``) go nowhere, and show signs that a terminal lacks as escapes."""
    for name in ("stdin", "stdout", "stderr"):  # in the order of their numbers, so that no file takes one of them
        if getattr(sys, name) is None:
            stream = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115 - it stays open
            setattr(sys, name, stream)
    for output in (sys.stdout, sys.stderr):
        if hasattr(output, "reconfigure"):
            output.reconfigure(errors="backslashreplace")


def note(text: str, quiet: bool = False) -> None:
    """Print a remark on the error stream."""
    if not quiet:
        typer.echo(f"{typer.style('Note:', dim=True)} {text}", err=True)


def show_json(record: dict[str, Any]) -> None:
    """Print a record as JSON; numbers that are not finite become null."""
    typer.echo(json.dumps(_plain(record), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_fields(title: str, fields: dict[str, str | None], *, good: bool = True) -> None:
    """Print a title and aligned lines; fields that are None are left out."""
    typer.secho(title, fg="green" if good else "yellow", bold=True)
    width = max(len(name) for name, text in fields.items() if text is not None)
    for name, text in fields.items():
        if text is not None:
            typer.echo(f"  {typer.style(name.ljust(width), dim=True)}  {text}")


# ---------------------------------------------------------------- errors


def fail(text: str, code: int = BAD_INPUT, title: str = "Error") -> NoReturn:
    """Print what is wrong in one line and exit."""
    typer.echo(f"{typer.style(title + ':', fg='red', bold=True)} {' '.join(text.split())}", err=True)
    raise typer.Exit(code)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors about the input into one sentence and the exit code 2, and any other into a fault."""
    options = {name: "--" + name.replace("_", "-") for name in inspect.signature(command).parameters}
    options |= {"fit_intercept": "--intercept", "random_state": "--seed", "radii": "--radius"}

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            typer.echo("Interrupted; nothing was written.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            debug, notes = kwargs.get("debug"), getattr(error, "__notes__", [])
            if debug:
                typer.echo(traceback.format_exc(), err=True, nl=False)
            if is_bad_input(error):
                fail(" ".join([sentence(error, options), *notes]))
            text = f"{type(error).__name__}: {error}; {'; '.join(notes) or 'nothing was written'}"
            way = "with the traceback above" if debug else "with the traceback that --debug shows"
            fail(f"{text}; please report it {way}.", FAULT, "Fault of projfree")

    return wrapped


def is_bad_input(error: BaseException) -> bool:
    """Whether an error is about the input or the machine: a sentence of this package, or of scikit-learn's checks.

    What Python and NumPy raise is no sentence with a full stop, and is a fault of projfree, which should have checked.
    """
    if isinstance(error, OSError | ImportError | MemoryError):
        return True
    frames = list(traceback.walk_tb(error.__traceback__))
    module = str(frames[-1][0].f_globals.get("__name__", "")) if frames else ""
    own = module.startswith(("projfree.", "reproduction.")) and str(error).endswith(".")
    return isinstance(error, ValueError | TypeError | RuntimeError) and (own or module.startswith("sklearn.utils."))


def sentence(error: BaseException, options: Mapping[str, str]) -> str:
    """The text of an error on one line, with options of the command in place of arguments of the library.

    Examples
    --------
    >>> sentence(ValueError("`LpBall(p=...)` must be at least 1 (`impute='median'`, `w`)."), {"p": "--p"})
    "--p must be at least 1 (`impute='median'`, `w`)."
    """
    text = str(error)
    if isinstance(error, OSError) and error.errno is not None and error.args[1:]:
        text = str(error.args[1]) if error.filename is None else f"{error.filename}: {error.strerror}"

    def as_option(match: re.Match[str]) -> str:
        option, value = options.get(match[1]), match[2]
        return match[0] if option is None else option if value in (None, "...") else f"{option} {value}"

    plain = re.sub(r"`(?:\w+\()?(\w+)(?:='?([^`()']*)'?)?\)?`", as_option, " ".join(text.split()))
    return plain or type(error).__name__


# ---------------------------------------------------------------- files


def check_place(out: Path, inputs: Sequence[Path], force: bool, kind: str | None = None) -> None:
    """Raise unless the command may write at ``out``: something new, or with --force what was written there before.

    ``kind`` is that of a folder of `projfree.persist`; None is for a plain file.
    """
    place = Path(os.path.realpath(out))
    for given in inputs:
        source = Path(os.path.realpath(given))
        same = out.exists() and given.exists() and os.path.samefile(out, given)  # links to one file
        if same or place.is_relative_to(source) or source.is_relative_to(place):
            raise ValueError(
                f"--out {str(out)!r} would overwrite what is read from {str(given)!r}; choose another path."
            )
    empty = kind is not None and out.is_dir() and not any(out.iterdir())
    if os.path.lexists(out) and not force and not empty:
        raise ValueError(f"--out {str(out)!r} exists; choose another path, or replace it with --force.")
    if kind is not None:
        persist.check(out, kind=kind)
    elif os.path.lexists(out) and (out.is_symlink() or not out.is_file()):
        raise ValueError(
            f"--out {str(out)!r} is not a plain file, and --force replaces nothing else; choose another path."
        )
    check_parent(out)


def check_parent(out: Path) -> None:
    """Raise if the folder that the output would be in cannot be written to."""
    parent = out.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise NotADirectoryError(f"--out {str(out)!r} is below {str(parent)!r}, which is a file; choose another path.")
    if not os.access(parent, os.W_OK):
        raise PermissionError(f"--out {str(out)!r} cannot be written: the folder {str(parent)!r} is read-only.")


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Name the output in the error of a disk that is full, or the like."""
    try:
        yield
    except OSError as error:
        why = getattr(error.__cause__, "strerror", None) or error.strerror or error
        raise OSError(f"{str(out)!r} could not be written ({why}); no part of it was left behind.") from error


def save_model(model: Any, out: Path, inputs: Sequence[Path], force: bool, encoder: Any = None) -> None:
    """Save a model, behind an encoder if it has one, unless another process has put something there meanwhile."""
    from sklearn.pipeline import Pipeline

    from projfree.estimators import save

    check_place(out, inputs, force, "model")
    with _writing(out):
        save(model if encoder is None else Pipeline([("encoder", encoder), ("model", model)]), out)


@contextmanager
def text_file(out: Path, inputs: Sequence[Path], force: bool) -> Iterator[IO[str]]:
    """A text file that appears at ``out`` if the block succeeds, and of which nothing is left otherwise."""
    with _writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with persist.atomic_write(out) as temporary:
            with temporary.open("x", newline="", encoding="utf-8") as file:
                yield file
            check_place(out, inputs, force)  # another process may have put something there in the meantime


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


@contextmanager
def reporting(out: Path) -> Iterator[None]:
    """Print about what was written; if that fails, the output is there all the same, and the exit code is 1."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        fail(f"{str(out)!r} was written, but the report could not be printed ({error.strerror}).", SHORT)
