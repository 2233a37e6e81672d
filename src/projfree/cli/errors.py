"""What an error means: bad input, told in one sentence that speaks of options, or a fault of projfree."""

from __future__ import annotations

import dis
import re
from types import TracebackType

#: Modules whose own sentences are about what the user gave.
SPEAKERS = ("projfree.", "reproduction.", "sklearn.utils.validation", "sklearn.utils.multiclass")
SENTENCES = (ValueError, TypeError, LookupError, ImportError, RuntimeError, MemoryError)
#: Arguments of the library that have an option of another name.
RENAMED = {"fit_intercept": "intercept", "radii": "radius", "groups": "feature-groups", "random_state": "seed"}
OPTIONS: tuple[str, ...] = (
    "p",
    "q",
    "radius",
    "tol",
    "max_iter",
    "time_limit",
    "standardize",
    "rank",
    "recommend",
    "seed",
    "loss",
)
OPTIONS += ("norm", "cv", "feature_groups", "columns", "impute", "one_hot", "quantile")
_ARGUMENT = re.compile(r"`(?:\w+\()?(\w+)(?:='?([^`()']*)'?)?\)?`")


def is_bad_input(error: BaseException) -> bool:
    """Whether an error says what is wrong with the input or with the machine.

    Those are raised on purpose, by a `raise` of the package; what merely falls out of an expression, or out of another
    library, is a fault of projfree.
    """
    if isinstance(error, OSError):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not isinstance(error, SENTENCES):
        return False
    module = str(last.tb_frame.f_globals.get("__name__", ""))
    return module.startswith(SPEAKERS) and _raised(last)


def _raised(last: TracebackType) -> bool:
    """Whether the last instruction of a traceback is a `raise`."""
    code = last.tb_frame.f_code.co_code
    return dis.opname[code[last.tb_lasti]] == "RAISE_VARARGS"


def sentence(error: BaseException) -> str:
    """The text of an error on one line, with options in place of arguments."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, OSError) and error.errno is not None and error.args[1:]:
        text = str(error.args[1]) if error.filename is None else f"{error.filename}: {error.strerror}"
    return _ARGUMENT.sub(_as_option, " ".join(text.split())) or type(error).__name__


def _as_option(match: re.Match[str]) -> str:
    """The option that an argument of the library comes from; other words stay.

    Examples
    --------
    >>> sentence(ValueError("`LpBall(p=...)` must be at least 1 (`impute='median'`, `w`)."))
    '--p must be at least 1 (--impute median, `w`).'
    """
    name, value = match[1], match[2]
    if name not in OPTIONS and name not in RENAMED:
        return match[0]
    option = "--" + RENAMED.get(name, name).replace("_", "-")
    return option if value in (None, "...") else f"{option} {value}"
