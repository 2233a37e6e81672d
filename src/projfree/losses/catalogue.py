"""`LOSSES`: all losses of the package, for the documentation, the tests and the command line."""

from projfree.lazy_import import exported_classes
from projfree.losses.base import Loss

#: Loss classes; each can be constructed without arguments.
LOSSES: tuple[type[Loss], ...] = exported_classes("projfree.losses", Loss)


def _name(cls: type[Loss]) -> str:
    file, name = cls.__module__.rpartition(".")[2], cls.__name__.lower()
    return file if file.replace("_", "") == name else name


#: Losses by their names in estimators and the CLI: that of the module (squared_hinge) or of the class (poisson).
BY_NAME: dict[str, type[Loss]] = {_name(cls): cls for cls in LOSSES}
