"""`LOSSES`: every loss of the package, for tables, tests and the command, which follow when one is added."""

from projfree.lazy_import import classes
from projfree.losses.base import Loss

#: Each can be constructed without arguments.
LOSSES: tuple[type[Loss], ...] = classes("projfree.losses", Loss)

#: The same by the names that estimators and the command take: those of their files.
BY_NAME: dict[str, type[Loss]] = {cls.__module__.rpartition(".")[2]: cls for cls in LOSSES}
