"""`LOSSES`: every loss of the package, for tables, tests and the command, which follow when one is added."""

from projfree.lazy_import import exported_classes
from projfree.losses.base import Loss

#: Each can be constructed without arguments.
LOSSES: tuple[type[Loss], ...] = exported_classes("projfree.losses", Loss)


def _name(cls: type[Loss]) -> str:
    file, name = cls.__module__.rpartition(".")[2], cls.__name__.lower()
    return file if file.replace("_", "") == name else name


#: The same by the names that estimators and the command take: the file's, or the class's where several share a file.
BY_NAME: dict[str, type[Loss]] = {_name(cls): cls for cls in LOSSES}
