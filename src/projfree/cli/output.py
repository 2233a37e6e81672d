"""Output of the commands: reports, notes, error messages and files."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from projfree import persist
from projfree.cli.options import Printing, expand_option_groups

#: Exit codes, as documented in the help.
DONE, NOT_CONVERGED, BAD_INPUT, INTERNAL_ERROR, INTERRUPTED = 0, 1, 2, 3, 130


# ---------------------------------------------------------------- reports


@dataclass(frozen=True)
class Report:
    """Report that a command prints at its end.

    Parameters
    ----------
    record : dict
        The values for ``--json``; infinite numbers and NaN become null.
    text : str
        The text printed otherwise. If the command writes no file, ``--quiet`` prints it too.
    out : path, optional
        The file or folder written.
    code : int
        The exit code.
    """

    record: dict[str, Any]
    text: str
    out: Path | None = None
    code: int = DONE

    def show(self, printing: Printing) -> None:
        """Print the report. If printing fails after a file was written, the exit code is 1."""
        try:
            if printing.json:  # NaN and infinity are not valid JSON
                plain = json.loads(json.dumps(self.record, default=np.generic.item), parse_constant=lambda _: None)
                typer.echo(json.dumps(plain, indent=2))
            elif self.out is None or not printing.quiet:
                typer.echo(self.text)
            if sys.stdout is not None:  # a closed stream
                sys.stdout.flush()
        except OSError as error:
            if self.out is None:
                raise
            fail(
                f"{str(self.out)!r} was written, but the report could not be printed ({error.strerror}).", NOT_CONVERGED
            )


def format_fields(title: str, fields: dict[str, Any]) -> str:
    """Format a title and a line for each field that is not None, aligned as in the text of a `Result`."""
    shown = {name.replace("_", " "): value for name, value in fields.items() if value is not None}
    width = max(15, *map(len, shown))
    texts = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in shown.values())
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in zip(shown, texts, strict=True))])


# ---------------------------------------------------------------- notes and errors


def notify(text: str) -> None:
    """Print a note about the input to the error stream, unless ``--quiet`` or ``--json`` is given."""
    warnings.warn(text, stacklevel=2)


@contextmanager
def _print_warnings(silent: bool) -> Iterator[None]:
    """Print each warning once as a note; a ConvergenceWarning is left out, as the report shows the gap."""
    printed = set[str]()

    def show(message: Warning | str, *_: Any) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            typer.echo(f"{typer.style('Note:', dim=True)} {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not silent:
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.showwarning = show  # type: ignore[assignment]
        yield


def fail(text: str, code: int = BAD_INPUT, title: str = "Error") -> NoReturn:
    """Print an error message on one line, and exit with a code."""
    typer.echo(f"{typer.style(title + ':', fg='red', bold=True)} {' '.join(text.split())}", err=True)
    raise typer.Exit(code)


def command(function: Callable[..., Report]) -> Callable[..., None]:
    """Turn a function into a command that prints its report, and errors about the input in one sentence.

    The exit code is that of the report, 2 for an error in the input, and 3 for any other error.
    """
    flat = expand_option_groups(function)
    options = {name: "--" + name.replace("_", "-") for name in signature(flat).parameters}
    options |= {"fit_intercept": "--intercept", "random_state": "--seed", "radii": "--radius"}

    @functools.wraps(flat)
    def run(**given: Any) -> None:
        printing = Printing(given["json"], given["quiet"], given["debug"])
        try:
            with _print_warnings(printing.silent):
                report = flat(**given)
            report.show(printing)
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if printing.debug:
                typer.echo(traceback.format_exc(), err=True, nl=False)
            notes = " ".join(getattr(error, "__notes__", []))
            if isinstance(error, KeyboardInterrupt):
                fail(notes or "nothing was written.", INTERRUPTED, "Interrupted")
            if is_bad_input(error):
                fail(f"{format_error(error, options)} {notes}")
            way = "with the traceback above" if printing.debug else "with the traceback that --debug shows"
            text = f"{type(error).__name__}: {error}; {notes or 'nothing was written'}; please report it {way}."
            fail(text, INTERNAL_ERROR, "Fault of projfree")
        raise typer.Exit(report.code)

    return run


def is_bad_input(error: BaseException) -> bool:
    """Return whether an error is about the input or the machine, and not a bug of projfree.

    Errors about the input are those of the operating system, of scikit-learn's validation, and sentences of this
    package. Errors that Python or NumPy raise are bugs, because the input should have been checked before.
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    module = str(frames[-1][0].f_globals.get("__name__", "")) if frames else ""
    own = module.startswith("projfree.") and str(error).endswith(".")
    checked = isinstance(error, ValueError | TypeError | RuntimeError) and (own or module.startswith("sklearn.utils."))
    return checked or isinstance(error, OSError | ImportError | MemoryError)


