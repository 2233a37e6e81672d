"""`LOSSES`: every loss of the package, for tables, tests and the command, which follow when one is added."""

from projfree.lazy_import import classes
from projfree.losses.base import Loss

#: Each can be constructed without arguments.
LOSSES: tuple[type[Loss], ...] = classes("projfree.losses", Loss)


def _name(cls: type[Loss]) -> str:
    file, name = cls.__module__.rpartition(".")[2], cls.__name__.lower()
    return file if file.replace("_", "") == name else name


#: The same by the names that estimators and the command take: those of their files, or of classes that share a file.
BY_NAME: dict[str, type[Loss]] = {_name(cls): cls for cls in LOSSES}