def format_error(error: object, options: Mapping[str, str]) -> str:
    """Format an error on one line, with options of the command in place of arguments of the library.

    Examples
    --------
    >>> format_error(ValueError("`LpBall(p=...)` must be at least 1 (`impute='median'`, `w`)."), {"p": "--p"})
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


def check_output(out: Path, inputs: Sequence[Path], force: bool, kind: str | None = None) -> None:
    """Raise ValueError unless the command may write to ``out``: it is new, or may be replaced with --force.

    Parameters
    ----------
    out : path
        A folder or a plain file to be written.
    inputs : sequence of paths
        The files that the command reads, which must not be overwritten.
    force : bool
        Whether a file, or a folder written by projfree, may be replaced.
    kind : str, optional
        The kind of a folder of `projfree.persist`; None for a plain file.
    """
    for origin in inputs:
        target, origin = (Path(os.path.realpath(path)) for path in (out, origin))
        same = out.exists() and origin.exists() and os.path.samefile(out, origin)  # links to one file
        if same or target.is_relative_to(origin) or origin.is_relative_to(target):
            raise ValueError(
                f"--out {str(out)!r} would overwrite what is read from {str(origin)!r}; choose another path."
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
    parent = next(folder for folder in out.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ValueError(
            f"--out {str(out)!r} lies in {str(parent)!r}, where nothing can be written; choose another path."
        )


def save_model(model: Any, out: Path, inputs: Sequence[Path], force: bool, encoder: Any = None) -> None:
    """Save a model, in a pipeline with its encoder; check ``out`` again, as other processes may have written to it."""
    from sklearn.pipeline import Pipeline

    from projfree.estimators import save

    check_output(out, inputs, force, "model")
    save(model if encoder is None else Pipeline([("encoder", encoder), ("model", model)]), out)


def write_csv(frames: Iterable[Any], out: Path, inputs: Sequence[Path], force: bool) -> int:
    """Write data frames one after the other to a CSV file, atomically; return the number of rows."""
    rows = 0
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with persist.atomic_write(out) as temporary:
            with temporary.open("x", newline="", encoding="utf-8") as file:
                for k, frame in enumerate(frames):
                    for name in frame.select_dtypes(exclude="number"):
                        frame[name] = frame[name].map(escape_formula)
                    frame.to_csv(file, header=k == 0, index=False, lineterminator="\n")
                    rows += len(frame)
            check_output(out, inputs, force)  # another process may have put something there in the meantime
    except OSError as error:
        raise OSError(f"{str(out)!r} could not be written ({error.strerror}); nothing of it is left.") from error
    return rows


def escape_formula(value: object) -> object:
    """Put an apostrophe before text that a spreadsheet would read as a formula.

    Examples
    --------
    >>> escape_formula("=HYPERLINK(1)"), escape_formula("-1.5"), escape_formula("up")
    ("'=HYPERLINK(1)", '-1.5', 'up')
    """
    formula = isinstance(value, str) and re.match(r"[=+\-@\t\r](?![\d.]*$).", value)
    return f"'{value}" if formula else value
